"""The life of a worker: beginning, sharing, waiting, and leaving nothing behind."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import Iterator
from typing import Any, cast

import pytest

from shoal.api.page import Page
from shoal.api.scraper import Scraper
from shoal.delivery.batching import ahead, linger
from shoal.errors import UsageError
from shoal.frontier.contract.frontier import Ask, Granted
from shoal.frontier.sqlite.engine import SqliteEngine
from shoal.testing.hostile_site import HostileSite, RobotsKind, site_item
from shoal.work.options import WorkerOptions
from support.tapped import Tapped
from support.waiting import until
from support.working import crawl, reader, start_run, worker_for

pytestmark = pytest.mark.usefixtures("notebooks")


# Working


async def test_an_empty_run_ends_at_once(engine: SqliteEngine) -> None:
    crawled = await crawl(engine, reader(), urls=[])
    assert (crawled.run.state, crawled.counters.accepted) == ("finished", 0)


async def test_every_page_once_and_every_counter_true(engine: SqliteEngine, site: HostileSite) -> None:
    crawled = await crawl_site(engine, site, 300, workers=1)
    counters = crawled.counters
    assert (counters.done, counters.items, counters.requests) == (300, 300, 300)
    assert (counters.leased, counters.waiting, counters.late, counters.crashes) == (0, 0, 0, 0)


async def test_several_workers_share_a_run_without_doubling(engine: SqliteEngine, site: HostileSite) -> None:
    crawled = await crawl_site(engine, site, 300, workers=4)
    assert max(site.log.counts().values()) == 1
    assert (crawled.counters.requests, crawled.counters.late) == (300, 0)


async def crawl_site(engine: SqliteEngine, site: HostileSite, size: int, *, workers: int) -> Any:
    scraper = Scraper("test", start=site.url(f"/site/{size}/"), delay=0, concurrency=32, obey_robots=False)

    @scraper.page
    def read(page: Page) -> Iterator[object]:
        yield {"title": page.text("h1")}
        yield page.follow("a")

    crawled = await crawl(engine, scraper, workers=workers, concurrency=16)
    assert Counter(item["title"] for item in crawled.items) == {site_item(n).title: 1 for n in range(size)}
    return crawled


async def test_a_worker_without_drain_waits_for_more(engine: SqliteEngine, site: HostileSite) -> None:
    scraper = reader()
    worker = worker_for(engine, scraper, drain=False)
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        group.create_task(worker.run())
        for number in range(3):
            await start_run(engine, scraper, f"run{number}", urls=[site.url(f"/json?{number}")])
            await site.arrivals(number + 1)
        await until(lambda: _finished(engine, 3), "three are finished")
        worker.stop()


async def _finished(engine: SqliteEngine, number: int) -> bool:
    return [run.state for run in await engine.reader.runs()] == ["finished"] * number


async def test_settlements_are_not_kept_back_when_all_hands_are_full(engine: SqliteEngine, site: HostileSite) -> None:
    """Two of three hands are busy for long; what the third does is in the store meanwhile."""
    slow = [site.url(f"/delay/60000?{number}") for number in range(2)]
    quick = [site.url(f"/json?{number}", host="127.0.0.2") for number in range(30)]
    scraper = reader(concurrency=8)
    await start_run(engine, scraper, urls=[*slow, *quick])
    worker = worker_for(engine, scraper, concurrency=3)

    async def all_quick() -> bool:
        return (await engine.reader.run("run")).counters.done == 30

    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        group.create_task(worker.run())
        await until(all_quick, "all quick ones are done")
        worker.abort()


# Waiting


async def test_no_busy_loop_while_a_slot_is_not_due(engine: SqliteEngine, site: HostileSite) -> None:
    tapped = Tapped(engine)
    crawled = await crawl(tapped, reader(delay=1.0), urls=[site.url("/json"), site.url("/empty")])
    print(f"{len(tapped.frontier.asked)} exchanges in 1 s")
    assert crawled.counters.done == 2
    assert site.log.smallest_gap() >= 1.0
    assert len(tapped.frontier.asked) < 20


async def test_no_busy_loop_while_a_request_is_slow(engine: SqliteEngine, site: HostileSite) -> None:
    tapped = Tapped(engine)
    await crawl(tapped, reader(), urls=[site.url("/delay/1000")])
    assert len(tapped.frontier.asked) < 15


async def test_no_busy_loop_while_nothing_is_there(engine: SqliteEngine) -> None:
    tapped = Tapped(engine)
    worker = worker_for(tapped, reader(), drain=False)
    asyncio.get_running_loop().call_later(1.0, worker.stop)
    await worker.run()
    assert len(tapped.frontier.asked) < 12


async def test_no_busy_loop_while_something_due_cannot_be_had(engine: SqliteEngine, site: HostileSite) -> None:
    """The store says that something is due now, and then grants nothing: that costs no more than a little."""
    tapped = Tapped(engine)
    await start_run(engine, reader(), urls=[site.url("/json")])
    worker = worker_for(tapped, reader(), drain=False)
    real = tapped.frontier._frontier

    class Teasing:
        sweep = real.sweep

        async def exchange(self, ask: Ask) -> Granted:
            await asyncio.sleep(0)
            return Granted([], 1000, 1000, 1)

    tapped.frontier._frontier = Teasing()
    asyncio.get_running_loop().call_later(0.3, worker.stop)
    await worker.run()
    assert len(tapped.frontier.asked) < 200


async def test_no_more_is_taken_at_once_than_asked_for(engine: SqliteEngine, site: HostileSite) -> None:
    tapped = Tapped(engine)
    urls = [site.url(f"/json?{number}") for number in range(20)]
    crawled = await crawl(tapped, reader(concurrency=20), urls=urls, concurrency=10, batch=3)
    assert crawled.counters.done == 20
    assert max(ask.want for ask in tapped.frontier.asked) == 3


@pytest.mark.parametrize("option", ["batch", "concurrency"])
def test_a_worker_that_could_take_nothing_is_refused(option: str) -> None:
    with pytest.raises(UsageError, match=f"{option} must be 1 or more, not 0"):
        WorkerOptions("ShoalTest/1.0", **cast("dict[str, Any]", {option: 0}))


def test_a_busy_store_is_asked_in_groups() -> None:
    assert linger(0.3) == 0.004
    assert linger(80.0) == 0.08
    assert linger(9_000.0) == 0.25


def test_a_busy_store_is_asked_earlier() -> None:
    assert ahead(0.3) == 20
    assert ahead(30.0) == 60
    assert ahead(9_000.0) == 100


# Memory


async def test_nothing_piles_up(engine: SqliteEngine, site: HostileSite) -> None:
    """Forty origins, of which robots.txt was had, or not: nothing is remembered of the asking."""
    for number in range(20, 40):
        site.robots[f"127.0.0.{number}"] = RobotsKind.ERROR
    urls = [site.url("/json", host=f"127.0.0.{number}") for number in range(1, 40)]
    scraper = reader(obey_robots=True, attempts=1, site_down_after=0)
    await start_run(engine, scraper, urls=urls)
    worker = worker_for(engine, scraper)
    async with asyncio.timeout(10):
        await worker.run()
    gc.collect()
    permission = worker._executor._permission
    assert (len(permission._questions), len(permission._halfway)) == (0, 0)
    assert not worker._leases.held
    assert not worker._in_flight._under_way
    assert worker._leases._producer.exchanges.are_over
