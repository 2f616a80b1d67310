"""SQLite as an engine: the embedded default. One file, one writing thread per process, several processes at once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from shoal.core.clock import Clock, SystemClock
from shoal.core.task import NewTask
from shoal.frontier.contract.frontier import Ask, Enqueued, Granted, NewRun, Renewal, Run, Swept, WorkerInfo
from shoal.frontier.contract.schema import Schema
from shoal.frontier.contract.timeouts import StoreTimeouts
from shoal.frontier.shared.liveness import is_gone, is_of_another_boot, read_notebook, this_machine
from shoal.frontier.shared.lost_grants import lost_grants
from shoal.frontier.sqlite import runs
from shoal.frontier.sqlite.cache import SqliteCache
from shoal.frontier.sqlite.claim import claim, renew
from shoal.frontier.sqlite.enqueue import enqueue
from shoal.frontier.sqlite.exits import SqliteExits
from shoal.frontier.sqlite.jobs import SqliteJobs, SqliteRegistry
from shoal.frontier.sqlite.mover import SqliteMover
from shoal.frontier.sqlite.reader import SqliteReader
from shoal.frontier.sqlite.records.notes import forget_notes, keep_notes
from shoal.frontier.sqlite.records.workers import greet, leases_of
from shoal.frontier.sqlite.settle import settle
from shoal.frontier.sqlite.store.connection import TIMEOUTS, connect_reading, open_file
from shoal.frontier.sqlite.store.transaction import Transaction
from shoal.frontier.sqlite.store.writer import Writer
from shoal.frontier.sqlite.sweep import sweep

NOTES_AT_ONCE = 10_000


class SqliteFrontier:
    """The `Frontier` of this engine: each verb is one transaction."""

    def __init__(self, writer: Writer, reader: SqliteReader) -> None:
        self._writer = writer
        self._reader = reader

    async def create_run(self, run: NewRun) -> Run:
        await self._writer.call(lambda tx: runs.create_run(tx, run))
        return await self._reader.run(run.run_id)

    async def seal_run(self, run_id: str) -> None:
        await self._writer.call(lambda tx: runs.seal_run(tx, runs.changeable(tx.find_run(run_id))))

    async def pause_run(self, run_id: str) -> None:
        await self._writer.call(lambda tx: runs.pause_run(tx, tx.find_run(run_id)))

    async def resume_run(self, run_id: str) -> None:
        await self._writer.call(lambda tx: runs.resume_run(tx, tx.find_run(run_id)))

    async def cancel_run(self, run_id: str) -> None:
        await self._writer.call(lambda tx: runs.cancel_run(tx, tx.find_run(run_id)))

    async def enqueue(self, run_id: str, tasks: Sequence[NewTask]) -> Enqueued:
        return await self._writer.call(lambda tx: enqueue(tx, runs.changeable(tx.find_run(run_id)), tasks))

    async def exchange(self, ask: Ask) -> Granted:
        return await self._writer.call(lambda tx: _exchange(tx, ask))

    async def renew(self, worker: WorkerInfo, leases: Sequence[Renewal]) -> Sequence[int]:
        return await self._writer.call(lambda tx: renew(tx, worker, leases))

    async def sweep(self) -> Swept:
        return await self._writer.call(lambda tx: sweep(tx, this_machine(), is_gone, read_notebook, is_of_another_boot))

    async def requeue_dead(self, run_id: str, tasks: Sequence[int] | None = None) -> int:
        return await self._writer.call(lambda tx: runs.requeue_dead(tx, runs.changeable(tx.find_run(run_id)), tasks))

    async def forget_notes(self, stream: str) -> None:
        while await self._writer.call(lambda tx: forget_notes(tx, stream, NOTES_AT_ONCE)):
            pass

    async def purge_dead(self, run_id: str, tasks: Sequence[int] | None = None) -> int:
        return await self._writer.call(lambda tx: runs.purge_dead(tx, tx.find_run(run_id), tasks))


class SqliteEngine:
    """An open file. Made by `open_sqlite`."""

    shares_clock = True
    losses = ()

    def __init__(self, writer: Writer, reader: SqliteReader, schema: Schema) -> None:
        self._writer = writer
        self._reader = reader
        self.schema = schema
        self.frontier = SqliteFrontier(writer, reader)
        self.reader = reader
        self.cache = SqliteCache(writer, reader)
        self.exits = SqliteExits(writer, reader)
        self.jobs = SqliteJobs(writer, reader)
        self.registry = SqliteRegistry(writer, reader)
        self.mover = SqliteMover(writer, reader)

    async def close(self) -> None:
        await self._writer.close()
        await self._reader.close()


async def open_sqlite(
    path: Path,
    *,
    create: bool = True,
    migrate: bool = False,
    clock: Clock | None = None,
    timeouts: StoreTimeouts | None = None,
) -> SqliteEngine:
    """Open (or create) the file. Raises an EngineError with one clear sentence if it cannot be used.

    `migrate`: a file of an older version is brought up to this one. `timeouts`: None = the usual ones.
    """
    clock = clock or SystemClock()
    patience = (timeouts or TIMEOUTS).call
    connection, schema = await asyncio.to_thread(open_file, path, create=create, migrate=migrate, patience=patience)
    reading = await asyncio.to_thread(connect_reading, path, patience)
    return SqliteEngine(Writer(connection, path, clock), SqliteReader(reading, path, clock), schema)


def _exchange(tx: Transaction, ask: Ask) -> Granted:
    worker = greet(tx, ask.worker)
    lost = [] if ask.held is None else lost_grants(ask, leases_of(tx, worker))
    late = settle(tx, [*ask.settlements, *lost])
    if ask.notes:
        keep_notes(tx, ask.notes)
    claimed = claim(tx, ask, worker)
    return Granted(claimed.leases, tx.now, claimed.wake_at, claimed.left, late)
