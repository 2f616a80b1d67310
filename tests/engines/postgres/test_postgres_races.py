"""What happens between two steps of one transaction, held open there on purpose."""

from __future__ import annotations

import asyncio

import asyncpg  # type: ignore[import-untyped]

from servers.postgres import shared_server
from shoal.core.outcome import Done, Settlement
from shoal.core.task import DEFAULT_POOL, NewTask, Policy
from shoal.frontier.contract.frontier import Ask, Enqueued, NewRun, WorkerInfo
from shoal.frontier.postgres.engine import open_postgres
from support.waiting import until

LINK = NewTask("https://b.example/", "b.example", bytes(32))


def _ask(want: int, *settlements: Settlement) -> Ask:
    worker = WorkerInfo("w", "another machine", 1, 1)
    return Ask(worker, ("shop",), ("bulk",), {DEFAULT_POOL: ("direct",)}, want, None, settlements)


async def test_links_of_a_lease_that_is_lost_meanwhile_can_come_again(schema: str) -> None:
    """Their keys are remembered before the lease is locked. If it is lost in between, they must not stay remembered:
    whoever does the task again brings the same links."""
    engine = await open_postgres(shared_server().url(schema=schema))
    sweeper = await asyncpg.connect(shared_server().url())
    try:
        await engine.frontier.create_run(NewRun("run", "shop", Policy()))
        await engine.frontier.enqueue("run", [NewTask("https://a.example/", "a.example", None)])
        [lease] = (await engine.frontier.exchange(_ask(1))).leases
        await sweeper.execute(f"SET search_path TO {schema}")
        async with sweeper.transaction():
            await sweeper.execute("SELECT 1 FROM site WHERE key = 'a.example' FOR NO KEY UPDATE")
            end = Settlement("run", lease.task.id, lease.token, Done((b"{}",), (LINK,)), lease.claimed_at, 1)
            settling = asyncio.create_task(engine.frontier.exchange(_ask(0, end)))
            me = sweeper.get_server_pid()
            blocked = "SELECT count(*) FROM pg_locks AS l WHERE $1 = ANY (pg_blocking_pids(l.pid))"
            await until(lambda: sweeper.fetchval(blocked, me), "the settlement waits for the sweep")
            lost = await sweeper.fetchrow(
                "SELECT * FROM reclaim_leases($1, ARRAY[$2]::bigint[], '{}', '{}', '{}')",
                lease.expires_at,
                lease.task.id,
            )
            assert lost["returned"] == 1
        assert (await settling).late == [lease.token]
        assert await engine.frontier.enqueue("run", [LINK]) == Enqueued(1, 0)
        assert (await engine.reader.run("run")).counters.items == 0
    finally:
        await sweeper.close()
        await engine.close()
