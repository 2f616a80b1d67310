"""The exits of one worker, put together: their registry, what fetches by them, and Tor if a scraper wants it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import structlog

from shoal.api.scraper import Scraper
from shoal.core import log_events
from shoal.core.clock import Clock
from shoal.core.outcome import Settlement
from shoal.delivery.held_lease import HeldLease
from shoal.errors import EngineUnavailable, UsageError
from shoal.fetch.http import HttpFetcher
from shoal.frontier.contract.exits import Exits
from shoal.work.exits.exit_registry import ExitRegistry
from shoal.work.exits.tor_exit import TorExit

if TYPE_CHECKING:
    from shoal.work.options import WorkerOptions

log = structlog.get_logger("shoal")


class ExitSet:
    """For one worker. `held`: tokens of the leases that it has in hand."""

    def __init__(
        self,
        options: WorkerOptions,
        scrapers: Sequence[Scraper],
        store: Exits,
        clock: Clock,
        held: Callable[[], Iterable[int]],
    ) -> None:
        self._user_agent = options.user_agent
        self._clock = clock
        self._look_every = options.timing.look_at_exits_every
        self._scrapers = scrapers
        self.registry = ExitRegistry(options.exits, store, options.concurrency, guard=options.guard)
        self._tor: TorExit | None = None
        wanted = self.registry.tor
        if wanted is not None and any({scraper.exits, *_by_routes(scraper)} & {*wanted.pools} for scraper in scrapers):
            self._tor = TorExit(options.tor, wanted, self.registry, store, clock, self._forget, held)
        self._opening: asyncio.Future[None] | None = None
        self._given_up = False

    async def open(self) -> HttpFetcher:
        """Tell the store of our own exits and learn of those that it has; start what has to run for them.

        Raises UsageError if a scraper has no way out. Cut short by `give_up`, it opens nothing more.
        """
        self._fetcher = HttpFetcher(self._user_agent, exits=self.registry.way, clock=self._clock)
        await self.registry.introduce()
        await self.registry.refresh()
        if self._tor is not None and not self._given_up:
            self._opening = asyncio.ensure_future(self._tor.open())
            await asyncio.wait([self._opening])
            if not self._opening.cancelled():
                self._opening.result()
        if not self._given_up:
            self._check()
        return self._fetcher

    def give_up(self) -> None:
        """The worker is to end: what takes long to open is not waited for."""
        self._given_up = True
        if self._opening is not None:
            self._opening.cancel()

    async def close(self) -> None:
        """Let go of all connections and end what was started. The second time: nothing."""
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.wait([self._opening])
        await self._fetcher.close()
        if self._tor is not None:
            await self._tor.close()

    def chores(self) -> Mapping[str, Callable[[], Awaitable[None]]]:
        """What has to go on for as long as the worker works, by name."""
        chores: dict[str, Callable[[], Awaitable[None]]] = {"look at exits": self._keep_exits}
        if self._tor is not None and not self._given_up:
            chores |= {"tor daemon": self._tor.keep_alive, "tor identity": self._tor.keep_identity}
        return chores

    def ended(self, held: HeldLease, settlement: Settlement) -> None:
        """A lease is at its end, and is about to be settled so."""
        if self._tor is not None:
            self._tor.ended(held, settlement)

    def settled(self, stood: Sequence[Settlement], unsettled: Sequence[Settlement]) -> None:
        """The store has taken these, and not yet those."""
        if self._tor is not None:
            self._tor.settled(stood, unsettled)

    def _check(self) -> None:
        for scraper in self._scrapers:
            if scraper.exits not in self.registry.pools:
                raise UsageError(
                    f"The scraper {scraper.name!r} leaves by the exits {scraper.exits!r}, and there are none. Name "
                    f"some in [exits.{scraper.exits}] of shoal.toml, or by `shoal exits add … --pool {scraper.exits}`."
                )

            for pool in sorted(_by_routes(scraper) - self.registry.pools.keys()):
                log.warning(log_events.EXIT_MISSING, scraper=scraper.name, pool=pool)

    async def _keep_exits(self) -> None:
        while True:
            await self._clock.sleep(self._look_every)
            with suppress(EngineUnavailable):
                for name in await self.registry.refresh():
                    await self._forget(name)

    async def _forget(self, name: str) -> None:
        await self._fetcher.forget(name)


def _by_routes(scraper: Scraper) -> frozenset[str]:
    return frozenset() if scraper.routes is None else scraper.routes.pools
