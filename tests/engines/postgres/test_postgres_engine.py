"""What PostgreSQL asks of its engine: migrations, cursors under foreign transactions, deaths, restarts and poolers."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import asyncpg  # type: ignore[import-untyped]
import pytest

from servers.postgres import PostgresServer, need_programs, shared_server
from servers.postgres_stage import WORKER, ask, done, pages
from shoal.core.task import Policy
from shoal.errors import EngineBroken, EngineRefused, EngineUnavailable
from shoal.frontier.contract.frontier import NewRun, Renewal, WorkerInfo
from shoal.frontier.postgres.engine import PostgresEngine, open_postgres
from shoal.frontier.postgres.schema import SCHEMA_VERSION
from shoal.frontier.shared.liveness import this_machine
from support.waiting import until


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
