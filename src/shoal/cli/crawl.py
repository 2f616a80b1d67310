"""One run, worked on here until nothing is left or the user wants to stop."""

from __future__ import annotations

import asyncio
import sys
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from shoal.cli.crew import Crew
from shoal.cli.estimate import estimate_by
from shoal.cli.frame import say
from shoal.cli.interrupt import interruptible
from shoal.cli.progress import Display, display_for, follow
from shoal.errors import ShoalError
from shoal.orchestrator import worker_on

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from shoal.frontier.engine import Engine
    from shoal.scraper import Scraper
    from shoal.settings import Settings


class Crawl:
    """A worker in this process, and if asked for more in others, on one run. `once`: no page is visited again."""

    def __init__(
        self, engine: Engine, scraper: Scraper, settings: Settings, target: str, *, quiet: bool, once: bool = False
    ) -> None:
        self._engine = engine
        self._scraper = scraper
        self._settings = settings
        self._target = target
        self._quiet = quiet
        self._once = once

    async def work(self, run_id: str, *, processes: int) -> bool:
        """Work until nothing is left to do here. True = the user interrupted it. Raises what the worker raises."""
        run = await self._engine.reader.run(run_id)
        worker = worker_on(self._engine, self._scraper, run, self._settings, revisit=not self._once)
        crew = Crew(self._command(run_id), {"SHOAL_ENGINE": self._settings.engine}, size=processes - 1, report=say)

        def drain() -> None:
            say("Stopping: finishing what is in flight. Press Ctrl-C again to stop at once.")
            crew.stop()
            worker.stop()

        def force() -> None:
            crew.kill()
            working.cancel()

        with interruptible(drain, force) as interruption:
            display = display_for(quiet=self._quiet)
            async with _watched(self._engine, self._settings, run_id, display), asyncio.TaskGroup() as group:
                working = group.create_task(worker.run())
                group.create_task(crew.run())
        return interruption.times > 0

    def _command(self, run_id: str) -> Sequence[str]:
        return (
            sys.executable, "-m", "shoal", "worker", self._target, "--run-id", run_id,
            "--concurrency", str(self._settings.concurrency), "--drain", "--quiet", "--until-eof",
            *(() if self._once else ("--again",)),
        )  # fmt: skip


@asynccontextmanager
async def _watched(engine: Engine, settings: Settings, run_id: str, display: Display) -> AsyncIterator[None]:
    """Show progress while the block goes on. What goes wrong with showing does not stop the work."""
    watching = asyncio.create_task(follow(engine.reader, run_id, display, estimate_by(engine, settings)))
    try:
        yield
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError, ShoalError):
            await watching
        display.close()
