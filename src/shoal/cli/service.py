"""A worker process: one worker on one engine, until it is told to stop."""

from __future__ import annotations

import asyncio
import os
import threading
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from shoal.cli.frame import INTERRUPTED, OK, say
from shoal.cli.interrupt import interruptible
from shoal.cli.opening import find_run, open_recorded
from shoal.clock import millis
from shoal.errors import UsageError
from shoal.fetch.guard import Guard
from shoal.patience import Patience, PatientEngine
from shoal.pools import pools_from, tor_from
from shoal.settings import Settings, mask_url
from shoal.webhook import DELIVERIES
from shoal.work.foreign import report_foreign_work
from shoal.work.worker import Worker, WorkerOptions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from shoal.frontier.reading import Reader
    from shoal.scraper import Scraper


@dataclass(slots=True)
class Service:
    """One call of `shoal worker`: on one run (`run_id`: an id, a beginning, `last`) or on all of these scrapers.

    `batch`: the most leases that are taken at once; None = as many as there is room for. `drain`: end when nothing is
    left. `until_eof`: stop when standard input ends. `revisit`: pages are visited again, where scrapers ask for it.
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
            options = WorkerOptions(
                concurrency=self.settings.concurrency,
                batch=self.batch,
                lanes=self.lanes,
                queues=queues,
                drain=self.drain,
                user_agent=self.settings.agent,
                exits=pools_from(self.settings),
                tor=tor_from(self.settings),
                audit=self.settings.audit,
                revisit=self.revisit,
                cache_max_bytes=self.settings.cache_max_bytes,
                guard=Guard(self.settings.guard.networks),
                max_crawl_delay=millis(self.settings.max_crawl_delay),
            )
            self._worker = Worker(engine, self.scrapers, options)
            if not self.quiet:
                what = f"{', '.join(names)} (lanes {', '.join(self.lanes)})"
                say(f"Working on {what} from {mask_url(self.settings.engine)}. Ctrl-C stops.")
            looking = (
                None if queues else asyncio.ensure_future(report_foreign_work(engine.reader, [*names, DELIVERIES]))
            )
            try:
                await self._worker.run()
            finally:
                if looking is not None:
                    looking.cancel()


@asynccontextmanager
async def _opened_patiently(settings: Settings) -> AsyncIterator[PatientEngine]:
    """A store that is not up yet is waited for, at the beginning and ever after."""
    patience = Patience()
    engine = await patience.call("open", lambda: open_recorded(settings, create=True))
    try:
        yield PatientEngine(engine, patience)
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
