"""Single flight (request collapsing): one task asks the target, others who want the same wait for its answer.

A flight is an entry beside the site, held in the name of its task. It ends with the settlement, in the transaction that
keeps the answer: so whoever finds no flight finds the answer, if there is one. If its worker dies, the next lease of
the same task goes on with it, or it ends by itself.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable
from typing import TYPE_CHECKING, NoReturn, Protocol

import msgspec

from shoal.core.clock import Clock, Moment, millis
from shoal.core.notes import Entry
from shoal.delivery.held_lease import HeldLease
from shoal.errors import TooLate
from shoal.frontier.contract.cache import Cache

if TYPE_CHECKING:
    from shoal.work.options import WorkTiming


class Wanted(Protocol):
    """What is known of a page that is wanted. `flown_by`: who has the flight, as of the last look; None = nobody.

    `may_be_brought`: its answer is to be asked for, and will be for all who ask the same.
    `flight`: the flight that its own task has; None = none.
    """

    flight: Entry | None

    @property
    def flight_key(self) -> str: ...

    @property
    def flown_by(self) -> bytes | None: ...

    @property
    def may_be_brought(self) -> bool: ...

    async def look(self, cache: Cache, now: Moment) -> None: ...


class SingleFlight:
    """The flights that tasks of one worker have or wait for. Of those that wait for one page, one asks the store."""

    def __init__(self, cache: Cache, clock: Clock, chance: random.Random, timing: WorkTiming) -> None:
        self._timing = timing
        self._cache = cache
        self._clock = clock
        self._chance = chance
        self._awaited: dict[str, asyncio.Event] = {}
        self._held: dict[int, _Flight] = {}

    async def board(self, held: HeldLease, wanted: Wanted, seconds: float) -> None:
        """Wait until the page is known, or is to be asked for by this lease: then it has the flight.

        `seconds`: how long the request may take. Raises TooLate if the flight has become free too late to start.
        """
        key, task = wanted.flight_key, held.lease.task
        flight = Entry(
            key, f"{task.run_id} {task.id}".encode(), millis(seconds) + held.delay + self._timing.flight_margin
        )
        while wanted.may_be_brought:
            awaited = self._awaited.get(key)
            if awaited is None or wanted.flown_by == flight.value:
                await self._go_first(held, wanted, flight)
                return
            await awaited.wait()
            await wanted.look(self._cache, held.now)

    async def _go_first(self, held: HeldLease, wanted: Wanted, flight: Entry) -> None:
        """Take the flight, or watch it for all others here."""
        self._awaited.setdefault(flight.key, asyncio.Event())
        try:
            while wanted.may_be_brought and wanted.flight is None:
                if wanted.flown_by not in (None, flight.value):
                    await self._clock.sleep(self._chance.uniform(*self._timing.flight_look_again))
                elif not held.may_start:
                    raise TooLate
                else:
                    await self._take(held, wanted, flight)
                # Also with the flight: the one before may just have ended, and brought the answer.
                await wanted.look(self._cache, held.now)
        finally:
            if wanted.flight is None:
                self._tell(flight.key)

    async def _take(self, held: HeldLease, wanted: Wanted, flight: Entry) -> None:
        """Noted at once: if the answer is lost to a cancellation, the flight has to be let go of nevertheless."""
        wanted.flight = flight
        self._held[held.lease.token] = _Flight(flight, self._clock.elapsed())
        if not await self._cache.hold([flight]):
            wanted.flight = None
            del self._held[held.lease.token]

    async def keep_renewing(self) -> NoReturn:
        """Hold those for longer that have become old. Until cancelled."""
        while True:
            await self._clock.sleep(self._timing.flights_renewed_every)
            await self._renew()

    async def _renew(self) -> None:
        now = self._clock.elapsed()
        old = [flight for flight in self._held.values() if now - flight.since >= flight.entry.ttl / 3]
        if old:
            await self._cache.hold([flight.entry for flight in old])
            for flight in old:
                flight.since = now

    def land(self, tokens: Iterable[int]) -> None:
        """The leases with these tokens are settled: those who wait here for what they may have brought look now."""
        if self._held:
            for token in tokens:
                flight = self._held.pop(token, None)
                if flight is not None:
                    self._tell(flight.entry.key)

    def _tell(self, key: str) -> None:
        awaited = self._awaited.pop(key, None)
        if awaited is not None:
            awaited.set()


class _Flight(msgspec.Struct):
    """A flight that is held. `since`: when it was last said so, by `elapsed`."""

    entry: Entry
    since: float
