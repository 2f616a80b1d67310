"""Redis as an engine: many workers on many machines, on one server, on several watched by Sentinel, or on a cluster."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.core.clock import Clock
from shoal.core.task import NewTask
from shoal.frontier.contract.frontier import Ask, Enqueued, Granted, NewRun, Renewal, Run, Swept, WorkerInfo
from shoal.frontier.contract.schema import Schema
from shoal.frontier.contract.timeouts import StoreTimeouts
from shoal.frontier.redis.cache import RedisCache
from shoal.frontier.redis.claim import RedisClaims
from shoal.frontier.redis.enqueue import enqueue
from shoal.frontier.redis.exits import RedisExits
from shoal.frontier.redis.jobs import RedisJobs, RedisRegistry
from shoal.frontier.redis.mover import RedisMover
from shoal.frontier.redis.reader import RedisReader
from shoal.frontier.redis.runs import RedisRuns
from shoal.frontier.redis.schema import open_store
from shoal.frontier.redis.settle import RedisSettling
from shoal.frontier.redis.store.address import read_address
from shoal.frontier.redis.store.client import TIMEOUTS, RedisStore, connect
from shoal.frontier.redis.store.partitions import Partitions
from shoal.frontier.redis.sweep import RedisSweeps


class RedisFrontier:
    """The `Frontier` of this engine: each verb is one script in each partition that it concerns."""

    def __init__(self, store: RedisStore, partitions: Partitions, reader: RedisReader, exits: RedisExits) -> None:
        self._store = store
        self._partitions = partitions
        self._runs = RedisRuns(store, partitions, reader)
        self._settling = RedisSettling(store, partitions, exits)
        self._claims = RedisClaims(store, self._settling)
        self._sweeps = RedisSweeps(store, partitions)

    async def create_run(self, run: NewRun) -> Run:
        return await self._runs.create(run)

    async def seal_run(self, run_id: str) -> None:
        await self._runs.seal(run_id)

    async def pause_run(self, run_id: str) -> None:
        await self._runs.pause(run_id)

    async def resume_run(self, run_id: str) -> None:
        await self._runs.resume(run_id)

    async def cancel_run(self, run_id: str) -> None:
        await self._runs.cancel(run_id)

    async def enqueue(self, run_id: str, tasks: Sequence[NewTask]) -> Enqueued:
        return await enqueue(self._store, self._partitions, run_id, tasks)

    async def exchange(self, ask: Ask) -> Granted:
        return await self._claims.exchange(ask)

    async def renew(self, worker: WorkerInfo, leases: Sequence[Renewal]) -> Sequence[int]:
        return await self._claims.renew(worker, leases)

    async def sweep(self) -> Swept:
        return await self._sweeps.sweep()

    async def requeue_dead(self, run_id: str, tasks: Sequence[int] | None = None) -> int:
        return await self._runs.requeue_dead(run_id, tasks)

    async def purge_dead(self, run_id: str, tasks: Sequence[int] | None = None) -> int:
        return await self._runs.purge_dead(run_id, tasks)

    async def forget_notes(self, stream: str) -> None:
        await self._store.call("forget_notes", self._store.partition_of(stream), {"stream": stream})


class RedisEngine:
    """An open store. Made by `open_redis`. `losses`: what a crash can cost, as this server is set up."""

    shares_clock = False

    def __init__(self, store: RedisStore, schema: Schema, losses: tuple[str, ...]) -> None:
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
    url: str,
    *,
    create: bool = True,
    migrate: bool = False,
    clock: Clock | None = None,
    timeouts: StoreTimeouts | None = None,
) -> RedisEngine:
    """Open (or create) the store that an engine URL names. Raises a ShoalError with one clear sentence.

    `create`: False = the store must exist already. `migrate`: an older one is brought up to this version.
    `clock`: for tests, in place of the server's. `timeouts`: None = the usual ones.
    """
    address = read_address(url)
    client = connect(address, timeouts or TIMEOUTS)
    store, schema, losses = await open_store(client, address, create=create, migrate=migrate, clock=clock)
    return RedisEngine(store, schema, losses)
