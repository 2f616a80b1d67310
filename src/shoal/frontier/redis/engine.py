"""Redis as an engine: many workers on many machines, on one server, on several watched by Sentinel, or on a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from shoal.clock import Clock
from shoal.frontier.redis.address import read_address
from shoal.frontier.redis.exits import RedisExits
from shoal.frontier.redis.frontier import RedisFrontier
from shoal.frontier.redis.jobs import RedisJobs, RedisRegistry
from shoal.frontier.redis.moving import RedisMover
from shoal.frontier.redis.opening import open_store
from shoal.frontier.redis.partitions import Partitions
from shoal.frontier.redis.reader import RedisReader
from shoal.frontier.redis.store import Store
from shoal.frontier.redis.wire import entry_rows, home_of
from shoal.frontier.schema import Schema
from shoal.kept import Entry


class RedisCache:
    """The `Cache` of this engine."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def get(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        apart: dict[int, list[str]] = {}
        for key in keys:
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


class RedisEngine:
    """An open store. Made by `open_redis`. `losses`: what a crash can cost, as this server is set up."""

    shares_clock = False

    def __init__(self, store: Store, schema: Schema, losses: tuple[str, ...]) -> None:
        self._store = store
        self.schema = schema
        self.losses = losses
        self.reader = RedisReader(store)
        partitions = Partitions(store)
        self.exits = RedisExits(store)
        self.frontier = RedisFrontier(store, partitions, self.reader, self.exits)
        self.cache = RedisCache(store)
        self.jobs = RedisJobs(store, partitions)
        self.registry = RedisRegistry(store)
        self.mover = RedisMover(store, partitions, self.reader)

    async def close(self) -> None:
        await self._store.close()


async def open_redis(
    url: str, *, create: bool = True, migrate: bool = False, clock: Clock | None = None
) -> RedisEngine:
    """Open (or create) the store that an engine URL names. Raises a ShoalError with one clear sentence.

    `create`: False = the store must exist already. `migrate`: an older one is brought up to this version.
    `clock`: for tests, in place of the server's.
    """
    store, schema, losses = await open_store(read_address(url), create=create, migrate=migrate, clock=clock)
    return RedisEngine(store, schema, losses)
