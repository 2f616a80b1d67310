"""What PostgreSQL asks of its engine: migrations, sentences for troubles, the cost of a claim, cursors, poolers."""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import asyncpg  # type: ignore[import-untyped]
import pytest

from servers.postgres import PostgresServer, need_programs, shared_server
from shoal.core.outcome import Done, Settlement
from shoal.core.task import DEFAULT_POOL, Lease, NewTask, Policy
from shoal.errors import BadSettings, EngineBroken, EngineError, EngineFull, EngineRefused, EngineUnavailable
from shoal.frontier.contract.frontier import Ask, NewRun, Renewal, WorkerInfo
from shoal.frontier.postgres.engine import PostgresEngine, open_postgres
from shoal.frontier.postgres.errors import clear_errors
from shoal.frontier.postgres.schema import SCHEMA_VERSION
from shoal.frontier.postgres.store.address import read_address
from shoal.frontier.shared.liveness import this_machine
from support.waiting import until

WORKER = WorkerInfo("w", "another machine", 1, 1)


def ask(want: int = 0, *settlements: Settlement, worker: WorkerInfo = WORKER) -> Ask:
    return Ask(worker, ("shop",), ("bulk",), {DEFAULT_POOL: ("direct",)}, want, None, settlements)


def done(lease: Lease, *items: bytes) -> Settlement:
    return Settlement(lease.task.run_id, lease.task.id, lease.token, Done(items), lease.claimed_at, 1)


def pages(site: str, number: int) -> list[NewTask]:
    return [NewTask(f"https://{site}/{n}", site, None) for n in range(number)]


@pytest.fixture
async def schema() -> AsyncIterator[str]:
    name = f"test_{secrets.token_hex(6)}"
    yield name
    shared_server().sql(f"DROP SCHEMA IF EXISTS {name} CASCADE", database="shoal")


@pytest.fixture
async def engine(schema: str) -> AsyncIterator[PostgresEngine]:
    made = await open_postgres(shared_server().url(schema=schema))
    yield made
    await made.close()


class TestMigrations:
    async def test_many_that_start_at_once_make_one_schema(self, schema: str) -> None:
        url = shared_server().url(schema=schema)
        engines = await asyncio.gather(*(open_postgres(url) for _ in range(12)))
        await engines[0].frontier.create_run(NewRun("run", "shop", Policy()))
        assert [run.run_id for run in await engines[-1].reader.runs()] == ["run"]
        for engine in engines:
            await engine.close()

    async def test_a_newer_schema_is_refused_with_one_sentence(self, engine: PostgresEngine, schema: str) -> None:
        newer = f"UPDATE {schema}.meta SET value = '{SCHEMA_VERSION + 1}'"  # noqa: S608 - names of our own
        shared_server().sql(newer, database="shoal")
        with pytest.raises(EngineBroken, match="newer Shoal") as caught:
            await open_postgres(shared_server().url(schema=schema))
        assert "\n" not in str(caught.value)

    async def test_what_does_not_exist_is_not_made_unasked(self, schema: str) -> None:
        with pytest.raises(EngineRefused, match="no store"):
            await open_postgres(shared_server().url(schema=schema), create=False)

    async def test_a_schema_can_have_any_name(self) -> None:
        name = 'Test "odd" näme'
        url = shared_server().url() + "?schema=Test%20%22odd%22%20n%C3%A4me"
        engine = await open_postgres(url)
        await engine.frontier.create_run(NewRun("run", "shop", Policy()))
        await engine.frontier.enqueue("run", pages("a.example", 1))
        assert len((await engine.frontier.exchange(ask(1))).leases) == 1
        await engine.close()
        quoted = name.replace('"', '""')
        shared_server().sql(f'DROP SCHEMA "{quoted}" CASCADE', database="shoal")


class TestTroubles:
    async def refused(self, url: str, kind: type[EngineError] = EngineUnavailable) -> str:
        with pytest.raises(kind) as caught:
            await open_postgres(url)
        assert "\n" not in str(caught.value)
        assert "secret" not in str(caught.value)
        return str(caught.value)

    async def test_wrong_password(self) -> None:
        server = shared_server()
        server.sql("DROP ROLE IF EXISTS guarded")
        server.sql("CREATE ROLE guarded LOGIN PASSWORD 'right'")
        assert "password" in await self.refused(server.url(user="guarded", password="secret"), EngineRefused)  # noqa: S106 - it is wrong

    async def test_unknown_user(self) -> None:
        assert "'nobody'" in await self.refused(shared_server().url(user="nobody"), EngineRefused)

    async def test_no_such_database(self) -> None:
        assert "no database 'missing'" in await self.refused(shared_server().url("missing"), EngineRefused)

    async def test_nothing_listens(self) -> None:
        assert "Nothing answers" in await self.refused("postgresql://shoal:secret@127.0.0.1:1/shoal")

    async def test_no_such_host(self) -> None:
        assert "no host" in await self.refused("postgresql://shoal:secret@nowhere.invalid/shoal")

    async def test_no_right_to_create(self) -> None:
        server = shared_server()
        server.sql("DROP ROLE IF EXISTS visitor")
        server.sql("CREATE ROLE visitor LOGIN")
        sentence = await self.refused(server.url(user="visitor", schema="visitors"), EngineRefused)
        assert "GRANT CREATE" in sentence

    async def test_a_schema_made_by_the_administrator_is_enough(self) -> None:
        server = shared_server()
        server.sql("DROP ROLE IF EXISTS tenant")
        server.sql("CREATE ROLE tenant LOGIN")
        server.sql("CREATE SCHEMA tenant AUTHORIZATION tenant", database="shoal")
        engine = await open_postgres(server.url(user="tenant", schema="tenant"))
        assert await engine.reader.runs() == []
        await engine.close()
        server.sql("DROP SCHEMA tenant CASCADE; DROP ROLE tenant", database="shoal")

    async def test_read_only(self, engine: PostgresEngine) -> None:
        server = shared_server()
        server.sql("CREATE ROLE reader LOGIN; ALTER ROLE reader SET default_transaction_read_only = on")
        server.sql("GRANT shoal TO reader")
        assert "only lets read" in await self.refused(server.url(user="reader", schema="of_reader"))
        server.sql("DROP ROLE reader")

    async def test_too_many_connections(self) -> None:
        server = shared_server()
        server.sql("CREATE ROLE crowd LOGIN CONNECTION LIMIT 0")
        assert "no more connections" in await self.refused(server.url(user="crowd"))
        server.sql("DROP ROLE crowd")

    @pytest.mark.parametrize(
        ("error", "kind", "words"),
        [
            (asyncpg.DiskFullError, EngineFull, "disk .* full"),
            (asyncpg.AdminShutdownError, EngineUnavailable, "shutting down"),
            (asyncpg.CannotConnectNowError, EngineUnavailable, "starting up"),
            (asyncpg.DataCorruptedError, EngineBroken, "damaged"),
            (asyncpg.DeadlockDetectedError, EngineUnavailable, "deadlocks"),
            (asyncpg.ConnectionDoesNotExistError, EngineUnavailable, "lost"),
            (ConnectionResetError, EngineUnavailable, "lost"),
            (TimeoutError, EngineUnavailable, "lost"),
        ],
    )
    def test_what_cannot_be_staged_has_its_sentence(
        self, error: type[Exception], kind: type[EngineError], words: str
    ) -> None:
        with pytest.raises(kind, match=words), clear_errors(read_address("postgresql://u:secret@host/db")):
            raise error("whatever")

    @pytest.mark.parametrize(
        "url", ["postgresql://host:port/db", "postgresql://host/db?schema=", "postgresql://host/db?connections=none"]
    )
    async def test_a_url_that_cannot_be(self, url: str) -> None:
        with pytest.raises(BadSettings):
            await open_postgres(url)

    async def test_after_closing_nothing_works_and_says_so(self, schema: str) -> None:
        engine = await open_postgres(shared_server().url(schema=schema))
        await engine.close()
        await engine.close()
        with pytest.raises(EngineRefused, match="closed"):
            await engine.reader.runs()


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


class TestRaces:
    async def test_a_lease_that_is_just_being_swept_is_not_called_alive(
        self, engine: PostgresEngine, schema: str
    ) -> None:
        """A renewal that comes in the middle of a sweep waits for it, and then says the truth."""
        frontier = engine.frontier
        await frontier.create_run(NewRun("run", "shop", Policy(lease=1)))
        await frontier.enqueue("run", pages("a.example", 1))
        [lease] = (await frontier.exchange(ask(1))).leases
        sweeper = await asyncpg.connect(shared_server().url())
        transaction = sweeper.transaction()
        await transaction.start()
        await sweeper.execute(f"SET search_path TO {schema}")
        later = lease.expires_at + 1
        assert await sweeper.fetchval("SELECT returned FROM sweep($1, '{}', '{}', '{}', 9, NULL, NULL)", later) == 1
        renewing = asyncio.ensure_future(frontier.renew(WORKER, [Renewal(lease.task.id, lease.token)]))
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%renew%'"
        await until(lambda: renewing.done() or shared_server().sql(waiting) != "0", "the renewal waits for the sweep")
        await transaction.commit()
        await sweeper.close()
        assert list(await renewing) == [lease.token]


class TestCursors:
    async def test_no_reader_misses_what_an_earlier_transaction_commits_later(
        self, engine: PostgresEngine, schema: str
    ) -> None:
        """A settlement that began first and commits last comes after the cursor of whoever read in between."""
        frontier = engine.frontier
        await frontier.create_run(NewRun("run", "shop", Policy(delay=0, concurrency=9)))
        await frontier.enqueue("run", pages("a.example", 1) + pages("b.example", 1))
        first, second = (await frontier.exchange(ask(2))).leases
        slow = await asyncpg.connect(shared_server().url())
        transaction = slow.transaction()
        await transaction.start()
        await slow.execute(f"SET search_path TO {schema}; LOCK TABLE tally_change, item IN ROW EXCLUSIVE MODE")
        await slow.execute(
            "INSERT INTO item (id, run, n, url, body) "
            "SELECT (pg_current_xact_id()::text::bigint << 20) + 1, id, 1, 'slow', '[{}]' FROM run"
        )
        await frontier.exchange(ask(0, done(first, b"{}")))
        seen = await engine.reader.items("run")
        assert len(seen.items) == 0, "an earlier one is still under way"
        await transaction.commit()
        assert [item.url for item in (await engine.reader.items("run")).items] == ["slow", ""]
        stranger = await asyncpg.connect(shared_server().url())
        foreign = stranger.transaction()
        await foreign.start()
        await stranger.execute("SELECT pg_current_xact_id()")
        await frontier.exchange(ask(0, done(second, b"{}")))
        assert len((await engine.reader.items("run")).items) == 3, "what others do in this database is not waited for"
        await foreign.rollback()
        await stranger.close()
        await slow.close()

    async def test_counters_survive_folding_under_a_foreign_transaction(self, engine: PostgresEngine) -> None:
        frontier = engine.frontier
        await frontier.create_run(NewRun("run", "shop", Policy(delay=0, concurrency=9)))
        stranger = await asyncpg.connect(shared_server().url())
        foreign = stranger.transaction()
        await foreign.start()
        await stranger.execute("SELECT pg_current_xact_id()")
        for number in range(20):
            await frontier.enqueue("run", pages(f"{number}.example", 3))
            await frontier.sweep()
        assert (await engine.reader.run("run")).counters.waiting == 60
        assert (await frontier.exchange(ask())).left == 60
        await foreign.rollback()
        await stranger.close()

    async def test_a_store_that_was_restored_into_another_server(self, schema: str) -> None:
        """There transactions are counted anew. What is old stays readable, and what is new comes after it."""
        url = shared_server().url(schema=schema)
        engine = await open_postgres(url)
        frontier = engine.frontier
        await frontier.create_run(NewRun("run", "shop", Policy(delay=0, concurrency=9)))
        await frontier.enqueue("run", pages("a.example", 2))
        first, second = (await frontier.exchange(ask(2))).leases
        await frontier.exchange(ask(0, done(first, b'{"n":1}')))
        await engine.close()
        connection = await asyncpg.connect(shared_server().url())
        await connection.execute(f"SET search_path TO {schema}")
        await connection.execute("UPDATE item SET id = id + (1::bigint << 60)")
        await connection.execute("UPDATE ledger SET upto = '99999999999'")
        await connection.execute("UPDATE tally_change SET xid = '99999999999'")
        await connection.close()
        engine = await open_postgres(url)
        old = await engine.reader.items("run", limit=1)
        assert [bytes(item.body) for item in old.items] == [b'{"n":1}']
        assert old.cursor is not None
        await engine.frontier.exchange(ask(0, done(second, b'{"n":2}')))
        new = await engine.reader.items("run", old.cursor)
        assert [bytes(item.body) for item in new.items] == [b'{"n":2}']
        counts = (await engine.reader.run("run")).counters
        assert (counts.done, counts.items, counts.remaining) == (2, 2, 0)
        await engine.frontier.sweep()
        assert (await engine.reader.run("run")).counters == counts
        await engine.close()


class TestPresence:
    async def test_leases_of_a_dead_process_of_this_machine_come_back_at_once(
        self, engine: PostgresEngine, tmp_path: Path
    ) -> None:
        """And only the task that it had in hand is charged with the crash."""
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", "pass")
        await process.wait()
        notebook = tmp_path / "notebook"
        notebook.write_bytes(bytes(256 * 8))
        worker = WorkerInfo("gone", this_machine(), process.pid, 1, str(notebook))
        frontier = engine.frontier
        await frontier.create_run(NewRun("run", "shop", Policy(delay=0, concurrency=9)))
        await frontier.enqueue("run", pages("a.example", 2))
        leases = (await frontier.exchange(ask(2, worker=worker))).leases
        notebook.write_bytes(leases[1].task.id.to_bytes(8, "little") + bytes(255 * 8))
        alive = WorkerInfo("alive", this_machine(), os.getpid(), 0)
        assert (await frontier.exchange(ask(2, worker=alive))).leases == []
        assert (await frontier.sweep()).returned == 2
        assert (await frontier.sweep()).returned == 0
        again = (await frontier.exchange(ask(2, worker=alive))).leases
        assert [lease.task.crashes for lease in again] == [0, 1]
        assert (await frontier.sweep()).returned == 0, "the living are left alone"


class TestReconnecting:
    async def test_the_next_call_after_a_restart_works(self) -> None:
        server = PostgresServer(need_programs())
        try:
            server.create()
            engine = await open_postgres(server.url())
            await engine.frontier.create_run(NewRun("run", "shop", Policy()))
            server.restart("immediate")
            with pytest.raises(EngineUnavailable):
                await engine.reader.run("run")
            assert (await engine.reader.run("run")).run_id == "run"
            server.kill()
            with pytest.raises(EngineUnavailable):
                await engine.reader.run("run")
            with pytest.raises(EngineUnavailable, match="Nothing answers"):
                await engine.reader.run("run")
            server.start()
            assert (await engine.reader.run("run")).run_id == "run"
            await engine.close()
        finally:
            server.destroy()

    async def test_a_pooler_that_forgets_prepared_statements(self, schema: str) -> None:
        """As behind PgBouncer in transaction mode: the engine notices, and does without them from then on."""
        engine = await open_postgres(shared_server().url(schema=schema, connections="1"))
        await engine.frontier.create_run(NewRun("run", "shop", Policy(delay=0)))
        await engine.frontier.enqueue("run", pages("a.example", 3))
        await engine.frontier.exchange(ask())
        await engine._connections._idle[0].connection.execute("DEALLOCATE ALL")
        for _ in range(3):
            [lease] = (await engine.frontier.exchange(ask(1))).leases
            assert (await engine.frontier.exchange(ask(0, done(lease)))).late == []
        assert not engine._connections._prepares
        await engine.close()

    async def test_a_cancelled_call_leaves_no_half_used_connection(self, schema: str) -> None:
        engine = await open_postgres(shared_server().url(schema=schema, connections="1"))
        await engine.frontier.create_run(NewRun("run", "shop", Policy()))
        for delay in (0, 0.001, 0.003, 0.01):
            call = asyncio.ensure_future(engine.frontier.enqueue("run", pages("a.example", 500)))
            await asyncio.sleep(delay)
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
            assert (await engine.reader.run("run")).counters.waiting % 500 == 0
        await engine.close()
