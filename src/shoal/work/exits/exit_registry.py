"""The exits that a worker can leave by: those of its settings, and those that were put into the store meanwhile."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

import structlog

from shoal.core import log_events
from shoal.core.exit_address import TOR, ExitAddress, parse_exit
from shoal.core.outcome import Blame
from shoal.core.task import DEFAULT_POOL, DIRECT
from shoal.errors import BadSettings
from shoal.fetch.exit_connections import ExitConnections, open_exit
from shoal.fetch.guard.rules import Guard
from shoal.fetch.protocol import FetchError
from shoal.frontier.contract.exits import Exits, NewExit

log = structlog.get_logger("shoal")

DIRECTLY: Mapping[str, NewExit] = {DIRECT: NewExit(DIRECT, DIRECT, (DEFAULT_POOL,))}
"""What a worker has that was told of no exits."""


@dataclass(frozen=True, slots=True)
class Lent:
    """An exit that no other worker has, and that leads far around. `works`: as of a ExitConnections."""

    pools: Sequence[str]
    address: ExitAddress
    works: Callable[[], Awaitable[bool]] | None = None


class ExitRegistry:
    """Names of exits by pool, and the way that each name stands for. `own`: those of the settings.

    `limit`: most connections by one exit. `tls`: None = the usual authorities. `guard`: of guarded ways; None = the one
    that lets pass what is public.
    `tor`: what the settings say of leaving by Tor; None = nothing. The exits themselves are lent by those who run them.
    `private`: pools in which other workers have other exits. `far`: exits by which a request is long on its way.
    """

    def __init__(
        self,
        own: Mapping[str, NewExit],
        store: Exits,
        limit: int = 100,
        tls: ssl.SSLContext | None = None,
        guard: Guard | None = None,
    ) -> None:
        self.tor = own.get(TOR)
        self._own = {name: exit_ for name, exit_ in own.items() if name != TOR}
        self._lent: dict[str, Lent] = {}
        self._taken: Mapping[str, NewExit] = self._own
        self._store = store
        self._limit = limit
        self._tls = tls
        self._guard = guard or Guard()
        self._addresses: dict[str, ExitAddress] = {}
        self.pools: dict[str, Sequence[str]] = {}
        self.private: Sequence[str] = ()
        self.far: set[str] = set()
        self._take(self._own)

    def lend(self, name: str, exit_: Lent) -> None:
        """One more exit, of this worker alone; or the same by another address."""
        self._lent[name] = exit_
        self.far.add(name)
        self.private = tuple(sorted({*self.private, *exit_.pools}))
        self._take(self._taken)

    def take_back(self, name: str) -> None:
        """That exit cannot be used for now."""
        self._lent.pop(name, None)
        self._take(self._taken)

    async def introduce(self) -> None:
        """Tell the store of the settings' exits, so that their caps hold everywhere and people can see them."""
        told = [exit_ for exit_ in self._own.values() if exit_.name != DIRECT or exit_.cap]
        if told:
            await self._store.put(told)

    async def refresh(self) -> Sequence[str]:
        """Look what was put into the store. Answers the exits whose address has changed or that are gone."""
        found: dict[str, NewExit] = {}
        for record in await self._store.all():
            if record.address not in ("", TOR) and record.name not in self._own:
                found[record.name] = NewExit(record.name, record.address, record.pools, record.cap)
        before = dict(self._addresses)
        self._take({**found, **self._own})
        return [name for name, address in before.items() if self._addresses.get(name) != address]

    def way(self, name: str, guarded: bool) -> ExitConnections:
        """The way that a name stands for. Raises FetchError if it is not known (any more)."""
        lent = self._lent.get(name)
        address = self._addresses.get(name) if lent is None else lent.address
        if address is None:
            raise FetchError(f"there is no exit {name!r} here", Blame.EXIT)
        # What is lent leaves from elsewhere: names are looked up there, and no inner address of ours can be reached.
        way = open_exit(address, self._limit, self._tls, self._guard if guarded and lent is None else None)
        if lent is not None:
            way.works, way.is_far = lent.works, True
        return way

    def _take(self, exits: Mapping[str, NewExit]) -> None:
        self._taken = exits
        addresses: dict[str, ExitAddress] = {}
        pools: dict[str, list[str]] = {}
        for exit_ in exits.values():
            try:
                addresses[exit_.name] = parse_exit(exit_.address)
            except BadSettings as error:
                log.warning(log_events.EXIT_REFUSED, exit=exit_.name, reason=str(error))
                continue
            for pool in exit_.pools:
                pools.setdefault(pool, []).append(exit_.name)
        for name, lent in self._lent.items():
            for pool in lent.pools:
                pools.setdefault(pool, []).append(name)
        self._addresses = addresses
        self.pools = {pool: tuple(names) for pool, names in pools.items()}
