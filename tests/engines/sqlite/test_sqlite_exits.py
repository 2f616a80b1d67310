"""What SQLite pays for limits and exits: nothing, where there are none; and how an older file comes to know them."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import pytest

from shoal.core.politeness import KEPT_AT_REST
from shoal.core.task import Lease, Policy
from shoal.frontier.contract.exits import NewExit
from shoal.frontier.contract.frontier import NewRun
from shoal.frontier.sqlite.engine import open_sqlite
from shoal.frontier.sqlite.schema import SCHEMA_VERSION
from shoal.frontier.sqlite.slots.exit_health import HOPE
from shoal.frontier.sqlite.store.connection import connect
from shoal.testing.contract.scene import Scene, done, exit_failed, page, pages, snoozed
from support.harnesses.sqlite import SqliteHarness

RARE = ("slot_limit", "site_limit", "UPDATE exit", "INSERT INTO exit", "INTO note", "GROUP BY exit")


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[SqliteHarness]:
    made = await SqliteHarness(tmp_path / "shoal.db").open()
    yield made
    await made.close()


async def statements(harness: SqliteHarness, scene: Scene, leases: Iterable[Lease]) -> list[str]:
    """What is asked of the file while these leases are settled and ten new ones are claimed."""
    asked: list[str] = []
    harness.engine._writer._connection.set_trace_callback(asked.append)
    granted = await scene.exchange(*(done(lease) for lease in leases), want=10)
    harness.engine._writer._connection.set_trace_callback(None)
    assert len(granted.leases) == 10
    return asked


async def test_limits_elsewhere_cost_no_statement(harness: SqliteHarness) -> None:
    scene = Scene(harness)
    await scene.open_run(delay=1_000)
    await scene.put(*pages("limited.example", 3))
    await scene.settle(snoozed(await scene.claim_one(), 60_000))
    await scene.put(*(page(f"s{number}.example/0") for number in range(40)))
    asked = await statements(harness, scene, await scene.claim(10))
    assert not [text for text in asked if any(word in text for word in RARE)]


async def test_exits_that_were_only_put_cost_no_statement(harness: SqliteHarness) -> None:
    scene = Scene(harness)
    await scene.engine.exits.put([NewExit("one", "http://one:1", ("default",))])
    await scene.open_run(delay=1_000)
    await scene.put(*(page(f"s{number}.example/0") for number in range(40)))
    asked = await statements(harness, scene, await scene.claim(10))
    assert not [text for text in asked if any(word in text for word in RARE)]


async def test_a_healthy_exit_beside_one_that_is_left_alone_is_told_when_to_come(harness: SqliteHarness) -> None:
    """The visit waits for its next free slot, and not for an exit that cannot be used."""
    scene = Scene(harness)
    await scene.open_run(delay=2_000)
    await scene.put(*pages("a.example", 9))
    await scene.engine.exits.ban("one", 600_000)
    lease = await scene.claim_one(exits=("one", "two"))
    granted = await scene.exchange(done(lease), want=1, exits=("one", "two"))
    assert (lease.exit, granted.leases, granted.wake_at) == ("two", [], lease.claimed_at + 2_000)


async def test_an_exit_that_is_released_early_is_found_by_sites_that_wait_for_others(harness: SqliteHarness) -> None:
    scene = Scene(harness)
    await scene.open_run(delay=1_000)
    await scene.put(*pages("a.example", 9))
    await scene.engine.exits.ban("one", 3_600_000)
    exits = ("one", "two")
    await scene.settle(snoozed(await scene.claim_one(exits=exits), 3_600_000))
    assert await scene.claim(exits=exits) == []
    await scene.engine.exits.release("one")
    await scene.advance(HOPE)
    assert (await scene.claim_one(exits=exits)).exit == "one"


async def test_no_wake_up_for_nothing_by_own_exits(harness: SqliteHarness) -> None:
    scene = Scene(harness)
    await scene.open_run(delay=60_000)
    await scene.put(*pages("a.example", 5))
    lease = await scene.claim_one(exits=("mine",), private=True)
    granted = await scene.exchange(done(lease), want=1, exits=("mine",), private=True)
    assert (granted.leases, granted.wake_at) == ([], lease.claimed_at + 60_000)


async def test_failures_are_remembered_by_the_file_and_not_by_the_process(harness: SqliteHarness) -> None:
    scene = Scene(harness)
    other = await harness.another()
    await scene.open_run(delay=0)
    await scene.put(*pages("a.example", 9))
    await scene.settle(exit_failed(await scene.claim_one(exits=("one",))))
    ask = scene.ask(want=1, by="w2", exits=("one",))
    assert [lease.exit_failures for lease in (await other.frontier.exchange(ask)).leases] == [1]


async def test_a_file_of_schema_4_is_brought_up_to_date(tmp_path: Path) -> None:
    connect(tmp_path / "new.db", create=True).close()
    old = tmp_path / "old.db"
    connect(old, create=True).close()
    with contextlib.closing(sqlite3.connect(old)) as plain:
        for table in ("slot_limit", "site_limit", "exit", "note", "ending", "contested_site"):
            plain.execute(f"DROP TABLE {table}")
        for column in ("limit_exits", "limit_window", "pace", "limited"):
            plain.execute(f"ALTER TABLE site DROP COLUMN {column}")
        for column in ("move", "saved_requests", "saved_bytes"):
            plain.execute(f"ALTER TABLE run DROP COLUMN {column}")
        plain.execute("PRAGMA user_version = 4")
    engine = await open_sqlite(old, migrate=True)
    try:
        assert (engine.schema.found, engine.schema.version) == (4, SCHEMA_VERSION)
        await engine.frontier.create_run(NewRun("run", "shop", Policy()))
        await engine.frontier.enqueue("run", pages("a.example", 2))
        await engine.exits.ban("one", 1_000, "a.example")
    finally:
        await engine.close()
    assert layout(old) == layout(tmp_path / "new.db")


def layout(path: Path) -> dict[str, set[tuple[object, ...]]]:
    """The tables and indexes of a file, whatever the order of their columns."""
    with contextlib.closing(sqlite3.connect(path)) as plain:
        names = plain.execute("SELECT name FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'").fetchall()
        return {
            name: {row[1:] for row in plain.execute("SELECT * FROM pragma_table_info(:name)", {"name": name})}
            for (name,) in names
        }


async def test_limits_that_are_long_over_are_forgotten(harness: SqliteHarness) -> None:
    """All of a site: after that a claim there asks for nothing besides. What is banned by hand stays."""
    scene = Scene(harness)
    await scene.open_run(delay=10, limit_exits=2)
    for site in ("old.example", "new.example", "banned.example"):
        await scene.put(*pages(site, 9))
    exits = ("one", "two")
    leases = await scene.claim(9, exits=exits)
    await scene.settle(*(snoozed(lease, 60_000) for lease in leases if lease.task.site == "old.example"))
    await scene.settle(*(done(lease) for lease in leases if lease.task.site != "old.example"))
    await scene.engine.exits.ban("one", 10 * KEPT_AT_REST, "banned.example")
    await scene.advance(KEPT_AT_REST)
    leases = sorted(await scene.claim(9, exits=exits), key=lambda lease: lease.task.site)
    assert [lease.task.site.partition(".")[0] for lease in leases] == ["banned", "new", "new", "old"]
    await scene.settle(snoozed(leases[1], 60_000), *(done(lease) for lease in leases if lease is not leases[1]))
    await scene.sweep_all()
    assert _limits(harness) == (["banned.example", "new.example", "old.example"], 1), "not yet"
    await scene.advance(60_001)
    await scene.sweep_all()
    assert _limits(harness) == (["banned.example", "new.example"], 0)
    assert {lease.exit for lease in await scene.claim(9, exits=exits) if lease.task.site == "banned.example"} <= {"two"}


def _limits(harness: SqliteHarness) -> tuple[list[str], int]:
    """The sites of which something is kept, and how many of them were limited as a whole."""
    with contextlib.closing(sqlite3.connect(harness.path)) as file:
        marked = [key for (key,) in file.execute("SELECT key FROM site WHERE limited ORDER BY key")]
        kept = "SELECT DISTINCT key FROM slot_limit AS x JOIN site AS s ON s.id = x.site ORDER BY key"
        assert [key for (key,) in file.execute(kept)] == marked
        return marked, int(file.execute("SELECT count(*) FROM site_limit").fetchone()[0])
