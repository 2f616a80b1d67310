"""The ways out of one worker, put together: the book of exits, what fetches by them, and Tor if a scraper wants it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import structlog

from shoal.clock import Clock
from shoal.errors import EngineUnavailable, UsageError
from shoal.fetch.http import HttpFetcher
from shoal.frontier.exits import Exits
from shoal.outcome import Settlement
from shoal.scraper import Scraper
from shoal.work.exit_book import ExitBook
from shoal.work.held import HeldLease
from shoal.work.tor_exit import TorExit

if TYPE_CHECKING:
    from shoal.work.worker import WorkerOptions

LOOK_AT_EXITS_EVERY = 5.0

log = structlog.get_logger("shoal")


class WaysOut:
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
        self._scrapers = scrapers
        self.book = ExitBook(options.exits, store, options.concurrency, guard=options.guard)
        self._tor: TorExit | None = None
        wanted = self.book.tor
        if wanted is not None and any({scraper.exits, *_by_routes(scraper)} & {*wanted.pools} for scraper in scrapers):
            self._tor = TorExit(options.tor, wanted, self.book, store, clock, self._forget, held)
        self._opening: asyncio.Future[None] | None = None
        self._given_up = False

    async def open(self) -> HttpFetcher:
        """Tell the store of our own exits and learn of those that it has; start what has to run for them.

        Raises UsageError if a scraper has no way out. Cut short by `give_up`, it opens nothing more.
        """
        self._fetcher = HttpFetcher(self._user_agent, ways=self.book.way)
        await self.book.introduce()
        await self.book.refresh()
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

    def chores(self) -> list[Coroutine[Any, Any, None]]:
        """What has to go on for as long as the worker works."""
        tor = [] if self._tor is None or self._given_up else [self._tor.keep_alive(), self._tor.keep_identity()]
        return [self._keep_exits(), *tor]

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
            if scraper.exits not in self.book.pools:
                raise UsageError(
                    f"The scraper {scraper.name!r} leaves by the exits {scraper.exits!r}, and there are none. Name "
                    f"some in [exits.{scraper.exits}] of shoal.toml, or by `shoal exits add … --pool {scraper.exits}`."
                )

            for pool in sorted(_by_routes(scraper) - self.book.pools.keys()):
                log.warning("no exits for a route: its URLs wait", scraper=scraper.name, pool=pool)

    async def _keep_exits(self) -> None:
        while True:
            await asyncio.sleep(LOOK_AT_EXITS_EVERY)
            with suppress(EngineUnavailable):
                for name in await self.book.refresh():
                    await self._forget(name)

    async def _forget(self, name: str) -> None:
        await self._fetcher.forget(name)


def _by_routes(scraper: Scraper) -> frozenset[str]:
    return frozenset() if scraper.routes is None else scraper.routes.pools
