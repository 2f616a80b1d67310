"""A worker process: one worker on one engine, until it is told to stop."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import TYPE_CHECKING

from shoal.cli.frame import INTERRUPTED, OK, say
from shoal.cli.interrupt import interruptible
from shoal.cli.opening import find_run, opened
from shoal.settings import Settings, mask_url
from shoal.work.worker import Worker, WorkerOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from shoal.scraper import Scraper


async def serve_runs(
    settings: Settings,
    scrapers: Sequence[Scraper],
    lanes: tuple[str, ...],
    run_id: str | None,
    *,
    drain: bool,
    quiet: bool,
    until_eof: bool,
) -> int:
    """Work on one run (`run_id`: an id, a beginning, `last`) or on all of these scrapers. Answers the exit code.

    `drain`: end when nothing is left. `until_eof`: stop when standard input ends.
    """
    async with opened(settings, create=True) as engine:
        queues = None if run_id is None else ((await find_run(engine.reader, run_id)).queue,)
        options = WorkerOptions(
            concurrency=settings.concurrency, lanes=lanes, queues=queues, drain=drain, user_agent=settings.agent
        )
        staff = Worker(engine, scrapers, options)
        if not quiet:
            names = ", ".join(scraper.name for scraper in scrapers)
            say(f"Working on {names} (lanes {', '.join(lanes)}) from {mask_url(settings.engine)}. Ctrl-C stops.")
        if until_eof:
            _when_stdin_ends(staff.stop)
        working = asyncio.ensure_future(staff.run())

        def force() -> None:
            working.cancel()

        with interruptible(staff.stop, force) as interruption:
            await asyncio.wait([working])
        if interruption.forced:
            return INTERRUPTED
        await working
        return OK


def _when_stdin_ends(act: Callable[[], None]) -> None:
    """Act when whoever holds the other end of our stdin is gone. In a thread, for it may block forever."""
    loop = asyncio.get_running_loop()

    def watch() -> None:
        while os.read(0, 4096):
            pass
        loop.call_soon_threadsafe(act)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()
