"""The cache of answers and other values that do not last: each beside the site that it belongs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from shoal.core.notes import Entry
from shoal.core.storable import is_storable
from shoal.frontier.redis.codec.notes import entry_rows, home_of
from shoal.frontier.redis.store.client import RedisStore


class RedisCache:
    """The `Cache` of this engine."""

    def __init__(self, store: RedisStore) -> None:
        self._store = store

    async def get(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        apart: dict[int, list[str]] = {}
        for key in filter(is_storable, keys):
            apart.setdefault(self._store.partition_of(home_of(key)), []).append(key)
        found: dict[str, bytes] = {}
        for partition, some in apart.items():
            values = await self._store.call("read_cache", partition, {"keys": some})
            found.update({key: value for key, value in zip(some, values, strict=True) if value is not None})
        return found

    async def put(self, entries: Sequence[Entry]) -> None:
        for partition, some in self._apart(entries).items():
            await self._store.call("write_cache", partition, {"entries": entry_rows(some)})

    async def hold(self, entries: Sequence[Entry]) -> Set[str]:
        held: set[str] = set()
        for partition, some in self._apart(entries).items():
            answers = await self._store.call("hold_cache", partition, {"entries": entry_rows(some)})
            held.update(entry.key for entry, answer in zip(some, answers, strict=True) if answer)
        return held

    def _apart(self, entries: Sequence[Entry]) -> dict[int, list[Entry]]:
        apart: dict[int, list[Entry]] = {}
        for entry in entries:
            apart.setdefault(self._store.partition_of(home_of(entry.key)), []).append(entry)
        return apart
