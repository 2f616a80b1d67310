"""Claims and settlements have a short way for the usual case. It leads where the long one does, whatever it meets."""

from __future__ import annotations

import random
import secrets
from collections.abc import AsyncIterator
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import msgspec
import pytest

from servers.postgres import shared_server
from shoal.core.task import NewTask, Policy
from shoal.frontier.contract.frontier import NewRun
from shoal.frontier.postgres.engine import open_postgres
from shoal.frontier.postgres.store.columns import Settlements

SITES = 40
NOW = 1_000_000
SOON = NOW + 100
LEASES = 20
RUNS = ("running", "paused", "cancelled")
TABLES = {
    "task": "*",
    "slot": "*",
    "site": "*",
    "visit": "*",
    "ending": "*",
    "item": "id & 1048575, run, n, url, group_name, body",
    "tally_change": "run, line, waiting, leased, live, done, dead, expired, dropped, cancelled, items, requests, "
    "received, retries, snoozes, duplicates, refused",
}
Rows = list[tuple[Any, ...]]


@pytest.fixture
async def store() -> AsyncIterator[asyncpg.Connection]:
    """A store where three runs share a line, with tasks of theirs at each of a few sites."""
    schema = f"test_{secrets.token_hex(6)}"
    engine = await open_postgres(shared_server().url(schema=schema))
    for run in RUNS:
        await engine.frontier.create_run(NewRun(run, "shop", Policy(delay=0), queue="shared"))
    for number in range(3 * SITES):
        turn, site = divmod(number, SITES)
        task = NewTask(f"https://{site}.example/{number}", f"{site}.example", None)
        await engine.frontier.enqueue(RUNS[(turn + site) % 3], [task])
    await engine.close()
    connection = await asyncpg.connect(shared_server().url())
    await connection.execute(f"SET search_path TO {schema}")
    await connection.execute("UPDATE run SET state = run_id; DELETE FROM tally_change")
    yield connection
    await connection.close()
    shared_server().sql(f"DROP SCHEMA {schema} CASCADE", database="shoal")


async def stir(store: asyncpg.Connection, chance: random.Random) -> None:
    """Everything that the two ways look at becomes something else."""

    def at() -> int:
        return NOW + chance.choice((-5000, -2000, -1000, -50, 0, 50, 5000))

    def rarely(value: Any, otherwise: Any) -> Any:
        return value if chance.random() < 0.2 else otherwise

    await store.execute("UPDATE line SET auto_ack = $1", rarely(True, False))
    for (site,) in await store.fetch("SELECT id FROM site"):
        await store.execute(
            "UPDATE site SET delay = $2, crawl_delay = $3, pace = $4, site_delay = $5, begun_at = $6, "
            "begun_before = $7, blocked_until = $8, probing = $9, probe = $10, last_token = $11 WHERE id = $1",
            *(site, rarely(1000, 0), rarely(2000, 0), rarely(60, 0), rarely(chance.choice((500, 400_000)), 0)),
            *(at() - rarely(500_000, 0), at() - 3000, rarely(at(), 0)),
            *(rarely(True, False), rarely(site, 0), chance.choice((site, 0))),
        )
        await store.execute("DELETE FROM slot WHERE site = $1", site)
        if chance.random() < 0.8:
            await store.execute(
                "INSERT INTO slot (site, exit, live, begun_at, begun_before, blocked_until, last_token, probing, "
                "probe, penalty, limited_until) VALUES ($1, 'direct', $2, $3, $4, $5, $6, $7, $8, $9, $10)",
                *(
                    site,
                    rarely(1, 0),
                    at(),
                    at() - 3000,
                    rarely(at(), 0),
                    chance.choice((site, 0)),
                    rarely(True, False),
                ),
                *(rarely(site, 0), rarely(4, 0), rarely(NOW - 700_000, 0)),
            )
        visit = (rarely(at(), NOW - 10), rarely(1, 3))
        await store.execute("UPDATE visit SET due_at = $2, ready = $3 WHERE site = $1", site, *visit)
    for (task,) in await store.fetch("SELECT id FROM task"):
        await store.execute("UPDATE task SET expires_at = $2 WHERE id = $1", task, rarely(at(), None))


async def outcome(store: asyncpg.Connection, call: str, *values: Any) -> tuple[Rows, dict[str, Rows]]:
    """What a function answers, and what it leaves in the tables. All is undone afterwards."""
    transaction = store.transaction()
    await transaction.start()
    answer = [tuple(row) for row in await store.fetch(f"SELECT * FROM {call}", *values)]  # noqa: S608 - ours
    left = {
        table: sorted((tuple(row) for row in await store.fetch(f"SELECT {columns} FROM {table}")), key=repr)  # noqa: S608 - ours
        for table, columns in TABLES.items()
    }
    await transaction.rollback()
    return answer, left


@pytest.mark.parametrize("seed", range(8))
async def test_a_claim_of_heads_does_what_a_claim_does(store: asyncpg.Connection, seed: int) -> None:
    await stir(store, random.Random(seed))
    rows = await store.fetch("SELECT site, ctid, line FROM visit ORDER BY md5(site::text)")
    sites, visits = [row["site"] for row in rows], [row["ctid"] for row in rows]
    values = (NOW, SOON, rows[0]["line"], bool(seed % 2), list(range(1, SITES + 1)), sites, visits)
    long = await outcome(
        store, f"claim_by_any_exit($1, $2, $3, $4, '{{direct}}', NULL, NULL, false, {SITES}, 7, $5, $6, $7)", *values
    )
    short = await outcome(store, "claim_by_one_exit($1, $2, $3, $4, 'direct', 7, $5, $6, $7)", *values)
    assert short == long
    assert 0 < len(short[0]) < SITES


@pytest.mark.parametrize("seed", range(8))
async def test_done_tasks_of_different_sites_are_settled_as_any(store: asyncpg.Connection, seed: int) -> None:
    chance = random.Random(seed)
    await stir(store, chance)
    taken = await store.fetch(
        "UPDATE task SET state = 2, token = site, exit = 'direct', lease_until = $1, worker = 7 "
        "WHERE id IN (SELECT (array_agg(id ORDER BY md5(id::text || $2)))[1] FROM task GROUP BY site) AND site < $3 "
        "RETURNING id, token, (SELECT run_id FROM run WHERE run.id = task.run)",
        *(NOW + 1000, str(seed), LEASES),
    )
    tasks, tokens, runs = ([row[column] for row in taken] for column in range(3))
    tokens[0] += 1  # neither this lease stands
    runs[1] = "another"  # nor that
    started = [chance.choice((None, NOW - 1500, NOW - 5)) for _ in tasks]
    counts = [chance.randrange(3) for _ in tasks]
    items = {
        "url": [f"https://{n}" for n in counts],
        "group_name": ["a" if n else None for n in counts],
        "n": counts,
        "body": [b"[{}]" for _ in counts],
    }
    fields = {"run_id": runs, "task": tasks, "token": tokens, "kind": [0] * len(tasks), "started": started}
    counted = dict.fromkeys(("requests", "received", "refused", "duplicates"), counts)
    given = Settlements(**{field: [] for field in Settlements.__struct_fields__} | fields | counted | items)
    row = ", ".join(f"${number}" for number in range(2, 2 + len(Settlements.__struct_fields__)))
    values = (NOW, *msgspec.structs.astuple(given))
    long = await outcome(store, f"settle_any_outcome($1, ROW({row})::settlements)", *values)
    short = await outcome(store, f"settle_only_done($1, ROW({row})::settlements)", *values)
    assert sorted(short[0][0][0]) == sorted(long[0][0][0])
    assert 0 < len(short[0][0][0]) <= len(tasks) - 2
    assert short[1] == long[1]
