"""A worker whose store fails, or whose leases are lost."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from shoal.api.page import Page
from shoal.api.scraper import Scraper
from shoal.core.task import Policy
from shoal.delivery.options import LeaseTiming
from shoal.errors import EngineError, EngineFull, EngineUnavailable
from shoal.frontier.contract.frontier import Ask
from shoal.frontier.sqlite.engine import SqliteEngine, open_sqlite
from shoal.testing.hostile_site import HostileSite
from shoal.work.options import WorkTiming
from support.tapped import SHORT, Tapped
from support.working import crawl, reader, result_of, start_run, worker_for

WATCHFUL = WorkTiming(LeaseTiming(look_at_leases_every=0.05))

pytestmark = pytest.mark.usefixtures("notebooks")


# A store that fails


async def test_an_error_of_the_store_ends_the_work_with_that_error(
    engine: SqliteEngine, site: HostileSite, notebooks: Callable[[], int]
) -> None:
    """Nothing goes on, and the notebook stays: it says that nothing was in hand when the leases were left behind."""
    scraper = reader(concurrency=4)
    await start_run(engine, scraper, urls=[site.url("/json"), *(site.url(f"/delay/600000?{n}") for n in range(3))])
    tapped = Tapped(engine)

    def full(ask: Ask) -> None:
        if ask.settlements:
            raise EngineFull("There is no space left.")

    tapped.frontier.before = full
    before = asyncio.all_tasks()
    worker = worker_for(tapped, scraper)
    async with asyncio.timeout(60):
        with pytest.raises(EngineFull, match="no space left"):
            await worker.run()
    assert asyncio.all_tasks() == before
    assert (len(worker._leases.held), len(worker._in_flight._under_way), notebooks()) == (0, 0, 1)


async def test_an_error_that_passes_is_waited_for(
    engine: SqliteEngine, site: HostileSite, notebooks: Callable[[], int]
) -> None:
    """The settlements of the failed exchange are brought again: nothing has to be fetched twice that was read."""
    scraper = reader(concurrency=4)
    await start_run(engine, scraper, urls=[site.url("/json"), *(site.url(f"/delay/300?{n}") for n in range(3))])
    tapped = Tapped(engine)
    failed = False

    def once(ask: Ask) -> None:
        nonlocal failed
        if ask.settlements and not failed:
            failed = True
            raise EngineUnavailable("Locked.")

    tapped.frontier.before = once
    async with asyncio.timeout(60):
        await worker_for(tapped, scraper).run()
    crawled = await result_of(engine)
    assert failed
    assert (crawled.counters.done, crawled.counters.late, crawled.counters.requests) == (4, 0, 4)
    assert len(site.log) == 4
    assert notebooks() == 0


async def test_an_error_in_the_middle_of_a_task_ends_the_work_too(engine: SqliteEngine, site: HostileSite) -> None:
    tapped = Tapped(engine)
    tapped.cache.broken = True
    await start_run(engine, reader(), urls=[site.url("/json")])
    async with asyncio.timeout(60):
        with pytest.raises(EngineError, match="The cache is gone"):
            await worker_for(tapped, reader(obey_robots=True)).run()
    crawled = await result_of(engine)
    assert (crawled.counters.waiting, crawled.counters.leased, crawled.counters.dead) == (1, 0, 0)


# Leases


async def test_leases_are_renewed_while_the_work_goes_on(engine: SqliteEngine, site: HostileSite) -> None:
    tapped = Tapped(engine)
    with sweeping(engine):
        crawled = await crawl(tapped, reader(), urls=[site.url("/delay/2000")], policy=SHORT, timing=WATCHFUL)
    counters = crawled.counters
    assert (counters.done, counters.requests, counters.late, counters.crashes) == (1, 1, 0, 0)
    assert 2 <= tapped.frontier.renewed <= 10


async def test_a_lease_that_is_not_old_is_not_renewed(engine: SqliteEngine, site: HostileSite) -> None:
    tapped = Tapped(engine)
    await crawl(tapped, reader(), urls=[site.url("/delay/1300")])
    assert tapped.frontier.renewed == 0


async def test_work_on_a_lost_lease_is_stopped_and_its_settlement_refused(
    engine: SqliteEngine, site: HostileSite
) -> None:
    scraper = Scraper("test", start=site.url("/json"), obey_robots=False)
    stopped = asyncio.Event()

    @scraper.page
    async def read(page: Page) -> dict[str, str]:
        if len(site.log) == 1:
            await _steal(engine)
            try:
                await asyncio.sleep(30)
            finally:
                stopped.set()
        return {"url": page.url}

    crawled = await crawl(engine, scraper, policy=SHORT, timing=WATCHFUL)
    assert stopped.is_set()
    assert (crawled.counters.late, crawled.counters.done, len(crawled.items)) == (1, 1, 1)


async def _steal(engine: SqliteEngine) -> None:
    """Bring the leases back as if their time were over."""
    await engine._writer.call(lambda tx: tx.connection.execute("UPDATE lease SET expires_at = 1"))
    swept = await engine.frontier.sweep()
    assert swept.returned == 1


async def test_what_is_finished_too_late_is_thrown_away(engine: SqliteEngine, site: HostileSite) -> None:
    """Never renewed, swept away, done again: one item."""
    scraper = Scraper("test", start=site.url("/json"), obey_robots=False)

    @scraper.page
    async def read(_page: Page) -> dict[str, int]:
        if len(site.log) == 1:
            await _steal(engine)
        return {"time": len(site.log)}

    crawled = await crawl(engine, scraper, policy=SHORT)
    assert crawled.items == [{"time": 2}]
    assert (crawled.counters.late, crawled.counters.crashes, crawled.counters.done) == (1, 1, 1)


async def test_a_cancelled_run_stops_its_work(engine: SqliteEngine, site: HostileSite) -> None:
    await start_run(engine, reader(), urls=[site.url("/delay/600000"), site.url("/json")], policy=SHORT)
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(worker_for(engine, reader(), concurrency=1, timing=WATCHFUL).run())
        await site.arrivals(1)
        await engine.frontier.cancel_run("run")
    crawled = await result_of(engine)
    assert (crawled.counters.cancelled, crawled.counters.remaining, crawled.counters.items) == (2, 0, 0)


async def test_handlers_that_compute_for_long_lose_no_lease(engine: SqliteEngine, site: HostileSite) -> None:
    """Sixty answers come in together, and each is computed on for a while: in all for longer than a lease lives."""
    scraper = Scraper("test", delay=0, concurrency=32, obey_robots=False)

    @scraper.page
    def compute(page: Page) -> dict[str, str]:
        end = time.monotonic() + 0.05
        while time.monotonic() < end:
            pass
        return {"url": page.url}

    urls = [site.url(f"/delay/100?{number}") for number in range(60)]
    policy = Policy(delay=0, concurrency=64, lease=2000, hard_timeout=100)
    with sweeping(engine):
        crawled = await crawl(engine, scraper, urls=urls, policy=policy, concurrency=64, timing=WATCHFUL)
    counters = crawled.counters
    assert (counters.done, counters.requests, counters.late, counters.crashes) == (60, 60, 0, 0)


@contextmanager
def sweeping(engine: SqliteEngine) -> Iterator[None]:
    """Someone else, who is never busy, takes away every lease that has run out."""
    path, over = engine._writer._path, threading.Event()

    async def sweep() -> None:
        other = await open_sqlite(path)
        while not over.wait(0.02):
            await other.frontier.sweep()
        await other.close()

    thread = threading.Thread(target=lambda: asyncio.run(sweep()))
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
