"""Ways out as people know them: the book, and what is said about them by hand."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from shoal.clock import Clock, Millis, Moment
from shoal.frontier.exits import ExitRecord, NewExit
from shoal.frontier.postgres.connections import Connections
from shoal.frontier.postgres.payload import encode
from shoal.task import Policy

_bans = msgspec.json.Decoder(tuple[tuple[str, Moment], ...])


class PostgresExits:
    """The `Exits` of this engine."""

    def __init__(self, connections: Connections, clock: Clock | None) -> None:
        self._connections = connections
        self._clock = clock

    async def put(self, exits: Sequence[NewExit]) -> None:
        last = {each.name: each for each in exits}.values()
        names, addresses = [each.name for each in last], [each.address for each in last]
        pools, caps = [encode(each.pools).decode() for each in last], [each.cap for each in last]
        await self._connections.rows("put_exits", names, addresses, pools, caps)

    async def remove(self, names: Sequence[str]) -> int:
        return int(await self._connections.value("remove_exits", list(names)))

    async def all(self) -> Sequence[ExitRecord]:
        return [
            ExitRecord(name, address, tuple(pools), cap, failures, until, live, _bans.decode(bans))
            for name, address, pools, cap, failures, until, live, bans in await self._connections.rows(
                "read_exits", self._now()
            )
        ]

    async def ban(self, name: str, wait: Millis, site: str | None = None) -> None:
        rules = Policy()
        await self._connections.rows(
            "ban_exit",
            self._now(),
            name,
            wait,
            site,
            rules.delay,
            rules.site_delay,
            rules.concurrency,
            rules.hard_timeout,
            rules.lease,
            rules.limit_exits,
            rules.limit_window,
        )

    async def release(self, name: str, site: str | None = None) -> None:
        await self._connections.rows("release_exit", self._now(), name, site)

    def _now(self) -> Moment | None:
        return self._clock.now() if self._clock else None
