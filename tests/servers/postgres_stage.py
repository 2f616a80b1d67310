"""Stores for tests of PostgreSQL, and what is asked of them: by a worker elsewhere, for its pages, with its results."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg  # type: ignore[import-untyped]

from servers.postgres import shared_server
from shoal.core.outcome import Done, Settlement
from shoal.core.task import DEFAULT_POOL, Lease, NewTask
from shoal.frontier.contract.frontier import Ask, WorkerInfo

WORKER = WorkerInfo("w", "another machine", 1, 1)


def ask(want: int = 0, *settlements: Settlement, worker: WorkerInfo = WORKER) -> Ask:
    return Ask(worker, ("shop",), ("bulk",), {DEFAULT_POOL: ("direct",)}, want, None, settlements)


def done(lease: Lease, *items: bytes) -> Settlement:
    return Settlement(lease.task.run_id, lease.task.id, lease.token, Done(items), lease.claimed_at, 1)


def pages(site: str, number: int) -> list[NewTask]:
    return [NewTask(f"https://{site}/{n}", site, None) for n in range(number)]


_emptied: list[str] = []
_numbers = itertools.count(1)


@asynccontextmanager
async def emptied_store() -> AsyncIterator[str]:
    """The URL of a store that nothing is in, for tests that leave no process behind.

    It is made once, emptied after each use, and used again: to make its functions takes a hundred times as long.
    """
    schema = _emptied.pop() if _emptied else f"emptied_{next(_numbers)}"
    yield shared_server().url(schema=schema)
    await _empty(schema)
    _emptied.append(schema)


async def _empty(schema: str) -> None:
    """All rows go, and numbers begin anew."""
    connection = await asyncpg.connect(shared_server().url(user="postgres"))
    try:
        await connection.execute("SET session_replication_role = replica")  # so that they may go in any order
        tables = "SELECT tablename FROM pg_tables WHERE schemaname = $1 AND tablename NOT IN ('meta', 'ledger')"
        numbers = "SELECT sequencename FROM pg_sequences WHERE schemaname = $1"
        deletes = [f"DELETE FROM {schema}.{name}" for (name,) in await connection.fetch(tables, schema)]  # noqa: S608 - names of our own
        restarts = [
            f"SELECT setval('{schema}.{name}', 1, false)" for (name,) in await connection.fetch(numbers, schema)
        ]
        await connection.execute("; ".join(deletes + restarts))
    finally:
        await connection.close()
