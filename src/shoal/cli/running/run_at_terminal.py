"""`shoal run`, once it is clear what is meant: by the orchestrator, for a person who watches and may press Ctrl-C."""

from __future__ import annotations

import asyncio
import sys
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

from shoal.cli.output.exit_codes import INTERRUPTED, say, wants_tracebacks
from shoal.cli.output.progress import display_for, follow, follow_to_end
from shoal.cli.output.run_report import RunReport
from shoal.cli.running.child_processes import ChildProcesses
from shoal.cli.running.interrupt import interrupted_at_once, interruptible
from shoal.delivery.supervised import supervised
from shoal.errors import EngineUnavailable, ShoalError
from shoal.insight.run_eta import estimate_by
from shoal.runs.orchestrator import AsyncOrchestrator
from shoal.runs.run_hooks import RunHooks

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

    from shoal.config.settings import Settings
    from shoal.frontier.contract.engine import Engine
    from shoal.frontier.contract.frontier import Run
    from shoal.runs.results import RunResult
    from shoal.runs.run_request import ChosenRun, RunRequest
    from shoal.runs.seeding import Seeded
    from shoal.work.worker import Worker


class RunAtTerminal(RunHooks):
    """One call of `shoal run`. `processes`: so many work on a run of mode single, this one among them."""

    def __init__(
        self, request: RunRequest, settings: Settings, *, processes: int = 1, quiet: bool = False, as_data: bool = False
    ) -> None:
        super().__init__()
        self._request = request
        self._settings = settings
        self._processes = processes
        self._quiet = quiet
        self._report = RunReport(request, quiet=quiet, as_data=as_data)
        self._interrupted = False

    async def run(self) -> int:
        """Do it all; answers the exit code."""
        async with AsyncOrchestrator(self._request.scraper, settings=self._settings) as orchestrator:
            try:
                result = await orchestrator.carry_out(self._request, self)
            except EngineUnavailable as error:
                if not self._interrupted:
                    raise
                self._report.stopped_without_a_store(error)
                return INTERRUPTED
            return self._report.ended(result)

    def chosen(self, request: RunRequest, chosen: ChosenRun) -> None:
        self._report.chosen(chosen)

    @contextmanager
    def filling(self, request: RunRequest, chosen: ChosenRun) -> Iterator[None]:
        try:
            with interrupted_at_once():
                yield
        except KeyboardInterrupt:
            self._report.interrupted_while_filling(chosen.run_id)
            raise
        finally:
            self._report.refused_urls()

    def filled(self, request: RunRequest, chosen: ChosenRun, seeded: Seeded) -> None:
        self._report.filled(seeded)

    def handed_over(self, request: RunRequest, result: RunResult) -> None:
        self._report.handed_over(result)

    async def follow(self, engine: Engine, run_id: str) -> Run:
        display = display_for(quiet=self._quiet, clock=self.clock)
        estimate = estimate_by(engine, self._settings)
        try:
            return await follow_to_end(engine.reader, run_id, display, self.clock, estimate)
        except asyncio.CancelledError:
            self._report.stopped_following(run_id)
            raise

    async def work(self, engine: Engine, run: Run, worker: Worker) -> bool:
        self._report.working()
        others = ChildProcesses(
            self._command(run.run_id), {"SHOAL_ENGINE": self._settings.engine}, size=self._processes - 1, report=say
        )

        def drain() -> None:
            say("Stopping: finishing what is in flight. Press Ctrl-C again to stop at once.")
            others.stop()
            worker.stop()

        def force() -> None:
            others.kill()
            working.cancel()

        with interruptible(drain, force, self.clock) as interruption:
            async with self._watched(engine, run.run_id), asyncio.TaskGroup() as group:
                working = group.create_task(worker.run())
                group.create_task(others.run())
        self._interrupted = interruption.times > 0
        return self._interrupted

    def _command(self, run_id: str) -> Sequence[str]:
        """What the other processes do: a worker for this run alone."""
        return (
            sys.executable, "-m", "shoal", "worker", self._request.target, "--run-id", run_id,
            "--concurrency", str(self._settings.concurrency), "--drain", "--quiet", "--until-eof",
            *(word for word in self._request.options if word == "--verbose"),
            *_with_value("--warc", self._request.options), *_with_value("--log-file", self._request.options),
            *(() if self._request.line.config is None else ("--config", self._request.line.config)),
            *(() if self._request.once else ("--again",)),
            *(("--debug",) if wants_tracebacks() else ()),
        )  # fmt: skip

    @asynccontextmanager
    async def _watched(self, engine: Engine, run_id: str) -> AsyncIterator[None]:
        """Show progress while the block goes on. What goes wrong with showing does not stop the work."""
        display = display_for(quiet=self._quiet, clock=self.clock)
        estimate = estimate_by(engine, self._settings)
        show = partial(follow, engine.reader, run_id, display, self.clock, estimate)
        watching = asyncio.create_task(supervised("progress", show, self.clock, fatal=ShoalError))
        try:
            yield
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError, ShoalError):
                await watching
            display.close()


def _with_value(option: str, said: Sequence[str]) -> Sequence[str]:
    """An option with its value, if it was given."""
    return said[said.index(option) : said.index(option) + 2] if option in said else ()
