"""PostgreSQL as an engine: one store for a fleet. Each verb is one call of one function, and one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

import asyncpg  # type: ignore[import-untyped]

from shoal.clock import Clock, Moment
from shoal.errors import BeingMoved, UnknownRun, UsageError
from shoal.frontier.lost_grants import lost_grants
from shoal.frontier.postgres.address import read_address
from shoal.frontier.postgres.connections import Connections
from shoal.frontier.postgres.exits import PostgresExits
from shoal.frontier.postgres.jobs import PostgresJobs, PostgresRegistry
from shoal.frontier.postgres.migration import prepare
from shoal.frontier.postgres.moving import PostgresMover
from shoal.frontier.postgres.payload import (
    ask_values,
    lease_of,
    run_values,
    settlement_columns,
    task_columns,
    worker_values,
)
from shoal.frontier.postgres.reader import PostgresReader
from shoal.frontier.postgres.troubles import NO_RUN, RUN_ARRIVING, RUN_CANCELLED, RUN_LEAVING, clear_errors
from shoal.frontier.protocol import Ask, Enqueued, Granted, NewRun, Renewal, Run, Swept, WorkerInfo
from shoal.frontier.schema import Schema
from shoal.kept import Entry
from shoal.presence import is_gone, read_notebook, this_machine
from shoal.task import Lease, NewTask

SWEEP_AT_MOST = 2000
"""How many rows of each kind one sweep touches."""

PATIENCE = 20
"""How often a claim waits for sites that others hold, before it comes back empty."""


class PostgresFrontier:
    """The `Frontier` of this engine.

    A verb whose connection broke raises EngineUnavailable, and may or may not have happened. Each can be repeated: keys
    make an enqueue idempotent (tasks without a key come twice), tokens an exchange: what the first call settled, the
    second reports as late. Leases whose grant was lost on the way come back with the next exchange that says what its
    worker holds, or else when they run out.
    """

    def __init__(self, connections: Connections, reader: PostgresReader, clock: Clock | None) -> None:
        self._connections = connections
        self._reader = reader
        self._clock = clock
        self._looked_at: tuple[int | None, str | None] = (None, None)
        """The last slot, by number of the site and exit, that a sweep looked at: the next one goes on from there."""

    async def create_run(self, run: NewRun) -> Run:
        await self._connections.rows("create_run", self._now(), *run_values(run))
        return await self._reader.run(run.run_id)

    async def seal_run(self, run_id: str) -> None:
        await self._of_run(run_id, "change_run", self._now(), run_id, "seal")

    async def pause_run(self, run_id: str) -> None:
        await self._of_run(run_id, "change_run", self._now(), run_id, "pause")

    async def resume_run(self, run_id: str) -> None:
        await self._of_run(run_id, "resume_run", self._now(), run_id)

    async def cancel_run(self, run_id: str) -> None:
        await self._of_run(run_id, "change_run", self._now(), run_id, "cancel")

    async def enqueue(self, run_id: str, tasks: Sequence[NewTask]) -> Enqueued:
        cancelled = f"Run {run_id!r} was cancelled and takes no more tasks. Start a new run."
        columns = task_columns(tasks)
        row = (await self._of_run(run_id, "enqueue", self._now(), run_id, *columns, cancelled=cancelled))[0]
        return Enqueued(row[0], row[1])

    async def exchange(self, ask: Ask) -> Granted:
        lost = [] if ask.held is None else lost_grants(ask, await self._leases_of(ask.worker))
        settlements = [*ask.settlements, *lost]
        rows = await self._connections.rows(
            "exchange", self._now(), *ask_values(ask, ask.want, patient=False), *settlement_columns(settlements)
        )
        leases, now, wake_at, left, stood, busy = _granted(rows)
        late: list[int] = []
        if len(stood) < len(settlements):
            on_time = set(stood)
            late = [s.token for position, s in enumerate(ask.settlements, 1) if position not in on_time]
        if busy and not leases:
            leases, now, wake_at, left = await self._wait_for_others(ask)
        return Granted(leases, now, wake_at, left, late)

    async def renew(self, worker: WorkerInfo, leases: Sequence[Renewal]) -> Sequence[int]:
        tasks, tokens = [lease.task for lease in leases], [lease.token for lease in leases]
        alive = set(await self._connections.value("renew", self._now(), *worker_values(worker), tasks, tokens))
        return [token for token in tokens if token not in alive]

    async def sweep(self) -> Swept:
        holders = await self._connections.rows("find_holders", this_machine())
        gone = [(worker, notebook) for worker, pid, started, notebook in holders if is_gone(pid, started)]
        hands = {worker: read_notebook(notebook) for worker, notebook in gone}
        read = {worker: hand for worker, hand in hands.items() if hand is not None}
        in_hand = sorted(task for hand in read.values() for task in hand)
        values = (list(hands), list(read), in_hand, SWEEP_AT_MOST, *self._looked_at)
        site, way_out, *swept = await self._connections.row("sweep", self._now(), *values)
        self._looked_at = (site, way_out)
        return Swept(*swept)

    async def requeue_dead(self, run_id: str, tasks: Sequence[int] | None = None) -> int:
        cancelled = f"Run {run_id!r} was cancelled; its dead letters cannot be tried again."
        values = (self._now(), run_id, None if tasks is None else list(tasks))
        return int((await self._of_run(run_id, "requeue_dead", *values, cancelled=cancelled))[0][0])

    async def forget_notes(self, stream: str) -> None:
        await self._connections.rows("forget_notes", stream)

    async def purge_dead(self, run_id: str, tasks: Sequence[int] | None = None) -> int:
        return int((await self._of_run(run_id, "purge_dead", run_id, None if tasks is None else list(tasks)))[0][0])

    async def _leases_of(self, worker: WorkerInfo) -> list[Any]:
        return await self._connections.rows("find_leases", worker.worker_id)

    async def _wait_for_others(self, ask: Ask) -> tuple[list[Lease], Moment, Moment | None, int]:
        """Everything due was locked by others: wait for their locks, now that this call holds none itself."""
        nothing = settlement_columns(())
        for _ in range(PATIENCE):
            values = ask_values(ask, ask.want, patient=True)
            rows = await self._connections.rows("exchange", self._now(), *values, *nothing)
            leases, now, wake_at, left, _, busy = _granted(rows)
            if leases or not busy:
                break
        return leases, now, wake_at, left

    async def _of_run(self, run_id: str, function: str, *values: Any, cancelled: str = "") -> list[Any]:
        try:
            return await self._connections.rows(function, *values)
        except asyncpg.PostgresError as error:
            if error.sqlstate == NO_RUN:
                raise UnknownRun(run_id) from None
            if error.sqlstate == RUN_CANCELLED:
                raise UsageError(cancelled) from None
            if error.sqlstate in (RUN_LEAVING, RUN_ARRIVING):
                raise BeingMoved(run_id, arriving=error.sqlstate == RUN_ARRIVING) from None
            raise

    def _now(self) -> Moment | None:
        return self._clock.now() if self._clock else None


class PostgresCache:
    """The `Cache` of this engine."""

    def __init__(self, connections: Connections, reader: PostgresReader, clock: Clock | None) -> None:
        self._connections = connections
        self._reader = reader
        self._clock = clock

    async def get(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        return await self._reader.cached(keys)

    async def put(self, entries: Sequence[Entry]) -> None:
        await self._call("write_cache", entries)

    async def hold(self, entries: Sequence[Entry]) -> Set[str]:
        return {key for (key,) in await self._call("hold_cache", entries)}

    async def _call(self, function: str, entries: Sequence[Entry]) -> list[Any]:
        now = self._clock.now() if self._clock else None
        columns = zip(*((entry.key, entry.value, entry.ttl) for entry in entries), strict=True)
        return await self._connections.rows(function, now, *(map(list, columns) if entries else ([], [], [])))


class PostgresEngine:
    """An open store. Made by `open_postgres`."""

    shares_clock = False
    losses = ()

    def __init__(self, connections: Connections, clock: Clock | None, schema: Schema) -> None:
        self._connections = connections
        self.schema = schema
        self.reader = PostgresReader(connections, clock)
        self.frontier = PostgresFrontier(connections, self.reader, clock)
        self.cache = PostgresCache(connections, self.reader, clock)
        self.exits = PostgresExits(connections, clock)
        self.jobs = PostgresJobs(connections, clock)
        self.registry = PostgresRegistry(connections)
        self.mover = PostgresMover(connections, clock)

    async def close(self) -> None:
        await self._connections.close()


async def open_postgres(
    url: str, *, create: bool = True, migrate: bool = False, clock: Clock | None = None
) -> PostgresEngine:
    """Open the store behind a URL, making its schema if need be. Raises an EngineError with one clear sentence.

    `create`: False = the schema must be there already. `migrate`: an older one is brought up to this version.
    `clock`: for tests only; the server's own clock decides.
    """
    address = read_address(url)
    connections = Connections(address)
    with clear_errors(address):
        connection = await connections.connect()
        try:
            schema = await prepare(connection, address, create=create, migrate=migrate)
        finally:
            await connection.close(timeout=5)
    return PostgresEngine(connections, clock, schema)


def _granted(rows: list[Any]) -> tuple[list[Lease], Moment, Moment | None, int, list[int], bool]:
    now, wake_at, left, stood, busy = rows[-1][20:25]
    return [lease_of(row, now) for row in rows[:-1]], now, wake_at, left, stood, busy
