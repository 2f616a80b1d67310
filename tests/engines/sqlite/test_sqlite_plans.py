"""A claim costs the same however much waits: every statement walks an index, and touches few rows of it."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from pathlib import Path

import pytest

from shoal.core.outcome import Snoozed
from shoal.core.task import Policy
from shoal.frontier.contract.frontier import NewRun
from shoal.frontier.sqlite.engine import SqliteEngine, open_sqlite
from shoal.frontier.sqlite.store.connection import connect
from shoal.frontier.sqlite.store.statements import STATEMENTS
from shoal.frontier.sqlite.store.transaction import COUNT_RUN
from shoal.testing.contract.harness import Harness
from shoal.testing.contract.scene import Scene, done, page, settle
from shoal.testing.jump_clock import JumpClock
from support.harnesses.sqlite import SqliteHarness

LARGE = (
    "task",
    "visit",
    "site",
    "slot",
    "slot_limit",
    "site_limit",
    "note",
    "seen",
    "seen_lately",
    "item",
    "dead",
    "ending",
    "cache",
    "line",
    "run",
    "job",
)
"""Tables that grow with the work. `worker` is as large as the crew, and `lease` as what it has in hand."""

MAY_WALK = {
    "schema": "is not one statement",
    **{name: "changes tables, once" for name in STATEMENTS if name.startswith("migrate_")},
    "count_stored": "counts what a move has brought, once, on a connection that holds up nobody",
    "find_key_lately": "looks through the keys of late, of which there are few, for a person",
    "find_runs_of_key": "asks every run whether it has seen a key, for a person",
    "read_backlogs": "counts all jobs that have not ended, once in a while",
    "read_callbacks": "looks through the callbacks of jobs that have not ended",
    "read_runs": "lists all runs, for a person",
    "read_scrapers": "adds up the lines that have work, now and then",
    "read_sites": "finds the sites with most work, for a person",
}


def plan(statement: str) -> list[str]:
    with contextlib.closing(sqlite3.connect(":memory:")) as store:
        store.executescript(STATEMENTS["schema"])
        names = re.findall(r"(?<![:\w]):(\w+)", statement)
        values = dict.fromkeys(names) if names else [None] * statement.count("?")
        return [row[3] for row in store.execute("EXPLAIN QUERY PLAN " + statement, values)]


def names_of_large_tables(statement: str) -> set[str]:
    """How the plan names the large tables of a statement: by alias, where they have one."""
    found = re.findall(rf"\b({'|'.join(LARGE)})\b(?:\s+AS\s+(\w+))?", statement)
    return {alias or table for table, alias in found} | {table for table, _ in found}


@pytest.mark.parametrize("verb", sorted(STATEMENTS.keys() - MAY_WALK.keys()))
def test_no_statement_walks_a_whole_table(verb: str) -> None:
    steps = plan(STATEMENTS[verb])
    names = names_of_large_tables(STATEMENTS[verb])
    walks = [step for step in steps if (m := re.match(r"SCAN (\w+)(?! VIRTUAL)", step)) and m[1] in names]
    assert [step for step in walks if not step.endswith("INDEX run_cancelled")] == [], steps


def test_counting_runs_does_not_walk_them() -> None:
    assert not [step for step in plan(COUNT_RUN) if step.startswith("SCAN run")]


@pytest.mark.parametrize(
    ("verb", "index"),
    [
        ("find_due_visits", "visit USING (COVERING )?INDEX visit_due"),
        ("find_heads", "task USING INDEX task_ready"),
        ("find_ripe", "task USING INDEX task_delayed"),
        ("find_ripe", "task USING INDEX task_expiry"),
        ("find_wake", "visit USING (COVERING )?INDEX visit_due"),
        ("find_wake", "task USING (COVERING )?INDEX task_later"),
        ("find_lines", "line USING INDEX line_active"),
        ("find_leases", "l USING INTEGER PRIMARY KEY"),
        ("find_seen", "seen USING PRIMARY KEY"),
        ("find_sites", "t USING (COVERING )?INDEX task_of_site"),
        ("find_held", "task USING INDEX task_aside"),
        ("move_visits", "visit USING PRIMARY KEY"),
        ("read_items", "i USING INDEX item_run"),
        ("read_dead", "d USING INDEX dead_run"),
    ],
)
def test_each_question_has_its_index(verb: str, index: str) -> None:
    assert re.search(f"SEARCH ({index})", "\n".join(plan(STATEMENTS[verb]))), plan(STATEMENTS[verb])


@pytest.mark.parametrize("verb", ["find_due_visits", "find_heads", "find_ripe"])
def test_nothing_is_sorted_on_the_way(verb: str) -> None:
    assert not [step for step in plan(STATEMENTS[verb]) if "TEMP B-TREE" in step]


def test_every_index_is_used(tmp_path: Path) -> None:
    """An index that no statement walks only costs."""
    with contextlib.closing(connect(tmp_path / "x.db", create=True)) as store:
        indexes = {
            name for (name,) in store.execute("SELECT name FROM sqlite_schema WHERE type = 'index' AND sql != ''")
        }
    asked = [statement for verb, statement in STATEMENTS.items() if not verb.startswith(("schema", "migrate_"))]
    used = "\n".join(step for statement in asked for step in plan(statement))
    assert {name for name in indexes if not re.search(rf"\b{name}\b", used)} == set()


class Meter:
    """Counts the steps of SQLite's machine. Not time: the same work is the same number on any computer."""

    GRAIN = 20

    def __init__(self, engine: SqliteEngine) -> None:
        self.steps = 0
        engine._writer._connection.set_progress_handler(self._tick, self.GRAIN)

    def _tick(self) -> int:
        self.steps += self.GRAIN
        return 0

    def read(self) -> int:
        steps, self.steps = self.steps, 0
        return steps


async def cost_of_claims(path: Path, sites: int, *, depth: int = 2, blocked: bool = False) -> tuple[int, int]:
    """Steps of a claim of ten leases, and of settling them, with so many sites waiting."""
    harness = SqliteHarness(path)
    harness.engine = engine = await open_sqlite(path, clock=harness.clock)
    proof: Harness = harness
    scene = Scene(proof)
    await scene.open_run(delay=1_000)
    names = [f"{n}.example" for n in range(sites)]
    for start in range(0, sites, 5_000):
        tasks = [page(f"{name}/{n}", key=None) for name in names[start : start + 5_000] for n in range(depth)]
        await engine.frontier.enqueue("run", tasks)
    if blocked:
        later = harness.clock.now() + 3_600_000
        engine._writer._connection.execute("UPDATE visit SET due_at = :later WHERE site > 50", {"later": later})
    meter = Meter(engine)
    await scene.exchange(want=0)
    claims, settles = 0, 0
    leases = await scene.claim(10)
    for _ in range(3):
        meter.read()
        await scene.exchange(*(done(lease) for lease in leases), want=0)
        settles += meter.read()
        leases = await scene.claim(10)
        claims += meter.read()
        assert len(leases) == 10
    await scene.exchange(*(settle(lease, Snoozed()) for lease in leases), want=0)
    await engine.close()
    return claims, settles


async def test_a_claim_costs_the_same_with_a_thousand_times_more_sites(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = await cost_of_claims(tmp_path / "few.db", 100)
    many = await cost_of_claims(tmp_path / "many.db", 100_000)
    blocked = await cost_of_claims(tmp_path / "blocked.db", 20_000, blocked=True)
    deep = await cost_of_claims(tmp_path / "deep.db", 100, depth=200)
    with capsys.disabled():
        print(f"\nsteps of 3 claims and 3 settlements of 10: 100 sites {few}, 100,000 sites {many}", end=", ")
        print(f"20,000 sites with 50 due {blocked}, 100 sites with 20,000 tasks {deep}")
    for other in (many, blocked, deep):
        assert other[0] <= few[0] * 1.1, "claiming"
        assert other[1] <= few[1] * 1.1, "settling"


async def test_a_lane_does_not_walk_over_the_sites_of_another(tmp_path: Path) -> None:
    """A `files` worker that finds nothing has looked at nothing, however many pages are due."""
    clock = JumpClock()
    engine = await open_sqlite(tmp_path / "x.db", clock=clock)
    harness = SqliteHarness(tmp_path / "x.db")
    harness.engine = engine
    scene = Scene(harness)
    await engine.frontier.create_run(NewRun("run", "shop", Policy()))
    assert await scene.claim(10) == []  # the worker is known from now on
    costs = []
    for number in (10, 5_000):
        await engine.frontier.enqueue("run", [page(f"{n}.example/{number}", key=None) for n in range(number)])
        meter = Meter(engine)
        assert await scene.claim(10, lanes=("files",)) == []
        costs.append(meter.read())
    await engine.close()
    assert costs[1] <= costs[0] + 2 * Meter.GRAIN, costs
