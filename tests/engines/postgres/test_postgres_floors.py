"""The lower bound of a claim's search: however long a transaction takes, what it made due is found."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg  # type: ignore[import-untyped]

from servers.postgres import shared_server
from shoal.core.outcome import Done, Settlement
from shoal.core.task import DEFAULT_POOL, NewTask, Policy
from shoal.frontier.contract.frontier import Ask, NewRun, WorkerInfo
from shoal.frontier.postgres.engine import PostgresEngine, open_postgres

ENQUEUE = (
    "SELECT enqueue(NULL, 'run', ROW(ARRAY['https://late.example/'], ARRAY['late.example'], ARRAY[NULL]::bytea[], "
    "ARRAY['bulk'], '{}', '{}', '{}', '{}', '{}', '{}')::new_tasks)"
)


async def claim_all(engine: PostgresEngine) -> list[str]:
    """Claim what is due, and settle it."""
    worker = WorkerInfo("w", "another machine", 1, 1)

    def ask(want: int, *settlements: Settlement) -> Ask:
        return Ask(worker, ("shop",), ("bulk",), {DEFAULT_POOL: ("direct",)}, want, None, settlements)

    leases = (await engine.frontier.exchange(ask(50))).leases
    ends = [Settlement(each.task.run_id, each.task.id, each.token, Done(), each.claimed_at, 1) for each in leases]
    await engine.frontier.exchange(ask(0, *ends))
    return [lease.task.url for lease in leases]


@asynccontextmanager
async def at_work(schema: str) -> AsyncIterator[tuple[PostgresEngine, asyncpg.Connection]]:
    """An engine with a run on which claims go on, and a connection for somebody who is slow."""
    engine = await open_postgres(shared_server().url(schema=schema))
    slow = await asyncpg.connect(shared_server().url())
    try:
        await engine.frontier.create_run(NewRun("run", "shop", Policy(delay=0)))
        await engine.frontier.enqueue("run", [NewTask("https://a.example/", "a.example", None)] * 30)
        await slow.execute(f"SET search_path TO {schema}")
        yield engine, slow
    finally:
        await slow.close()
        await engine.close()


async def raise_floors(engine: PostgresEngine) -> None:
    """Claim for a second."""
    for _ in range(20):
        assert await claim_all(engine) == ["https://a.example/"]
        await asyncio.sleep(0.05)  # floors are raised ten times a second, by the server's clock


async def test_a_commit_that_takes_long_hides_no_task(schema: str) -> None:
    async with at_work(schema) as (engine, slow):
        async with slow.transaction():
            await slow.execute(ENQUEUE)
            await raise_floors(engine)
        assert set(await claim_all(engine)) == {"https://a.example/", "https://late.example/"}


async def test_a_transaction_that_begins_long_before_its_first_change_hides_no_task(schema: str) -> None:
    """Its time is that of its beginning, and until its first change nobody knows of it."""
    async with at_work(schema) as (engine, slow):
        async with slow.transaction():
            await slow.execute("SELECT now()")
            await raise_floors(engine)
            await slow.execute(ENQUEUE)
        assert set(await claim_all(engine)) == {"https://a.example/", "https://late.example/"}


async def test_a_visit_below_the_floor_is_found_by_a_sweep(schema: str) -> None:
    """As after the server's clock was set back."""
    async with at_work(schema) as (engine, slow):
        await slow.execute("UPDATE visit SET due_at = due_at - 10000")
        await slow.execute(
            "INSERT INTO line_floor (line, at, floor) SELECT line.id, moment(NULL), moment(NULL) FROM line"
        )
        assert await claim_all(engine) == []
        for _ in range(2):  # the first adds up what waits, the second looks where something does
            await engine.frontier.sweep()
        assert await claim_all(engine) == ["https://a.example/"]
