"""PostgreSQL as an engine: one store for a fleet. Each verb is one call of one function, and one transaction."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.core.clock import Clock
from shoal.core.task import NewTask
from shoal.frontier.contract.frontier import Ask, Enqueued, Granted, NewRun, Renewal, Run, Swept, WorkerInfo
from shoal.frontier.contract.schema import Schema
from shoal.frontier.contract.timeouts import StoreTimeouts
from shoal.frontier.postgres.cache import PostgresCache
from shoal.frontier.postgres.claim import PostgresClaims
from shoal.frontier.postgres.enqueue import enqueue
from shoal.frontier.postgres.exits import PostgresExits
from shoal.frontier.postgres.jobs import PostgresJobs, PostgresRegistry
from shoal.frontier.postgres.mover import PostgresMover
from shoal.frontier.postgres.reader import PostgresReader
from shoal.frontier.postgres.runs import PostgresRuns
from shoal.frontier.postgres.schema import open_store
from shoal.frontier.postgres.store.address import read_address
from shoal.frontier.postgres.store.connections import TIMEOUTS, Connections
from shoal.frontier.postgres.sweep import PostgresSweeps


class PostgresFrontier:
    """The `Frontier` of this engine.

    A verb whose connection broke raises EngineUnavailable, and may or may not have happened. Each can be repeated: keys
    make an enqueue idempotent (tasks without a key come twice), tokens an exchange.
    """

    def __init__(self, connections: Connections, reader: PostgresReader) -> None:
        self._connections = connections
        self._runs = PostgresRuns(connections, reader)
        self._claims = PostgresClaims(connections)
        self._sweeps = PostgresSweeps(connections)

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
        return await enqueue(self._connections, run_id, tasks)

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
        await self._connections.rows("forget_notes", stream)


class PostgresEngine:
    """An open store. Made by `open_postgres`."""

    shares_clock = False
    losses = ()

    def __init__(self, connections: Connections, clock: Clock | None, schema: Schema) -> None:
        self._connections = connections
        self.schema = schema
        self.reader = PostgresReader(connections, clock)
        self.frontier = PostgresFrontier(connections, self.reader)
        self.cache = PostgresCache(connections, self.reader)
        self.exits = PostgresExits(connections)
        self.jobs = PostgresJobs(connections, clock)
        self.registry = PostgresRegistry(connections)
        self.mover = PostgresMover(connections, clock)

    async def close(self) -> None:
        await self._connections.close()


async def open_postgres(
    url: str,
    *,
    create: bool = True,
    migrate: bool = False,
    clock: Clock | None = None,
    timeouts: StoreTimeouts | None = None,
) -> PostgresEngine:
    """Open the store behind a URL, making its schema if need be. Raises an EngineError with one clear sentence.

    `create`: False = the schema must be there already. `migrate`: an older one is brought up to this version.
    `clock`: for tests only; the server's own clock decides. `timeouts`: None = the usual ones.
    """
    connections = Connections(read_address(url), clock, timeouts or TIMEOUTS)
    schema = await open_store(connections, create=create, migrate=migrate)
    return PostgresEngine(connections, clock, schema)
