"""The exits that a worker can leave by: those of its settings, and those that were put into the store meanwhile."""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence

import structlog

from shoal.errors import BadSettings
from shoal.exits import ExitAddress, parse_exit
from shoal.fetch.guard import Guard
from shoal.fetch.protocol import FetchError
from shoal.fetch.ways import Way, open_way
from shoal.frontier.exits import Exits, NewExit
from shoal.outcome import Blame
from shoal.task import DEFAULT_POOL, DIRECT

log = structlog.get_logger("shoal")

DIRECTLY: Mapping[str, NewExit] = {DIRECT: NewExit(DIRECT, DIRECT, (DEFAULT_POOL,))}
"""What a worker has that was told of no exits."""


class ExitBook:
    """Names of exits by pool, and the way that each name stands for. `own`: those of the settings.

    `limit`: most connections by one exit. `tls`: None = the usual authorities. `guard`: of guarded ways; None = the one
    that lets pass what is public.
    """

    def __init__(
        self,
        own: Mapping[str, NewExit],
        store: Exits,
        limit: int = 100,
        tls: ssl.SSLContext | None = None,
        guard: Guard | None = None,
    ) -> None:
        self._own = dict(own)
        self._store = store
        self._limit = limit
        self._tls = tls
        self._guard = guard or Guard()
        self._addresses: dict[str, ExitAddress] = {}
        self.pools: dict[str, Sequence[str]] = {}
        self._take(self._own)

    async def introduce(self) -> None:
        """Tell the store of the settings' exits, so that their caps hold everywhere and people can see them."""
        told = [exit_ for exit_ in self._own.values() if exit_.name != DIRECT or exit_.cap]
        if told:
            await self._store.put(told)

    async def refresh(self) -> Sequence[str]:
        """Look what was put into the store. Answers the exits whose address has changed or that are gone."""
        found: dict[str, NewExit] = {}
        for record in await self._store.all():
            if record.address and record.name not in self._own:
                found[record.name] = NewExit(record.name, record.address, record.pools, record.cap)
        before = dict(self._addresses)
        self._take({**found, **self._own})
        return [name for name, address in before.items() if self._addresses.get(name) != address]

    def way(self, name: str, guarded: bool) -> Way:
        """The way that a name stands for. Raises FetchError if it is not known (any more)."""
        address = self._addresses.get(name)
        if address is None:
            raise FetchError(f"there is no exit {name!r} here", Blame.EXIT)
        return open_way(address, self._limit, self._tls, self._guard if guarded else None)

    def _take(self, exits: Mapping[str, NewExit]) -> None:
        addresses: dict[str, ExitAddress] = {}
        pools: dict[str, list[str]] = {}
        for exit_ in exits.values():
            try:
                addresses[exit_.name] = parse_exit(exit_.address)
            except BadSettings as error:
                log.warning("an exit cannot be used", exit=exit_.name, reason=str(error))
                continue
            for pool in exit_.pools:
                pools.setdefault(pool, []).append(exit_.name)
        self._addresses = addresses
        self.pools = {pool: tuple(names) for pool, names in pools.items()}
