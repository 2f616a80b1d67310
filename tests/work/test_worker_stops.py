"""A worker that is told to stop, once or more often, gives back what it holds."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

import pytest

from shoal.api.page import Page
from shoal.api.scraper import Scraper
from shoal.errors import Retry
from shoal.frontier.contract.frontier import Swept
from shoal.frontier.sqlite.engine import SqliteEngine
from shoal.testing.hostile_site import HostileSite, RobotsKind, site_item
from support.tapped import Tapped, TappedFrontier, leased
from support.waiting import until
from support.working import reader, result_of, start_run, worker_for

pytestmark = pytest.mark.usefixtures("notebooks")


# Stopping


async def test_stop_gives_back_at_once_what_has_made_no_request(engine: SqliteEngine, site: HostileSite) -> None:
    """One of eight asks for robots.txt, seven wait for it. Those go back while the one still has its grace."""
    site.robots["127.0.0.1"] = RobotsKind.TIMEOUT
    scraper = reader(obey_robots=True, concurrency=8)
    await start_run(engine, scraper, urls=[site.url(f"/json?{number}") for number in range(8)])
    worker = worker_for(engine, scraper, grace=60)
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(worker.run())
        await site.arrivals(1)
        await until(leased(engine, 8), "eight tasks are leased")
        worker.stop()
        await until(leased(engine, 1), "one task is leased")
        worker.abort()
    crawled = await result_of(engine)
    assert (crawled.counters.waiting, crawled.counters.leased, crawled.counters.crashes) == (8, 0, 0)


async def test_a_worker_ends_although_a_cancellation_was_swallowed(engine: SqliteEngine, site: HostileSite) -> None:
    """As `asyncio.wait_for` does in Python 3.11, below a driver, where an answer comes in the same moment."""

    class Deaf(TappedFrontier):
        sweeps = 0

        async def sweep(self) -> Swept:
            self.sweeps += 1
            with suppress(*([asyncio.CancelledError] if self.sweeps == 1 else [])):
                await asyncio.Event().wait()
            return Swept()

    tapped, scraper = Tapped(engine), reader()
    tapped.frontier = deaf = Deaf(engine)
    await start_run(engine, scraper, urls=[site.url("/json")])
    async with asyncio.timeout(60):
        await worker_for(tapped, scraper).run()
    assert deaf.sweeps == 1


async def test_stop_lets_what_is_in_flight_end(engine: SqliteEngine, site: HostileSite) -> None:
    await start_run(engine, reader(), urls=[site.url("/delay/200"), site.url("/delay/200?2")])
    worker = worker_for(engine, reader(), concurrency=1)
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(worker.run())
        await site.arrivals(1)
        worker.stop()
        worker.stop()
    crawled = await result_of(engine)
    assert (crawled.counters.done, crawled.counters.waiting, len(site.log)) == (1, 1, 1)


async def test_abort_waits_for_nothing(engine: SqliteEngine, site: HostileSite) -> None:
    await start_run(engine, reader(), urls=[site.url("/delay/600000")])
    worker = worker_for(engine, reader(), grace=100)
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(worker.run())
        await site.arrivals(1)
        worker.stop()
        await asyncio.sleep(0)
        worker.abort()
    crawled = await result_of(engine)
    assert (crawled.counters.waiting, crawled.counters.leased, crawled.counters.requests) == (1, 0, 1)


@pytest.mark.parametrize("how", ["stop", "abort"])
async def test_stopped_in_the_very_moment_of_a_grant(engine: SqliteEngine, site: HostileSite, how: str) -> None:
    """The leases have come, but no task has taken its first step: they go back all the same."""
    scraper = reader(concurrency=8)
    await start_run(engine, scraper, urls=[site.url(f"/json?{number}") for number in range(8)])
    tapped = Tapped(engine)
    worker = worker_for(tapped, scraper)
    tapped.frontier.after = lambda _granted: getattr(worker, how)()
    async with asyncio.timeout(60):
        await worker.run()
    crawled = await result_of(engine)
    assert (crawled.counters.waiting, crawled.counters.leased, len(site.log)) == (8, 0, 0)
    assert len(tapped.frontier.asked) == 2


async def test_stopped_before_it_began(engine: SqliteEngine, site: HostileSite) -> None:
    await start_run(engine, reader(), urls=[site.url("/json")])
    worker = worker_for(engine, reader())
    worker.stop()
    async with asyncio.timeout(60):
        await worker.run()
    assert len(site.log) == 0


async def test_a_handler_that_waits_for_ever_is_stopped(engine: SqliteEngine, site: HostileSite) -> None:
    scraper = Scraper("test", start=site.url("/json"), obey_robots=False)
    reading = asyncio.Event()

    @scraper.page
    async def read(_page: Page) -> None:
        reading.set()
        await asyncio.Event().wait()

    await start_run(engine, scraper)
    worker = worker_for(engine, scraper, grace=0.05)
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(worker.run())
        await reading.wait()
        worker.stop()
    crawled = await result_of(engine)
    assert (crawled.counters.waiting, crawled.counters.retries, crawled.counters.crashes) == (1, 0, 0)


# Being cancelled


@pytest.mark.parametrize("moment", ["in flight", "in an exchange"])
async def test_cancelled_it_gives_back_what_it_holds(engine: SqliteEngine, site: HostileSite, moment: str) -> None:
    scraper = reader(concurrency=8)
    await start_run(engine, scraper, urls=[site.url(f"/delay/600000?{number}") for number in range(4)])
    tapped = Tapped(engine)
    granting = asyncio.Event()

    async def pause() -> None:
        granting.set()
        await asyncio.sleep(0.05)

    if moment == "in an exchange":
        tapped.frontier.pause = pause
    working = asyncio.create_task(worker_for(tapped, scraper).run())
    await (granting.wait() if moment == "in an exchange" else site.arrivals(4))
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    crawled = await result_of(engine)
    assert (crawled.counters.waiting, crawled.counters.leased, crawled.counters.late) == (4, 0, 0)


@pytest.mark.parametrize("seed", [1, 5])
async def test_interrupted_again_and_again(
    engine: SqliteEngine, site: HostileSite, notebooks: Callable[[], int], seed: int
) -> None:
    """Stopped, aborted and cancelled at random moments, with handlers that fail at random: every item once, and the
    store knows of every request that the target has seen."""
    chance = random.Random(seed)
    most = chance.choice([4, 32])
    start = site.url("/site/100/")
    scraper = Scraper("test", start=start, delay=0, concurrency=most, attempts=100, retry_handler_errors=True)

    @scraper.page
    async def read(page: Page) -> AsyncIterator[object]:
        match chance.randrange(20):
            case 0:
                raise Retry(after=0.01)
            case 1:
                raise asyncio.CancelledError
            case 2 | 3 | 4 | 5:
                await asyncio.sleep(chance.random() * 0.01)
        yield {"title": page.text("h1")}
        yield page.follow("a")

    await start_run(engine, scraper)
    rounds, left = 0, 1
    while left:
        rounds += 1
        workers = [worker_for(engine, scraper, concurrency=chance.choice([3, 16]), grace=0.01) for _ in range(2)]
        working = [asyncio.create_task(worker.run()) for worker in workers]
        for worker, task in zip(workers, working, strict=True):
            await asyncio.sleep(chance.random() * 0.05)
            ends: list[Callable[[], object]] = [worker.stop, worker.abort, task.cancel]
            chance.choice(ends)()
        async with asyncio.timeout(20):
            ended = await asyncio.gather(*working, return_exceptions=True)
        assert {type(end) for end in ended} <= {type(None), asyncio.CancelledError}
        counters = (await engine.reader.run("run")).counters
        assert (counters.leased, counters.late, counters.crashes, notebooks()) == (0, 0, 0, 0)
        left = counters.remaining
    crawled = await result_of(engine)
    print(f"{rounds} rounds, {len(site.log)} requests for 100 pages; {crawled.counters}")
    assert rounds > 2
    assert Counter(item["title"] for item in crawled.items) == {site_item(n).title: 1 for n in range(100)}
    assert crawled.counters.requests == len(site.log)
