"""Exits as people know them: the book, and what is said about them by hand."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from shoal.core.clock import Millis, Moment
from shoal.core.storable import findable
from shoal.core.task import Policy
from shoal.frontier.contract.exits import ExitRecord, NewExit
from shoal.frontier.postgres.store.columns import SiteRules, encode
from shoal.frontier.postgres.store.connections import Connections

_bans = msgspec.json.Decoder(tuple[tuple[str, Moment], ...])


class PostgresExits:
    """The `Exits` of this engine."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def put(self, exits: Sequence[NewExit]) -> None:
        last = {each.name: each for each in exits}.values()
        names, addresses = [each.name for each in last], [each.address for each in last]
        pools, caps = [encode(each.pools).decode() for each in last], [each.cap for each in last]
        await self._connections.rows("put_exits", names, addresses, pools, caps)

    async def remove(self, names: Sequence[str]) -> int:
        return int(await self._connections.value("remove_exits", list(names)))

    async def all(self) -> Sequence[ExitRecord]:
        return [
            ExitRecord(
                name=row["name"],
                address=row["address"],
                pools=tuple(row["pools"]),
                cap=row["cap"],
                failures=row["failures"],
                quarantined_until=row["quarantined_until"],
                live=row["live"],
                bans=_bans.decode(row["bans"]),
            )
            for row in await self._connections.rows("read_exits", self._connections.now())
        ]

    async def ban(self, name: str, wait: Millis, site: str | None = None) -> None:
        policy = Policy()
        rules = SiteRules(**{field: getattr(policy, field) for field in SiteRules.__struct_fields__})
        await self._connections.rows("ban_exit", self._connections.now(), name, wait, site, rules)

    async def release(self, name: str, site: str | None = None) -> None:
        await self._connections.rows("release_exit", self._connections.now(), name, site)

    async def release_site(self, site: str) -> bool:
        return bool(await self._connections.value("release_site", self._connections.now(), findable(site)))
