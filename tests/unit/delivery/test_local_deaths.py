"""The death of a worker is noticed by the others of its machine at once, and what it held comes back."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from shoal.core.clock import SystemClock
from shoal.delivery.local_deaths import LocalDeaths
from shoal.delivery.options import LeaseTiming
from shoal.frontier.sqlite.engine import SqliteEngine, open_sqlite
from shoal.testing.hostile_site import HostileSite
from shoal.work.options import WorkTiming
from support.crawling import kill_all, start
from support.waiting import until
from support.working import reader, result_of, worker_for

LONG = 3600.0
"""Seconds that no test waits for."""

A_WORKER = """
import sys
from shoal.frontier.shared.liveness import introduce
introduce()
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def folder(own_temporary_files: Path) -> Path:
    """Where the notebooks of a test are."""
    return own_temporary_files


@pytest.fixture
def neighbour(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Another worker of this machine."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", A_WORKER], text=True, **pipes) as process:  # type: ignore[call-overload]
        assert process.stdout.readline() == "ready\n"
        assert list(folder.glob("shoal-*/shoal-*.hand"))
        yield process
        process.kill()


async def test_a_death_ends_the_wait(neighbour: subprocess.Popen[str]) -> None:
    with LocalDeaths(SystemClock()) as deaths:
        deaths.look_around()
        asyncio.get_running_loop().call_later(0.05, neighbour.send_signal, signal.SIGKILL)
        async with asyncio.timeout(30):
            assert await deaths.wait(LONG)


async def test_each_dies_once(neighbour: subprocess.Popen[str]) -> None:
    """Though its notebook lies there, and though nobody has asked yet how it ended."""
    with LocalDeaths(SystemClock()) as deaths:
        neighbour.send_signal(signal.SIGKILL)
        await asyncio.to_thread(os.waitid, os.P_PID, neighbour.pid, os.WEXITED | os.WNOWAIT)
        async with asyncio.timeout(30):
            deaths.look_around()
            assert await deaths.wait(LONG)
        deaths.look_around()
        assert not await deaths.wait(0.05)


async def test_who_lives_ends_no_wait(neighbour: subprocess.Popen[str]) -> None:
    with LocalDeaths(SystemClock()) as deaths:
        deaths.look_around()
        assert not await deaths.wait(0.05)
        assert neighbour.poll() is None


async def test_no_descriptor_is_left(neighbour: subprocess.Popen[str]) -> None:
    before = _descriptors()
    with LocalDeaths(SystemClock()) as deaths:
        deaths.look_around()
        deaths.look_around()
        assert _descriptors() == before + 1
        assert neighbour.poll() is None
    assert _descriptors() == before


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.fixture
async def engine(folder: Path) -> AsyncIterator[SqliteEngine]:
    engine = await open_sqlite(folder / "shoal.db")
    yield engine
    await engine.close()


async def test_what_a_killed_worker_held_comes_back_without_a_sweep_in_between(
    engine: SqliteEngine, folder: Path
) -> None:
    async with HostileSite() as site:
        page = site.url("/delay/first/1/60000/page")
        (folder / "test_scraper.py").write_text(
            f"from shoal import Scraper\ntest = Scraper('test', start=[{page!r}], delay=0, obey_robots=False)\n"
            "@test.page\ndef read(page): yield {'url': page.url}\n"
        )
        other = await asyncio.to_thread(start, folder, "run", "test_scraper.py", "--quiet", "--run-id", "run")
        await until(lambda: len(site.log), "the other has asked")
        worker = worker_for(engine, reader(), timing=WorkTiming(LeaseTiming(sweep_every=LONG)))
        working = asyncio.create_task(worker.run())

        async def is_known() -> bool:
            return os.getpid() in {known.info.pid for known in await engine.reader.workers()}

        await until(is_known, "the store knows this worker")
        await asyncio.to_thread(kill_all, other)
        async with asyncio.timeout(30):
            await working
    assert (await result_of(engine)).counters.done == 1
