"""What only a file can do wrong: missing, foreign, damaged, locked, full, on the wrong disk. One sentence each."""

# ruff: noqa: ASYNC240 - tests may touch files

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from shoal.core.task import DEFAULT_POOL, DIRECT, Policy
from shoal.errors import BadSettings, EngineBroken, EngineError, EngineFull, EngineRefused, EngineUnavailable
from shoal.frontier.contract.engine import Engine
from shoal.frontier.contract.frontier import Ask, NewRun, WorkerInfo
from shoal.frontier.contract.jobs import NewJob
from shoal.frontier.contract.timeouts import StoreTimeouts
from shoal.frontier.open import open_engine
from shoal.frontier.sqlite import errors as sqlite_errors
from shoal.frontier.sqlite.engine import SqliteEngine, open_sqlite
from shoal.frontier.sqlite.schema import APPLICATION_ID
from shoal.frontier.sqlite.store.connection import connect, file_system_of, open_file
from shoal.testing.contract.scene import dead, done, page
from support.waiting import until

NOBODY = 65534


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shoal.db"


@contextlib.asynccontextmanager
async def opened(path: Path, **options: Any) -> AsyncIterator[SqliteEngine]:
    engine = await open_sqlite(path, **options)
    try:
        yield engine
    finally:
        await engine.close()


async def make(path: Path, tasks: int = 3) -> None:
    """A file with one run and some tasks."""
    async with opened(path) as engine:
        await engine.frontier.create_run(NewRun("run", "shop", Policy()))
        await put(engine, 0, tasks)


async def put(engine: Engine, start: int, number: int) -> None:
    await engine.frontier.enqueue("run", [page(f"{n}.example/{n}" + "x" * 100) for n in range(start, start + number)])


async def accepted(path: Path) -> int:
    async with opened(path, create=False) as engine:
        return (await engine.reader.run("run")).counters.accepted


def is_one_sentence(error: BaseException, path: Path) -> bool:
    """It names the file, ends like a sentence, and speaks neither Python nor SQLite."""
    text = str(error)
    return str(path) in text and text.endswith(".") and "sqlite3." not in text and "\n" not in text


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


class TestFull:
    async def test_no_room_for_more_pages(self, path: Path) -> None:
        """What was acknowledged is safe, and with room again the same engine goes on."""
        await make(path, tasks=0)
        async with opened(path) as engine:
            writer = engine._writer._connection
            [(used,)] = writer.execute("PRAGMA page_count").fetchall()
            writer.execute(f"PRAGMA max_page_count = {used + 30}")
            stored = await self._fill(engine, path)
            counts = (await engine.reader.run("run")).counters
            assert counts.accepted == stored
            writer.execute("PRAGMA max_page_count = 1000000")
            await put(engine, stored, 100)
        assert await accepted(path) == stored + 100

    async def test_a_full_disk(self, tmp_path: Path, small_disk: Path) -> None:
        path = small_disk / "shoal.db"
        await make(path, tasks=0)
        async with opened(path) as engine:
            stored = await self._fill(engine, path)
            assert (await engine.reader.run("run")).counters.accepted == stored
        for suffix in ("", "-wal"):  # as long as there is no room, what was written stays beside the file
            if (beside := path.with_name(path.name + suffix)).exists():
                shutil.copy(beside, tmp_path / beside.name)
        assert await accepted(tmp_path / path.name) == stored

    async def test_no_room_for_a_new_file(self, small_disk: Path) -> None:
        (small_disk / "ballast").write_bytes(bytes(_free_bytes(small_disk) - 20_000))
        path = small_disk / "shoal.db"
        with pytest.raises(EngineFull) as caught:
            await open_sqlite(path)
        assert is_one_sentence(caught.value, path)
        (small_disk / "ballast").unlink()
        await make(path)
        assert await accepted(path) == 3

    async def _fill(self, engine: Engine, path: Path) -> int:
        """Put in batches of 100 until there is no room. Answers how many tasks were acknowledged."""
        caught: EngineFull | None = None
        stored = 0
        while caught is None:
            try:
                await put(engine, stored, 100)
                stored += 100
            except EngineFull as error:
                caught = error
        assert is_one_sentence(caught, path)
        assert "no space left" in str(caught)
        return stored

    @pytest.fixture
    def small_disk(self, tmp_path: Path) -> Iterator[Path]:
        place = tmp_path / "disk"
        place.mkdir()
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=2m", "shoal-test", str(place)], capture_output=True, check=False
        )
        if mounted.returncode:
            pytest.skip("lacks a small disk: mounting one needs root")
        yield place
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def _free_bytes(place: Path) -> int:
    return shutil.disk_usage(place).free


class TestNetworkFileSystems:
    @pytest.fixture
    def mounts(self, tmp_path: Path) -> Path:
        return tmp_path / "mounts"

    @pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs", "9p"])
    def test_they_are_refused(self, path: Path, mounts: Path, kind: str) -> None:
        mounts.write_text(f"/dev/sda / ext4 rw 0 0\nserver:/x {path.parent} {kind} rw 0 0\n")
        with pytest.raises(EngineRefused, match="network file system") as caught:
            open_file(path, create=True, migrate=False, mounts=mounts)
        assert is_one_sentence(caught.value, path)
        assert not path.exists()

    def test_the_innermost_and_latest_mount_counts(self, mounts: Path) -> None:
        lines = [
            "server:/ / nfs4 rw 0 0",
            "/dev/sdb /data ext4 rw 0 0",
            "server:/x /data/far\\040away nfs4 rw 0 0",
            "/dev/sdc /data/far\\040away/near xfs rw 0 0",
            "/dev/sdd /data/two ext4 rw 0 0",
            "server:/y /data/two nfs rw 0 0",
        ]
        mounts.write_text("\n".join(lines))
        assert file_system_of(Path("/srv/shoal.db"), mounts) == "nfs4"
        assert file_system_of(Path("/data/shoal.db"), mounts) == "ext4"
        assert file_system_of(Path("/data/far away/shoal.db"), mounts) == "nfs4"
        assert file_system_of(Path("/data/far away/near/shoal.db"), mounts) == "xfs"
        assert file_system_of(Path("/data/two/shoal.db"), mounts) == "nfs"
        assert file_system_of(Path("/database/shoal.db"), mounts) == "nfs4", "not what merely begins alike"

    def test_this_machine_has_file_systems(self, tmp_path: Path) -> None:
        assert file_system_of(tmp_path / "shoal.db")


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
