"""The Tor exit that is one worker's own: its daemon, kept alive, and its identity, changed where a site has had enough.

A site sees another address after a new identity, so what it said to the old one is not said to the new one: the ban of
the slot is lifted. The clock of the slot goes on: the exit keeps its name, and the pace holds over all its identities.
A site that turns away one identity after the other means everybody who comes by Tor; it is left alone like any other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress

import structlog

from shoal.core import log_events
from shoal.core.clock import Clock, Millis
from shoal.core.exit_address import TOR, ExitAddress, TorOptions
from shoal.core.outcome import Settlement, Snoozed
from shoal.core.politeness import QUIET
from shoal.delivery.held_lease import HeldLease
from shoal.errors import EngineError, EngineUnavailable, TorFailed
from shoal.fetch.tor.daemon import TorDaemon
from shoal.fetch.tor.data_folder import TorFolder, take_folder
from shoal.frontier.contract.exits import Exits, NewExit
from shoal.work.exits.exit_registry import ExitRegistry, Lent

MOST_LIFTED = 2
"""So many bans of one site are lifted by new identities within QUIET. The next one stands for as long as it says."""

RESTART_FIRST, RESTART_MOST = 1.0, 60.0
"""Seconds before a daemon that has ended is started again: doubling, from the first on after it was STEADY."""

STEADY: Millis = 60_000

LAST_WORD = 2.0
"""Seconds that the store is given to strike out an exit that has ended."""

log = structlog.get_logger("shoal")


class TorExit:
    """One daemon, lent to the registry of exits while it can be used. `wanted`: the exit as the settings have it.

    `forget`: lets go of the connections of an exit. `held`: tokens of the leases in hand.
    """

    def __init__(
        self,
        options: TorOptions,
        wanted: NewExit,
        registry: ExitRegistry,
        store: Exits,
        clock: Clock,
        forget: Callable[[str], Awaitable[None]],
        held: Callable[[], Iterable[int]],
    ) -> None:
        self._options = options
        self._wanted = wanted
        self._registry = registry
        self._store = store
        self._clock = clock
        self._forget = forget
        self._held = held
        self._folder: TorFolder | None = None
        self._requests = 0
        self._blocked: dict[int, str] = {}
        self._refusals: dict[str, list[float]] = {}
        self._to_lift: set[str] = set()
        self._wants_identity = False
        self._older: frozenset[int] = frozenset()
        self._news = asyncio.Event()
        self.name = ""

    async def open(self) -> None:
        """Start the daemon and wait until it can be used. Raises TorFailed."""
        self._folder = folder = take_folder(self._options.folder)
        self.name = folder.name
        self._daemon = TorDaemon(self._options, folder.path)
        await self._daemon.start()
        await self._store.put([NewExit(self.name, TOR, self._wanted.pools, self._wanted.cap)])
        self._lend()
        log.info(log_events.TOR_READY, exit=self.name)

    async def close(self) -> None:
        """End the daemon. The second time, or before it was opened: nothing."""
        folder, self._folder = self._folder, None
        if folder is None:
            return
        try:
            self._registry.take_back(self.name)
            await self._daemon.stop()
            with suppress(EngineError, TimeoutError):
                async with asyncio.timeout(LAST_WORD):
                    await self._store.remove([self.name])
        finally:
            folder.close()

    async def keep_alive(self) -> None:
        """A daemon that ends is started again. Meanwhile nothing is claimed by this exit."""
        wait = RESTART_FIRST
        while True:
            began = self._clock.elapsed()
            last_words = await self._daemon.ended()
            self._registry.take_back(self.name)
            if self._clock.elapsed() - began > STEADY:
                wait = RESTART_FIRST
            log.warning(log_events.TOR_DIED, exit=self.name, reason=last_words, seconds=wait)
            await self._daemon.stop()
            await self._forget(self.name)
            wait = await self._restart(wait)
            self._lend()
            log.warning(log_events.TOR_RECOVERED, exit=self.name)

    async def _restart(self, wait: float) -> float:
        """Until it can be used. Answers how long to wait the next time."""
        while True:
            await self._clock.sleep(wait)
            wait = min(2 * wait, RESTART_MOST)
            try:
                await self._daemon.start()
            except TorFailed as error:
                log.warning(log_events.TOR_FAILED, exit=self.name, reason=str(error), seconds=wait)
            else:
                return wait

    async def keep_identity(self) -> None:
        """New identities where they are wanted, and then an end to bans that were meant for the old ones."""
        while True:
            await self._news.wait()
            self._news.clear()
            if self._wants_identity and not await self._change_identity():
                continue
            sites, self._to_lift = self._to_lift, set()
            with suppress(EngineUnavailable):  # then they stand
                for site in sorted(sites):
                    await self._store.release(self.name, site)

    async def _change_identity(self) -> bool:
        self._wants_identity = False
        try:
            await self._daemon.new_identity()
        except TorFailed as error:
            log.warning(log_events.TOR_KEPT_IDENTITY, exit=self.name, reason=str(error))
            self._to_lift.clear()
            return False
        self._requests = 0
        self._older = frozenset(self._held())
        await self._forget(self.name)
        log.info(log_events.TOR_CHANGED_IDENTITY, exit=self.name, lifts=sorted(self._to_lift))
        return True

    def ended(self, held: HeldLease, settlement: Settlement) -> None:
        """A lease is at its end, and is about to be settled so."""
        if held.lease.exit != self.name:
            return
        self._requests += held.starts
        if 0 < self._options.new_identity_every <= self._requests:
            self._want_identity()
        if isinstance(settlement.outcome, Snoozed) and settlement.outcome.penalty:
            self._blocked[settlement.token] = held.lease.task.site

    def settled(self, stood: Sequence[Settlement], unsettled: Sequence[Settlement]) -> None:
        """The store knows of these now: a ban can only be lifted after it was noted."""
        if not self._blocked:
            return
        waiting = {settlement.token for settlement in unsettled}
        known = {settlement.token for settlement in stood}
        for token in [token for token in self._blocked if token not in waiting]:
            site = self._blocked.pop(token)
            if token in known:
                self._turned_away(site, by_older=token in self._older)

    def _turned_away(self, site: str, *, by_older: bool) -> None:
        """A site has had enough of an identity: of this one, or (late) of the one before."""
        now = self._clock.elapsed()
        lately = [moment for moment in self._refusals.pop(site, ()) if now - moment < QUIET]
        if not by_older:
            lately.append(now)
            self._want_identity()
        if lately:
            self._refusals[site] = lately
        if len(lately) <= MOST_LIFTED:
            self._to_lift.add(site)
            self._news.set()
        if len(self._refusals) > 10_000:
            self._refusals.pop(next(iter(self._refusals)))

    def _want_identity(self) -> None:
        self._wants_identity = True
        self._news.set()

    def _lend(self) -> None:
        address = ExitAddress("socks5", "127.0.0.1", self._daemon.port)
        self._registry.lend(self.name, Lent(self._wanted.pools, address, self._daemon.works))
