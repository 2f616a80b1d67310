"""SQLite as an engine: the embedded default. One file, one writing thread per process, several processes at once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence, Set
from pathlib import Path

from shoal.clock import Clock, SystemClock
from shoal.frontier.lost_grants import lost_grants
from shoal.frontier.protocol import Ask, Enqueued, Granted, NewRun, Renewal, Run, Swept, WorkerInfo
from shoal.frontier.schema import Schema
from shoal.frontier.sqlite import runs
from shoal.frontier.sqlite.claim import claim
from shoal.frontier.sqlite.connection import connect_reading, open_file
from shoal.frontier.sqlite.enqueue import enqueue
from shoal.frontier.sqlite.exits import SqliteExits
from shoal.frontier.sqlite.jobs import SqliteJobs, SqliteRegistry
from shoal.frontier.sqlite.kept import hold_entries, keep_entries, keep_notes
from shoal.frontier.sqlite.moving import SqliteMover
from shoal.frontier.sqlite.reader import SqliteReader
from shoal.frontier.sqlite.settle import settle
from shoal.frontier.sqlite.sweep import sweep
from shoal.frontier.sqlite.transaction import Transaction, encode
from shoal.frontier.sqlite.writer import Writer
from shoal.kept import Entry
from shoal.presence import is_gone, is_of_another_boot, read_notebook, this_machine
from shoal.task import NewTask

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
        return await self._writer.call(lambda tx: _renew(tx, worker, leases))

    async def sweep(self) -> Swept:
        return await self._writer.call(lambda tx: sweep(tx, this_machine(), is_gone, read_notebook, is_of_another_boot))

    async def requeue_dead(self, run_id: str, tasks: Sequence[int] | None = None) -> int:
        return await self._writer.call(lambda tx: runs.requeue_dead(tx, runs.changeable(tx.find_run(run_id)), tasks))

    async def forget_notes(self, stream: str) -> None:
        while await self._writer.call(lambda tx: tx.run("forget_notes", stream=stream, most=NOTES_AT_ONCE)):
            pass

    async def purge_dead(self, run_id: str, tasks: Sequence[int] | None = None) -> int:
        return await self._writer.call(lambda tx: runs.purge_dead(tx, tx.find_run(run_id), tasks))


class SqliteCache:
    """The `Cache` of this engine."""

    def __init__(self, writer: Writer, reader: SqliteReader) -> None:
        self._writer = writer
        self._reader = reader

    async def get(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        return await self._reader.cached(keys)

    async def put(self, entries: Sequence[Entry]) -> None:
        await self._writer.call(lambda tx: keep_entries(tx, entries))

    async def hold(self, entries: Sequence[Entry]) -> Set[str]:
        return await self._writer.call(lambda tx: hold_entries(tx, entries))


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
    path: Path, *, create: bool = True, migrate: bool = False, clock: Clock | None = None
) -> SqliteEngine:
    """Open (or create) the file. Raises an EngineError with one clear sentence if it cannot be used.

    `migrate`: a file of an older version is brought up to this one.
    """
    clock = clock or SystemClock()
    connection, schema = await asyncio.to_thread(open_file, path, create=create, migrate=migrate)
    reading = await asyncio.to_thread(connect_reading, path)
    return SqliteEngine(Writer(connection, path, clock), SqliteReader(reading, path, clock), schema)


def _exchange(tx: Transaction, ask: Ask) -> Granted:
    worker = _greet(tx, ask.worker)
    lost = [] if ask.held is None else lost_grants(ask, tx.rows("find_leases_of_worker", worker=worker))
    late = settle(tx, [*ask.settlements, *lost])
    if ask.notes:
        keep_notes(tx, ask.notes)
    claimed = claim(tx, ask, worker)
    return Granted(claimed.leases, tx.now, claimed.wake_at, claimed.left, late)


def _renew(tx: Transaction, worker: WorkerInfo, leases: Sequence[Renewal]) -> Sequence[int]:
    _greet(tx, worker)
    rows = [[lease.task, lease.token] for lease in leases]
    tx.run("renew_leases", leases=rows, now=tx.now)
    alive = set(tx.rows("find_live_tokens", leases=rows))
    return [lease.token for lease in leases if lease.token not in alive]


def _greet(tx: Transaction, worker: WorkerInfo) -> int:
    """That a worker was seen now, to half a second: one that has nothing to do need not wait for the disk each time."""
    known = tx.value("find_worker", worker_id=worker.worker_id, now=tx.now)
    if known is not None:
        return int(known)
    return int(
        tx.value(
            "greet_worker",
            worker_id=worker.worker_id,
            machine=worker.machine,
            pid=worker.pid,
            pid_started=worker.pid_started,
            notebook=worker.notebook,
            duties=encode(worker.duties).decode(),
            now=tx.now,
        )
    )
