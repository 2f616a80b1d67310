"""What only a file can do wrong: missing, foreign, damaged, locked. One sentence each."""

# ruff: noqa: ASYNC240 - tests may touch files

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from shoal.core.task import DEFAULT_POOL, DIRECT, Policy
from shoal.errors import BadSettings, EngineBroken, EngineError, EngineRefused, EngineUnavailable
from shoal.frontier.contract.frontier import Ask, NewRun, WorkerInfo
from shoal.frontier.contract.jobs import NewJob
from shoal.frontier.contract.timeouts import StoreTimeouts
from shoal.frontier.open import open_engine
from shoal.frontier.sqlite import errors as sqlite_errors
from shoal.frontier.sqlite.engine import SqliteEngine, open_sqlite
from shoal.frontier.sqlite.schema import APPLICATION_ID
from shoal.frontier.sqlite.store.connection import connect
from shoal.testing.contract.scene import dead, done, page
from support.sqlite_files import accepted, is_one_sentence, make, opened, put
from support.waiting import until

NOBODY = 65534


class TestOpening:
    async def test_a_file_is_made_and_found_again(self, path: Path) -> None:
        await make(path)
        assert await accepted(path) == 3
        with contextlib.closing(sqlite3.connect(path)) as plain:
            assert plain.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
            assert plain.execute("PRAGMA journal_mode").fetchone() == ("wal",)
            assert plain.execute("PRAGMA integrity_check").fetchone() == ("ok",)

    async def test_what_is_written_is_on_the_disk(self, path: Path) -> None:
        async with opened(path) as engine:
            writer = engine._writer._connection
            assert writer.execute("PRAGMA synchronous").fetchone() == (2,), "FULL"

    async def test_the_url_of_an_engine_leads_to_its_file(self, tmp_path: Path) -> None:
        engine = await open_engine(f"sqlite:///{tmp_path}/with%20space.db")
        await engine.close()
        assert (tmp_path / "with space.db").exists()
        for wrong in ("sqlite://", "sqlite:///", "shoal.db", "mongodb://x/y"):
            with pytest.raises(BadSettings):
                await open_engine(wrong)

    async def test_a_missing_file_is_not_made_unasked(self, path: Path) -> None:
        with pytest.raises(EngineRefused, match="no file") as caught:
            await open_sqlite(path, create=False)
        assert is_one_sentence(caught.value, path)
        assert not path.exists()

    async def test_a_folder(self, tmp_path: Path) -> None:
        with pytest.raises(EngineRefused, match="is a folder") as caught:
            await open_sqlite(tmp_path)
        assert is_one_sentence(caught.value, tmp_path)

    async def test_a_folder_that_is_not_there(self, tmp_path: Path) -> None:
        path = tmp_path / "missing" / "shoal.db"
        with pytest.raises(EngineRefused, match="cannot be opened") as caught:
            await open_sqlite(path)
        assert is_one_sentence(caught.value, path)

    async def test_not_a_database(self, path: Path) -> None:
        path.write_bytes(b"url,title\nhttps://a.example/,A\n" * 100)
        with pytest.raises(EngineBroken, match="not a SQLite file") as caught:
            await open_sqlite(path)
        assert is_one_sentence(caught.value, path)
        assert path.read_bytes().startswith(b"url,title"), "it was left alone"

    async def test_the_file_of_another_program(self, path: Path) -> None:
        with contextlib.closing(sqlite3.connect(path)) as plain:
            plain.execute("CREATE TABLE bookmark (url)")
        with pytest.raises(EngineBroken, match="another program") as caught:
            await open_sqlite(path)
        assert is_one_sentence(caught.value, path)
        with contextlib.closing(sqlite3.connect(path)) as plain:
            assert plain.execute("SELECT name FROM sqlite_schema").fetchall() == [("bookmark",)]

    async def test_a_file_of_a_newer_version(self, path: Path) -> None:
        await make(path)
        with contextlib.closing(sqlite3.connect(path)) as plain:
            plain.execute("PRAGMA user_version = 99")
        with pytest.raises(EngineBroken, match=r"a newer Shoal \(schema 99") as caught:
            await open_sqlite(path)
        assert is_one_sentence(caught.value, path)

    @pytest.mark.parametrize("kept", [100, 4096, 8192, 65536])
    async def test_a_damaged_file(self, path: Path, kept: int) -> None:
        await make(path, tasks=500)
        content = path.read_bytes()
        assert len(content) > kept
        path.write_bytes(content[:kept] + os.urandom(len(content) - kept))
        with pytest.raises(EngineBroken) as caught:
            await self._use(path)
        assert is_one_sentence(caught.value, path)

    async def _use(self, path: Path) -> None:
        async with opened(path) as engine:
            await engine.reader.run("run")
            await put(engine, 500, 500)

    async def test_many_open_a_new_file_at_once(self, tmp_path: Path) -> None:
        for attempt in range(5):
            path = tmp_path / f"{attempt}.db"
            engines = await asyncio.gather(*(open_sqlite(path) for _ in range(8)))
            await engines[0].frontier.create_run(NewRun("run", "shop", Policy()))
            for engine in engines:
                assert (await engine.reader.run("run")).run_id == "run"
                await engine.close()

    async def test_a_closed_engine_says_so(self, path: Path) -> None:
        await make(path)
        engine = await open_sqlite(path)
        await engine.close()
        with pytest.raises(EngineRefused, match="closed"):
            await put(engine, 0, 1)

    async def test_what_was_asked_before_closing_is_still_done(self, path: Path) -> None:
        await make(path, tasks=0)
        engine = await open_sqlite(path)
        calls = [asyncio.ensure_future(put(engine, n, 1)) for n in range(50)]
        await asyncio.sleep(0)  # the calls are made, none is answered
        await engine.close()
        await asyncio.gather(*calls)
        assert await accepted(path) == 50


class TestReadOnly:
    @pytest.fixture
    def folder(self) -> Iterator[Path]:
        """A folder that others may enter, unlike pytest's own."""
        folder = Path(tempfile.mkdtemp(prefix="shoal-test-"))
        folder.chmod(0o755)
        yield folder
        folder.chmod(0o755)
        shutil.rmtree(folder)

    async def test_a_read_only_file(self, folder: Path) -> None:
        path = folder / "shoal.db"
        await make(path)
        path.chmod(0o444)
        with pytest.raises(EngineRefused, match=r"written to|opened|permission") as caught, ordinary_user():
            connect(path, create=True).close()
        assert is_one_sentence(caught.value, path)
        path.chmod(0o644)
        assert await accepted(path) == 3

    async def test_a_file_that_may_not_be_read(self, folder: Path) -> None:
        path = folder / "shoal.db"
        await make(path)
        path.chmod(0o000)
        with pytest.raises(EngineRefused) as caught, ordinary_user():
            connect(path, create=True).close()
        assert is_one_sentence(caught.value, path)

    def test_a_read_only_folder(self, folder: Path) -> None:
        path = folder / "shoal.db"
        folder.chmod(0o555)
        with pytest.raises(EngineRefused, match="Check that its folder") as caught, ordinary_user():
            connect(path, create=True).close()
        assert is_one_sentence(caught.value, path)


@contextlib.contextmanager
def ordinary_user() -> Iterator[None]:
    """Access to files as an ordinary user, for this thread: root may write to what is read-only."""
    if os.geteuid() != 0:
        yield
        return
    libc = ctypes.CDLL(None)
    libc.setfsuid(NOBODY)
    try:
        yield
    finally:
        libc.setfsuid(0)


IMPATIENT = StoreTimeouts(connect=0.02, call=0.02)


class TestLocked:
    async def test_opening_a_locked_file(self, path: Path) -> None:
        await make(path)
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            with pytest.raises(EngineUnavailable, match="locked by another program") as caught:
                await open_sqlite(path, timeouts=IMPATIENT)
            assert is_one_sentence(caught.value, path)
        assert await accepted(path) == 3

    async def test_writing_to_a_locked_file_fails_and_later_works(self, path: Path) -> None:
        await make(path)
        async with opened(path, timeouts=IMPATIENT) as engine:
            with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
                other.execute("BEGIN EXCLUSIVE")
                with pytest.raises(EngineUnavailable, match="locked by another program"):
                    await put(engine, 3, 1)
                assert (await engine.reader.run("run")).counters.accepted == 3, "looking is not held up"
            await put(engine, 3, 1)
        assert await accepted(path) == 4

    async def test_a_short_lock_is_waited_for(self, path: Path) -> None:
        await make(path)
        async with opened(path) as engine:
            with contextlib.closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
                other.execute("BEGIN IMMEDIATE")
                waiting = asyncio.ensure_future(put(engine, 3, 1))
                await asyncio.sleep(0)
                assert not waiting.done()
                other.execute("COMMIT")
                await waiting
        assert await accepted(path) == 4


def test_every_sentence_of_the_store_is_an_engine_error() -> None:
    for kind, sentence in sqlite_errors._SENTENCES.values():
        assert issubclass(kind, EngineError)
        assert is_one_sentence(kind(sentence.format(path="/x/shoal.db")), Path("/x/shoal.db"))


async def test_nothing_of_a_forgotten_job_stays_in_the_file(path: Path) -> None:
    async with opened(path) as engine:
        policy = Policy(delay=0, concurrency=9, results_ttl=1)
        await engine.jobs.submit(
            [NewJob(NewRun("one", "shop", policy, queue="q"), [page("a.example/1"), page("b.example/1")])]
        )
        ask = Ask(WorkerInfo("w", "elsewhere", 1, 1), ("shop",), ("bulk",), {DEFAULT_POOL: (DIRECT,)}, 2)
        first, second = (await engine.frontier.exchange(ask)).leases
        await engine.frontier.exchange(
            msgspec.structs.replace(ask, want=0, settlements=[done(first, b"{}"), dead(second)])
        )
        assert (await until(lambda: _expired(engine, "expired"), "the results are over")) == 1
        assert (await until(lambda: _expired(engine, "forgotten"), "the job is over, too")) == 1
    with contextlib.closing(sqlite3.connect(path)) as plain:
        left = {
            name: plain.execute(f"SELECT count(*) FROM {name}").fetchone()[0]  # noqa: S608 - names of our own
            for name in ("run", "job", "task", "item", "dead", "seen", "seen_lately")
        }
    assert set(left.values()) == {0}, left


async def _expired(engine: SqliteEngine, what: str) -> int:
    number: int = getattr(await engine.jobs.expire(0), what)
    return number
