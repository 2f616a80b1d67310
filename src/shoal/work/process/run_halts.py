"""A circuit breaker for broken handlers: a run whose first pages all fail in the same way is paused, not burned.

Each worker counts for itself, from the first page of a run that it reads. The pause is the frontier's own, so that all
workers stop at once; why, stands in the cache for whoever asks.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress

import msgspec
import structlog

from shoal.api.scraper import Scraper
from shoal.core import log_events
from shoal.core.clock import Clock, Millis
from shoal.core.notes import Entry
from shoal.core.outcome import Reason
from shoal.core.task import RunState, Task
from shoal.delivery.lease_client import LeaseClient
from shoal.errors import UsageError
from shoal.frontier.contract.cache import Cache
from shoal.frontier.contract.engine import Engine
from shoal.frontier.contract.reader import Reader

MOST_RUNS = 10_000
"""Runs that are remembered at once; of a run that was forgotten, the count begins anew."""

KEPT: Millis = 30 * 24 * 3600 * 1000
"""How long it is known why a run was paused."""

LOOK_EVERY = 1.0
"""Seconds between two looks of a worker for one run whether another has paused it."""

log = structlog.get_logger("shoal")


class Halt(msgspec.Struct, frozen=True):
    """Why a run was paused: so many pages, and not one that could be read."""

    run_id: str
    scraper: str
    pages: int
    reason: str
    where: str | None = None

    @property
    def sentence(self) -> str:
        """What happened, and that nothing is lost."""
        place = f" ({self.where})" if self.where else ""
        return (
            f"The first {self.pages} pages all failed in the handler in the same way: {self.reason}{place}. "
            f"The run {self.run_id} is paused, and its other pages are not lost."
        )


async def halt_of(reader: Reader, cache: Cache, run_id: str) -> Halt | None:
    """Why a run is paused, if it is and a worker has paused it. Raises UnknownRun."""
    key = _key(run_id)
    told = (await cache.get([key])).get(key)
    if told is None or (await reader.run(run_id)).state is not RunState.PAUSED:
        return None
    return msgspec.json.decode(told, type=Halt)


class RunHalts:
    """What one worker has seen of each run."""

    def __init__(self, engine: Engine, scrapers: Mapping[str, Scraper], clock: Clock) -> None:
        self._engine = engine
        self._scrapers = scrapers
        self._clock = clock
        self._seen: dict[str, Counter[tuple[str, str | None]] | None] = {}
        self._halted: dict[str, Halt] = {}
        self._news = asyncio.Event()

    def read(self, run_id: str) -> None:
        """A page of the run was read: its handlers are not wholly wrong."""
        if self._seen.get(run_id, self) is not None:
            self._note(run_id, None)

    def failed(self, task: Task, error: str, reason: Reason) -> None:
        """A page of the run is a dead letter because of its handler. `error`: of which kind.

        The jobs of web clients are never paused: somebody waits for their end.
        """
        most, run_id = self._scrapers[task.scraper].max_same_errors, task.run_id
        counts = self._seen.get(run_id, Counter())
        if counts is None or not most or task.extra.guarded or run_id in self._halted:
            return
        self._note(run_id, counts)
        way = error, reason.detail
        counts[way] += 1
        if counts[way] >= most:
            self._halted[run_id] = Halt(run_id, task.scraper, counts[way], reason.text, reason.detail)
            self._news.set()

    def is_halted(self, run_id: str) -> bool:
        """Whether the run is about to be paused: what was claimed of it goes back unread."""
        return run_id in self._halted

    async def keep_pausing(self, leases: LeaseClient, only_run: str | None, stop: Callable[[], None]) -> None:
        """Pause what is to be paused; until cancelled. `only_run`: the one that the worker ends with."""
        while True:
            await self._news.wait()
            self._news.clear()
            for run_id, halt in list(self._halted.items()):
                with suppress(UsageError):  # gone, or on its way to another store
                    await self._pause(leases, halt)
                    if run_id == only_run:
                        stop()
                del self._halted[run_id]
                self._seen.pop(run_id, None)

    async def keep_looking(self, only_run: str, stop: Callable[[], None]) -> None:
        """Stop when another worker has paused the run; until cancelled."""
        while True:
            await self._clock.sleep(LOOK_EVERY)
            with suppress(UsageError):
                if await halt_of(self._engine.reader, self._engine.cache, only_run):
                    stop()

    async def _pause(self, leases: LeaseClient, halt: Halt) -> None:
        frontier, run_id = self._engine.frontier, halt.run_id
        await self._engine.cache.put([Entry(_key(run_id), msgspec.json.encode(halt), KEPT)])
        await frontier.pause_run(run_id)
        await leases.flush()
        run = await self._engine.reader.run(run_id)
        if run.state is not RunState.PAUSED:
            return
        if not run.counters.remaining:  # these were all its pages: it ends as any other
            await frontier.resume_run(run_id)
            return
        log.error(
            log_events.RUN_HALTED,
            scraper=halt.scraper,
            run=run_id,
            pages=halt.pages,
            reason=halt.reason,
            where=halt.where,
        )

    def _note(self, run_id: str, counts: Counter[tuple[str, str | None]] | None) -> None:
        self._seen[run_id] = counts
        if len(self._seen) > MOST_RUNS:
            del self._seen[next(iter(self._seen))]


def _key(run_id: str) -> str:
    return f"halted:{run_id}"
