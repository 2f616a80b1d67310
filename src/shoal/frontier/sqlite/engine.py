"""SQLite as an engine: the embedded default. One file, one writing thread per process, several processes at once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from shoal.clock import Clock, Millis, SystemClock
from shoal.frontier.protocol import (
    Ask,
    Enqueued,
    Granted,
    NewRun,
    Renewal,
    Run,
    Swept,
    WorkerInfo,
)
from shoal.frontier.sqlite import runs
from shoal.frontier.sqlite.claim import claim
from shoal.frontier.sqlite.connection import connect, connect_reading
from shoal.frontier.sqlite.enqueue import enqueue
from shoal.frontier.sqlite.reader import SqliteReader
from shoal.frontier.sqlite.settle import settle
from shoal.frontier.sqlite.sweep import sweep
from shoal.frontier.sqlite.transaction import Transaction
from shoal.frontier.sqlite.writer import Writer
from shoal.presence import is_gone, is_of_another_boot, read_notebook, this_machine
from shoal.task import NewTask


class SqliteFrontier:
    """The `Frontier` of this engine: each verb is one transaction."""

    def __init__(self, writer: Writer, reader: SqliteReader) -> None:
        self._writer = writer
        self._reader = reader

    async def create_run(self, run: NewRun) -> Run:
        await self._writer.call(lambda tx: runs.create_run(tx, run))
        return await self._reader.run(run.run_id)

    async def seal_run(self, run_id: str) -> None:
        await self._writer.call(lambda tx: runs.seal_run(tx, tx.find_run(run_id)))

    async def pause_run(self, run_id: str) -> None:
        await self._writer.call(lambda tx: runs.pause_run(tx, tx.find_run(run_id)))

    async def resume_run(self, run_id: str) -> None:
        await self._writer.call(lambda tx: runs.resume_run(tx, tx.find_run(run_id)))

    async def cancel_run(self, run_id: str) -> None:
        await self._writer.call(lambda tx: runs.cancel_run(tx, tx.find_run(run_id)))

    async def enqueue(self, run_id: str, tasks: Sequence[NewTask]) -> Enqueued:
        return await self._writer.call(lambda tx: enqueue(tx, tx.find_run(run_id), tasks))

    async def exchange(self, ask: Ask) -> Granted:
        return await self._writer.call(lambda tx: _exchange(tx, ask))

    async def renew(self, worker: WorkerInfo, leases: Sequence[Renewal]) -> Sequence[int]:
        return await self._writer.call(lambda tx: _renew(tx, worker, leases))

    async def sweep(self) -> Swept:
        return await self._writer.call(lambda tx: sweep(tx, this_machine(), is_gone, read_notebook, is_of_another_boot))

    async def requeue_dead(self, run_id: str, tasks: Sequence[int] | None = None) -> int:
        return await self._writer.call(lambda tx: runs.requeue_dead(tx, tx.find_run(run_id), tasks))

    async def purge_dead(self, run_id: str, tasks: Sequence[int] | None = None) -> int:
        return await self._writer.call(lambda tx: runs.purge_dead(tx, tx.find_run(run_id), tasks))


class SqliteCache:
    """The `Cache` of this engine."""

    def __init__(self, writer: Writer, reader: SqliteReader) -> None:
        self._writer = writer
        self._reader = reader

    async def get(self, key: str) -> bytes | None:
        return await self._reader.cached(key)

    async def put(self, key: str, value: bytes, ttl: Millis) -> None:
        await self._writer.call(lambda tx: tx.run("write_cache", key=key, value=value, expires_at=tx.now + ttl))


class SqliteEngine:
    """An open file. Made by `open_sqlite`."""

    shares_clock = True

    def __init__(self, writer: Writer, reader: SqliteReader) -> None:
        self._writer = writer
        self._reader = reader
        self.frontier = SqliteFrontier(writer, reader)
        self.reader = reader
        self.cache = SqliteCache(writer, reader)

    async def close(self) -> None:
        await self._writer.close()
        await self._reader.close()


async def open_sqlite(path: Path, *, create: bool = True, clock: Clock | None = None) -> SqliteEngine:
    """Open (or create) the file. Raises an EngineError with one clear sentence if it cannot be used."""
    clock = clock or SystemClock()
    connection = await asyncio.to_thread(connect, path, create=create)
    reading = await asyncio.to_thread(connect_reading, path)
    return SqliteEngine(Writer(connection, path, clock), SqliteReader(reading, path, clock))


def _exchange(tx: Transaction, ask: Ask) -> Granted:
    late = settle(tx, ask.settlements)
    worker = _greet(tx, ask.worker)
    claimed = claim(tx, ask, worker)
    return Granted(claimed.leases, tx.now, claimed.wake_at, claimed.left, late)


def _renew(tx: Transaction, worker: WorkerInfo, leases: Sequence[Renewal]) -> Sequence[int]:
    _greet(tx, worker)
    rows = [[lease.task, lease.token] for lease in leases]
    tx.run("renew_leases", leases=rows, now=tx.now)
    alive = set(tx.rows("find_live_tokens", leases=rows))
    return [lease.token for lease in leases if lease.token not in alive]


def _greet(tx: Transaction, worker: WorkerInfo) -> int:
    return int(
        tx.value(
            "greet_worker",
            worker_id=worker.worker_id,
            machine=worker.machine,
            pid=worker.pid,
            pid_started=worker.pid_started,
            notebook=worker.notebook,
            now=tx.now,
        )
    )
