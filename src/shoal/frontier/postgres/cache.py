"""The cache that workers share: values under keys, each for a while."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

from shoal.core.notes import Entry
from shoal.frontier.postgres.reader import PostgresReader
from shoal.frontier.postgres.store.columns import turned
from shoal.frontier.postgres.store.connections import Connections


class PostgresCache:
    """The `Cache` of this engine."""

    def __init__(self, connections: Connections, reader: PostgresReader) -> None:
        self._connections = connections
        self._reader = reader

    async def get(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        return await self._reader.cached(keys)

    async def put(self, entries: Sequence[Entry]) -> None:
        await self._call("write_cache", entries)

    async def hold(self, entries: Sequence[Entry]) -> Set[str]:
        return {row["key"] for row in await self._call("hold_cache", entries)}

    async def _call(self, function: str, entries: Sequence[Entry]) -> list[Any]:
        columns = turned([(entry.key, entry.value, entry.ttl) for entry in entries], 3)
        return await self._connections.rows(function, self._connections.now(), *columns)
