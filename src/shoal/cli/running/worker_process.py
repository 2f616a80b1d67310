"""A worker process: one worker on one engine, until it is told to stop."""

from __future__ import annotations

import asyncio
import os
import threading
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from shoal.api.webhook_signature import DELIVERIES
from shoal.cli.output.exit_codes import INTERRUPTED, OK, say
from shoal.cli.running.find_store import find_run
from shoal.cli.running.interrupt import interruptible
from shoal.config.settings import Settings, mask_url
from shoal.core.clock import SystemClock
from shoal.delivery.supervised import supervised
from shoal.errors import UsageError
from shoal.frontier.retrying import Retrying, RetryingEngine
from shoal.runs.open_store import open_store
from shoal.runs.worker_options import worker_options
from shoal.work.process.missing_code import report_missing_code
from shoal.work.worker import Worker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from shoal.api.scraper import Scraper
    from shoal.fetch.protocol import Fetcher
    from shoal.frontier.contract.reader import Reader


@dataclass(slots=True)
class WorkerProcess:
    """One call of `shoal worker`: on one run (`run_id`: an id, a beginning, `last`) or on all of these scrapers.

    `batch`: the most leases that are taken at once; None = as many as there is room for. `drain`: end when nothing is
    left. `until_eof`: stop when standard input ends. `revisit`: pages are visited again, where scrapers ask for it.
    `around`: what stands between its tasks and the network; None = nothing.
    """

    settings: Settings
    scrapers: Sequence[Scraper]
    lanes: tuple[str, ...]
    run_id: str | None
    batch: int | None
    drain: bool
    quiet: bool
    until_eof: bool
    revisit: bool = True
    around: Callable[[Fetcher], Fetcher] | None = None
    _worker: Worker | None = field(default=None, init=False)

    async def run(self) -> int:
        """Work until stopped, or drained. Answers the exit code."""
        working = asyncio.ensure_future(self._work())

        def stop() -> None:
            if self._worker is None:  # still waiting for the store, with nothing in hand
                working.cancel()
            else:
                if not self.quiet:
                    say("Stopping: finishing what is in flight. Press Ctrl-C again to stop at once.")
                self._worker.stop()

        def force() -> None:
            working.cancel()

        if self.until_eof:
            when_stdin_ends(stop)
        with interruptible(stop, force) as interruption:
            await asyncio.wait([working])
        if interruption.forced:
            return INTERRUPTED
        if not working.cancelled():
            await working
        return OK

    async def _work(self) -> None:
        async with _opened_patiently(self.settings) as engine:
            names = [scraper.name for scraper in self.scrapers]
            queues = None if self.run_id is None else (await _queue_of(engine.reader, self.run_id, names),)
            options = worker_options(
                self.settings,
                lanes=self.lanes,
                queues=queues,
                batch=self.batch,
                drain=self.drain,
                revisit=self.revisit,
            )
            self._worker = Worker(engine, self.scrapers, options, around=self.around)
            if not self.quiet:
                what = f"{', '.join(names)} (lanes {', '.join(self.lanes)})"
                say(f"Working on {what} from {mask_url(self.settings.engine)}. Ctrl-C stops.")
            look = partial(report_missing_code, engine.reader, [*names, DELIVERIES])
            looking = None if queues else asyncio.ensure_future(supervised("missing code", look, SystemClock()))
            try:
                await self._worker.run()
            finally:
                if looking is not None:
                    looking.cancel()


@asynccontextmanager
async def _opened_patiently(settings: Settings) -> AsyncIterator[RetryingEngine]:
    """A store that is not up yet is waited for, at the beginning and ever after."""
    patience = Retrying()
    engine = await patience.call("open", lambda: open_store(settings))
    try:
        yield RetryingEngine(engine, patience)
    finally:
        await engine.close()


async def _queue_of(reader: Reader, text: str, scrapers: Sequence[str]) -> str:
    """The queue of the run that is meant. Raises UsageError if there is no code for it here."""
    run = await find_run(reader, text)
    if run.scraper not in scrapers:
        raise UsageError(
            f"The run {run.run_id} is one of the scraper {run.scraper!r}, and this worker has {', '.join(scrapers)}; "
            f"name the file of {run.scraper!r}."
        )
    return run.queue


def when_stdin_ends(act: Callable[[], None]) -> None:
    """Act when whoever holds the other end of our stdin is gone. In a thread, for it may block forever."""
    loop = asyncio.get_running_loop()

    def watch() -> None:
        while os.read(0, 4096):
            pass
        loop.call_soon_threadsafe(act)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()
