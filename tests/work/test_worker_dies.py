"""Workers that are killed in the middle of their work."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Awaitable
from pathlib import Path

import pytest

from shoal.core.outcome import Blame
from shoal.testing.hostile_site import HostileSite
from support.working import opened, result_of

pytestmark = pytest.mark.usefixtures("notebooks")


KILLER = """
import asyncio, os, sys
from pathlib import Path
from shoal import Page, Request, Scraper
from shoal.frontier.open import open_engine
from shoal.runs.seeding import seed
from shoal.work.options import WorkerOptions
from shoal.work.worker import Worker

base, database = sys.argv[1:]
killer = Scraper("killer", delay=0, concurrency=8, obey_robots=False, start=[
    *(Request(f"{{base}}/delay/400?{{n}}") for n in range(3)), Request(f"{{base}}/delay/150", "kill"),
])

@killer.page
def read(page: Page):
    return {{"url": page.url}}

@killer.page("kill")
{handler}

async def main():
    engine = await open_engine(f"sqlite:///{{database}}")
    await seed(engine, killer, "run")
    {main}
    await engine.close()

asyncio.run(main())
"""

SHORT_OF_PATIENCE = 'await Worker(engine, [killer], WorkerOptions(user_agent="x", drain=True, max_block=0.5)).run()'
WORK = 'await Worker(engine, [killer], WorkerOptions(user_agent="x", drain=True)).run()'


def script(folder: Path, handler: str, main: str = WORK) -> Path:
    file = folder / "killer.py"
    file.write_text(KILLER.format(handler=textwrap.dedent(handler).strip(), main=main))
    return file


def execute(file: Path, site: HostileSite, folder: Path) -> Awaitable[subprocess.CompletedProcess[str]]:
    command = [sys.executable, str(file), site.url(""), str(folder / "shoal.db")]
    place = {**os.environ, "TMPDIR": str(folder)}
    return asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, timeout=120, check=False, env=place
    )


async def test_a_handler_that_kills_three_times_is_a_dead_letter_and_nobody_else_is_charged(
    tmp_path: Path, site: HostileSite
) -> None:
    file = script(tmp_path, "async def kill(page):\n    await asyncio.sleep(0.01)\n    os.kill(os.getpid(), 9)")
    for _ in range(3):
        assert (await execute(file, site, tmp_path)).returncode == -9
    last = await execute(file, site, tmp_path)
    assert last.returncode == 0, last.stderr
    async with opened(tmp_path) as engine:
        crawled = await result_of(engine)
    letter = crawled.only_death
    print(f"{crawled.counters}; {letter.reason.text}")
    assert (letter.url, letter.reason.blame) == (site.url("/delay/150"), Blame.WORKER)
    assert (letter.crashes, letter.attempts) == (3, 0)
    assert (crawled.counters.crashes, crawled.counters.done, len(crawled.items)) == (3, 3, 3)


async def test_what_cannot_be_stopped_ends_its_process_and_is_charged_alone(tmp_path: Path, site: HostileSite) -> None:
    """The parser heeds no signal. Three times it is given such a page, each time with others in flight."""
    handler = """
    def kill(page):
        Page.from_html("<div><table><tr><td></div></table>" * 200_000).css("p")
    """
    file = script(tmp_path, handler, SHORT_OF_PATIENCE)
    for _ in range(3):
        died = await execute(file, site, tmp_path)
        assert died.returncode == 70, died.stderr
        assert "loop.lost" in died.stdout + died.stderr
        assert f"{site.url('/delay/150')}" in died.stdout + died.stderr
    last = await execute(file, site, tmp_path)
    assert last.returncode == 0, last.stderr
    async with opened(tmp_path) as engine:
        crawled = await result_of(engine)
    letter = crawled.only_death
    print(f"{crawled.counters}; {letter.reason.text}")
    assert (letter.url, letter.reason.blame, letter.crashes) == (site.url("/delay/150"), Blame.WORKER, 3)
    assert (crawled.counters.crashes, crawled.counters.done, len(crawled.items)) == (3, 3, 3)


async def test_what_lets_no_thread_run_and_heeds_no_signal_is_ended_by_the_kernel(
    tmp_path: Path, site: HostileSite
) -> None:
    file = script(tmp_path, "def kill(page):\n    sum(range(10**12))", SHORT_OF_PATIENCE)
    assert (await execute(file, site, tmp_path)).returncode == -signal.SIGPROF
    async with opened(tmp_path) as engine:
        await engine.frontier.sweep()
        crawled = await result_of(engine)
    assert (crawled.counters.crashes, crawled.counters.leased) == (1, 0)


async def test_a_process_that_ends_without_its_store_charges_nobody(tmp_path: Path, site: HostileSite) -> None:
    """It was the store that failed, not what was in hand: the leases come back without a crash."""
    main = """
    from shoal.errors import EngineFull
    frontier = engine.frontier
    real = frontier.exchange
    async def exchange(ask):
        if ask.settlements: raise EngineFull("full")
        return await real(ask)
    frontier.exchange = exchange
    try:
        await Worker(engine, [killer], WorkerOptions(user_agent="x", drain=True)).run()
    except EngineFull:
        sys.exit(5)
    """
    file = script(tmp_path, "def kill(page):\n    return None", textwrap.dedent(main).strip().replace("\n", "\n    "))
    ended = await execute(file, site, tmp_path)
    assert ended.returncode == 5, ended.stderr
    async with opened(tmp_path) as engine:
        assert (await result_of(engine)).counters.leased == 4
        swept = await engine.frontier.sweep()
        crawled = await result_of(engine)
    assert swept.returned == 4
    assert (crawled.counters.waiting, crawled.counters.crashes) == (4, 0)
