"""A run accepts a key once, wherever the key has got to: appended of late, sorted in, or both."""

from __future__ import annotations

import contextlib
import random
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from shoal.core.clock import SystemClock
from shoal.core.task import Policy
from shoal.errors import UsageError
from shoal.frontier.contract.frontier import NewRun
from shoal.frontier.sqlite.engine import SqliteEngine
from shoal.frontier.sqlite.enqueue import enqueue
from shoal.frontier.sqlite.reader import SqliteReader
from shoal.frontier.sqlite.records.seen import SeenLately
from shoal.frontier.sqlite.store.connection import connect_reading, open_file
from shoal.frontier.sqlite.store.transaction import Transaction
from shoal.frontier.sqlite.store.writer import Writer
from shoal.frontier.sqlite.store.writer_cache import WriterCache
from shoal.testing.contract.scene import page

LATELY = 100
"""So many keys wait for their place at most, in these tests."""


@contextlib.asynccontextmanager
async def opened(path: Path) -> AsyncIterator[SqliteEngine]:
    connection, schema = open_file(path, create=True, migrate=False)
    clock = SystemClock()
    writer = Writer(connection, path, clock, WriterCache(SeenLately(LATELY)))
    engine = SqliteEngine(writer, SqliteReader(connect_reading(path), path, clock), schema)
    for run in ("run", "other"):
        await engine.frontier.create_run(NewRun(run, "shop", Policy()))
    try:
        yield engine
    finally:
        await engine.close()


async def put(engine: SqliteEngine, numbers: range | list[int], run: str = "run") -> int:
    """How many of these pages were new."""
    tasks = [page(f"{n % 7}.example/{n}") for n in numbers]
    return (await engine.frontier.enqueue(run, tasks)).accepted


def stored(path: Path) -> tuple[int, int]:
    """How many keys are sorted in, and how many were appended of late."""
    with contextlib.closing(sqlite3.connect(path)) as plain:
        return (
            plain.execute("SELECT count(*) FROM seen").fetchone()[0],
            plain.execute("SELECT coalesce(sum(length(keys)), 0) / 10 FROM seen_lately").fetchone()[0],
        )


async def test_a_key_is_known_before_and_after_it_was_sorted_in(path: Path) -> None:
    async with opened(path) as engine:
        for start in range(0, 1000, 20):
            assert await put(engine, range(start, start + 20)) == 20
            assert await put(engine, range(start + 20)) == 0
        assert await put(engine, range(1000), "other") == 1000, "another run has seen nothing"
        assert await put(engine, range(1000), "other") == 0
    async with opened(path) as engine:
        assert await put(engine, range(1001)) == 1


async def test_what_was_sorted_in_is_deleted_where_it_was_appended(path: Path) -> None:
    async with opened(path) as engine:
        for start in range(0, 3000, 20):
            await put(engine, range(start, start + 20))
            _, lately = stored(path)
            assert lately <= 5 * LATELY, "two rounds, at most"
        sorted_in, _ = stored(path)
        assert sorted_in >= 3000 - LATELY
        assert await put(engine, range(3000)) == 0


async def test_engines_that_share_a_file_know_of_each_other(path: Path) -> None:
    """Whoever sorts in, and however their turns fall."""
    chance = random.Random(7)
    accepted: set[int] = set()
    async with opened(path) as one, opened(path) as two, opened(path) as three:
        for _ in range(300):
            batch = [chance.randrange(2000) for _ in range(chance.choice((1, 5, 60)))]
            new = set(batch) - accepted
            assert await put(chance.choice((one, two, three)), batch) == len(new)
            accepted |= new
        for engine in (one, two, three):
            assert await put(engine, sorted(accepted)) == 0


async def test_keys_of_a_call_that_was_undone_are_not_seen(path: Path) -> None:
    async with opened(path) as engine:

        async def put_and_fail(numbers: range) -> None:
            def verb(tx: Transaction) -> None:
                enqueue(tx, tx.find_run("run"), [page(f"{n % 7}.example/{n}") for n in numbers])
                raise UsageError("no")

            with pytest.raises(UsageError):
                await engine._writer.call(verb)

        await put(engine, range(80))
        await put_and_fail(range(80, 90))
        await put_and_fail(range(80, 500))
        assert stored(path) == (0, 80)
        assert await put(engine, range(500)) == 420
