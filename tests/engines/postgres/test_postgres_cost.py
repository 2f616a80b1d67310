"""What a claim costs, counted by the server itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import asyncpg  # type: ignore[import-untyped]

from servers.postgres import shared_server
from servers.postgres_stage import ask, done, pages
from shoal.core.task import Policy
from shoal.frontier.contract.frontier import NewRun
from shoal.frontier.postgres.engine import PostgresEngine, open_postgres
from support.waiting import until

Count = Callable[[asyncpg.Connection, str], Awaitable[int]]


class TestCost:
    """A claim touches a number of rows bound by its batch, counted by the server itself."""

    async def touched(self, connection: asyncpg.Connection, schema: str) -> int:
        await connection.execute("SELECT pg_stat_clear_snapshot()")
        return int(
            await connection.fetchval(
                "SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) FROM pg_stat_user_tables WHERE schemaname = $1",
                schema,
            )
            + await connection.fetchval(
                "SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE schemaname = $1", schema
            )
        )

    async def looked_up(self, connection: asyncpg.Connection, schema: str) -> int:
        await connection.execute("SELECT pg_stat_clear_snapshot()")
        query = (
            "SELECT sum(idx_tup_read) FROM pg_stat_user_indexes "
            "WHERE schemaname = $1 AND indexrelname IN ('slot_site', 'visit_site')"
        )
        return int(await connection.fetchval(query, schema))

    async def test_rows_touched_are_bound_by_the_batch(self, schema: str) -> None:
        url = shared_server().url(schema=schema, connections="1")
        engine = await open_postgres(url)
        await engine.frontier.create_run(NewRun("run", "shop", Policy(delay=60_000)))
        await engine.frontier.enqueue("run", pages("0.example", 1))  # plans are made while the tables are empty
        await engine.frontier.exchange(ask(1))
        costs = []
        for sites in (500, 5_000):
            tasks = [task for n in range(sites) for task in pages(f"{sites}-{n}.example", 2)]
            await engine.frontier.enqueue("run", tasks)
            costs.append(await self.cost_of_rounds(engine, schema, self.touched))
        await engine.frontier.pause_run("run")
        await engine.frontier.create_run(NewRun("deep", "shop", Policy(delay=60_000)))
        await engine.frontier.enqueue("deep", [task for n in range(100) for task in pages(f"deep-{n}.example", 100)])
        costs.append(await self.cost_of_rounds(engine, schema, self.touched))
        await engine.close()
        print(f"\nrows touched by a round of 50, with 500 and 5,500 sites, and 100 deep ones: {costs}")
        assert max(costs) <= 50 * 100
        assert max(costs) <= 1.5 * costs[0]

    async def test_an_old_snapshot_that_stays_open_does_not_make_rounds_dearer(self, schema: str) -> None:
        url = shared_server().url(schema=schema, connections="1")
        engine = await open_postgres(url)
        await engine.frontier.create_run(NewRun("run", "shop", Policy(delay=0)))
        await engine.frontier.enqueue("run", [task for n in range(50) for task in pages(f"500-{n}.example", 3)])
        stranger = await asyncpg.connect(shared_server().url())
        async with stranger.transaction(isolation="repeatable_read"):
            await stranger.fetchval("SELECT count(*) FROM pg_class")
            costs = [await self.cost_of_rounds(engine, schema, self.looked_up, rounds=30) for _ in range(3)]
        await stranger.close()
        await engine.close()
        print(f"\nslots and visits looked up by 30 rounds of 50, beside a snapshot that gets older: {costs}")
        assert max(costs) <= 1.5 * costs[0]

    async def cost_of_rounds(self, engine: PostgresEngine, schema: str, count: Count, rounds: int = 1) -> int:
        """Counters are sent when a session ends, so the engine's connections are closed."""
        connection = await asyncpg.connect(shared_server().url())

        async def all_others_have_ended() -> bool:
            others = "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle' AND pid <> pg_backend_pid()"
            return bool(await connection.fetchval(others) == 0)

        await engine._connections.let_go()
        await until(all_others_have_ended, "the sessions of the engine have ended")
        before = await count(connection, schema)
        for _ in range(rounds):
            await self.round(engine)
        await engine._connections.let_go()
        await until(all_others_have_ended, "the sessions of the engine have ended")
        after = await count(connection, schema)
        await connection.close()
        return after - before

    async def round(self, engine: PostgresEngine) -> None:
        """Claim, settle and claim, settle, enqueue: 50 each, and as many wait as before."""
        leases = (await engine.frontier.exchange(ask(50))).leases
        assert len(leases) == 50
        leases = (await engine.frontier.exchange(ask(50, *(done(lease, b"{}") for lease in leases)))).leases
        await engine.frontier.exchange(ask(0, *(done(lease) for lease in leases)))
        await engine.frontier.enqueue(
            "run", [task for n in range(50) for task in pages(f"500-{n}.example", 1 + len(leases) // 50)]
        )
