"""The life of a worker: beginning, sharing, waiting, stopping, failing and being killed."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

import pytest

from shoal import politeness
from shoal.errors import EngineBroken, EngineError, EngineFull, EngineUnavailable, Retry, UsageError
from shoal.frontier.protocol import Ask, Granted, Renewal, Swept, WorkerInfo
from shoal.frontier.sqlite.engine import SqliteEngine, open_sqlite
from shoal.kept import Entry
from shoal.outcome import Blame
from shoal.page import Page
from shoal.scraper import Scraper
from shoal.task import Policy
from shoal.testing.hostile_site import HostileSite, RobotsKind, site_item
from shoal.work import worker as worker_module
from shoal.work.rhythm import ahead, linger
from shoal.work.worker import WorkerOptions
from working import crawl, opened, reader, result_of, start_run, worker_for

SHORT = Policy(delay=0, concurrency=64, lease=1200, hard_timeout=100)


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[SqliteEngine]:
    async with opened(tmp_path) as engine:
        yield engine


@pytest.fixture
async def site() -> AsyncIterator[HostileSite]:
    async with HostileSite(host="0.0.0.0") as site:  # noqa: S104 - all of 127.0.0.0/8, and it hangs up on others
        yield site


@pytest.fixture(autouse=True)
def notebooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Notebooks are written into the test's own folder. Answers how many there are now."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return lambda: len(list(tmp_path.glob("shoal-*.hand")))


class Tapped:
    """A real engine, of which a test is told what it is asked; what the test raises then, the engine has raised."""

    shares_clock = True

    def __init__(self, engine: SqliteEngine) -> None:
        self.reader = engine.reader
        self.frontier = _TappedFrontier(engine)
        self.cache = _TappedCache(engine)
        self.exits = engine.exits

    async def close(self) -> None:
        """It belongs to someone else."""


class _TappedFrontier:
    def __init__(self, engine: SqliteEngine) -> None:
        self._frontier: Any = engine.frontier
        self.asked: list[Ask] = []
        self.renewed = 0
        self.before: Callable[[Ask], None] = lambda _ask: None
        self.after: Callable[[Granted], None] = lambda _granted: None
        self.pause: Callable[[], Awaitable[None]] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._frontier, name)

    async def exchange(self, ask: Ask) -> Granted:
        self.asked.append(ask)
        self.before(ask)
        granted: Granted = await self._frontier.exchange(ask)
        self.after(granted)
        if self.pause is not None:
            await self.pause()
        return granted

    async def renew(self, worker: WorkerInfo, leases: Sequence[Renewal]) -> Sequence[int]:
        self.renewed += len(leases)
        lost: Sequence[int] = await self._frontier.renew(worker, leases)
        return lost


class _TappedCache:
    def __init__(self, engine: SqliteEngine) -> None:
        self._cache = engine.cache
        self.broken = False

    async def get(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        if self.broken:
            raise EngineBroken("The cache is gone.")
        return await self._cache.get(keys)

    async def put(self, entries: Sequence[Entry]) -> None:
        await self._cache.put(entries)


async def until(so: Callable[[], Awaitable[bool]], seconds: float = 5.0) -> None:
    """Look again and again until it is so."""
    async with asyncio.timeout(seconds):
        while not await so():  # noqa: ASYNC110 - the store tells nobody
            await asyncio.sleep(0.01)


def leased(engine: SqliteEngine, number: int) -> Callable[[], Awaitable[bool]]:
    async def so() -> bool:
        return (await engine.reader.run("run")).counters.leased == number

    return so


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
        await until(lambda: _finished(engine, 3))
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
        await until(all_quick)
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


# Stopping


async def test_stop_gives_back_at_once_what_has_made_no_request(engine: SqliteEngine, site: HostileSite) -> None:
    """One of eight asks for robots.txt, seven wait for it. Those go back while the one still has its grace."""
    site.robots["127.0.0.1"] = RobotsKind.TIMEOUT
    scraper = reader(obey_robots=True, concurrency=8)
    await start_run(engine, scraper, urls=[site.url(f"/json?{number}") for number in range(8)])
    worker = worker_for(engine, scraper, grace=60)
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        group.create_task(worker.run())
        await site.arrivals(1)
        await until(leased(engine, 8))
        worker.stop()
        await until(leased(engine, 1))
        worker.abort()
    crawled = await result_of(engine)
    assert (crawled.counters.waiting, crawled.counters.leased, crawled.counters.crashes) == (8, 0, 0)


async def test_a_worker_ends_although_a_cancellation_was_swallowed(engine: SqliteEngine, site: HostileSite) -> None:
    """As `asyncio.wait_for` does in Python 3.11, below a driver, where an answer comes in the same moment."""

    class Deaf(_TappedFrontier):
        sweeps = 0

        async def sweep(self) -> Swept:
            self.sweeps += 1
            with suppress(*([asyncio.CancelledError] if self.sweeps == 1 else [])):
                await asyncio.Event().wait()
            return Swept()

    tapped, scraper = Tapped(engine), reader()
    tapped.frontier = deaf = Deaf(engine)
    await start_run(engine, scraper, urls=[site.url("/json")])
    async with asyncio.timeout(10):
        await worker_for(tapped, scraper).run()
    assert deaf.sweeps == 1


async def test_stop_lets_what_is_in_flight_end(engine: SqliteEngine, site: HostileSite) -> None:
    await start_run(engine, reader(), urls=[site.url("/delay/200"), site.url("/delay/200?2")])
    worker = worker_for(engine, reader(), concurrency=1)
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        group.create_task(worker.run())
        await site.arrivals(1)
        worker.stop()
        worker.stop()
    crawled = await result_of(engine)
    assert (crawled.counters.done, crawled.counters.waiting, len(site.log)) == (1, 1, 1)


async def test_abort_waits_for_nothing(engine: SqliteEngine, site: HostileSite) -> None:
    await start_run(engine, reader(), urls=[site.url("/delay/20000")])
    worker = worker_for(engine, reader(), grace=100)
    async with asyncio.timeout(2), asyncio.TaskGroup() as group:
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
    async with asyncio.timeout(3):
        await worker.run()
    crawled = await result_of(engine)
    assert (crawled.counters.waiting, crawled.counters.leased, len(site.log)) == (8, 0, 0)
    assert len(tapped.frontier.asked) == 2


async def test_stopped_before_it_began(engine: SqliteEngine, site: HostileSite) -> None:
    await start_run(engine, reader(), urls=[site.url("/json")])
    worker = worker_for(engine, reader())
    worker.stop()
    async with asyncio.timeout(2):
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
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        group.create_task(worker.run())
        await reading.wait()
        worker.stop()
    crawled = await result_of(engine)
    assert (crawled.counters.waiting, crawled.counters.retries, crawled.counters.crashes) == (1, 0, 0)


# Being cancelled


@pytest.mark.parametrize("moment", ["in flight", "in an exchange"])
async def test_cancelled_it_gives_back_what_it_holds(engine: SqliteEngine, site: HostileSite, moment: str) -> None:
    scraper = reader(concurrency=8)
    await start_run(engine, scraper, urls=[site.url(f"/delay/20000?{number}") for number in range(4)])
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
    engine: SqliteEngine, site: HostileSite, notebooks: Callable[[], int], monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Stopped, aborted and cancelled at random moments, with handlers that fail at random: every item once, and the
    store knows of every request that the target has seen."""
    monkeypatch.setattr(politeness, "RETRY_FIRST", 5)
    chance = random.Random(seed)
    scraper = Scraper("test", start=site.url("/site/100/"), delay=0, concurrency=chance.choice([4, 32]), retries=100)

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


# A store that fails


async def test_an_error_of_the_store_ends_the_work_with_that_error(
    engine: SqliteEngine, site: HostileSite, notebooks: Callable[[], int]
) -> None:
    """Nothing goes on, and the notebook stays: it says that nothing was in hand when the leases were left behind."""
    scraper = reader(concurrency=4)
    await start_run(engine, scraper, urls=[site.url("/json"), *(site.url(f"/delay/9000?{n}") for n in range(3))])
    tapped = Tapped(engine)

    def full(ask: Ask) -> None:
        if ask.settlements:
            raise EngineFull("There is no space left.")

    tapped.frontier.before = full
    before = asyncio.all_tasks()
    worker = worker_for(tapped, scraper)
    async with asyncio.timeout(5):
        with pytest.raises(EngineFull, match="no space left"):
            await worker.run()
    assert asyncio.all_tasks() == before
    assert (len(worker._held), len(worker._tasks), notebooks()) == (0, 0, 1)


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
    async with asyncio.timeout(5):
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
    async with asyncio.timeout(5):
        with pytest.raises(EngineError, match="The cache is gone"):
            await worker_for(tapped, reader(obey_robots=True)).run()
    crawled = await result_of(engine)
    assert (crawled.counters.waiting, crawled.counters.leased, crawled.counters.dead) == (1, 0, 0)


# Leases


async def test_leases_are_renewed_while_the_work_goes_on(
    engine: SqliteEngine, site: HostileSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "LOOK_AT_LEASES_EVERY", 0.05)
    tapped = Tapped(engine)
    with sweeping(engine):
        crawled = await crawl(tapped, reader(), urls=[site.url("/delay/2000")], policy=SHORT)
    counters = crawled.counters
    assert (counters.done, counters.requests, counters.late, counters.crashes) == (1, 1, 0, 0)
    assert 2 <= tapped.frontier.renewed <= 10


async def test_a_lease_that_is_not_old_is_not_renewed(engine: SqliteEngine, site: HostileSite) -> None:
    tapped = Tapped(engine)
    await crawl(tapped, reader(), urls=[site.url("/delay/1300")])
    assert tapped.frontier.renewed == 0


async def test_work_on_a_lost_lease_is_stopped_and_its_settlement_refused(
    engine: SqliteEngine, site: HostileSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "LOOK_AT_LEASES_EVERY", 0.05)
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

    crawled = await crawl(engine, scraper, policy=SHORT)
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


async def test_a_cancelled_run_stops_its_work(
    engine: SqliteEngine, site: HostileSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "LOOK_AT_LEASES_EVERY", 0.05)
    await start_run(engine, reader(), urls=[site.url("/delay/20000"), site.url("/json")], policy=SHORT)
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        group.create_task(worker_for(engine, reader(), concurrency=1).run())
        await site.arrivals(1)
        await engine.frontier.cancel_run("run")
    crawled = await result_of(engine)
    assert (crawled.counters.cancelled, crawled.counters.remaining, crawled.counters.items) == (2, 0, 0)


async def test_handlers_that_compute_for_long_lose_no_lease(
    engine: SqliteEngine, site: HostileSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sixty answers come in together, and each is computed on for a while: in all for longer than a lease lives."""
    monkeypatch.setattr(worker_module, "LOOK_AT_LEASES_EVERY", 0.05)
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
        crawled = await crawl(engine, scraper, urls=urls, policy=policy, concurrency=64)
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


# Memory


async def test_nothing_piles_up(engine: SqliteEngine, site: HostileSite) -> None:
    """Forty origins, of which robots.txt was had, or not: nothing is remembered of the asking."""
    for number in range(20, 40):
        site.robots[f"127.0.0.{number}"] = RobotsKind.ERROR
    urls = [site.url("/json", host=f"127.0.0.{number}") for number in range(1, 40)]
    scraper = reader(obey_robots=True, retries=1)
    await start_run(engine, scraper, urls=urls)
    worker = worker_for(engine, scraper)
    async with asyncio.timeout(10):
        await worker.run()
    gc.collect()
    permission = worker._executor._permission
    assert (len(permission._questions), len(permission._halfway)) == (0, 0)
    assert not worker._held
    assert not worker._tasks
    assert worker._talks.are_over


# Sudden death


KILLER = """
import asyncio, os, sys
from pathlib import Path
from shoal import Page, Request, Scraper
from shoal.engines import open_engine
from shoal.runs import seed
from shoal.work.worker import Worker, WorkerOptions

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

WORK = 'await Worker(engine, [killer], WorkerOptions(user_agent="x", drain=True)).run()'


def script(folder: Path, handler: str, main: str = WORK) -> Path:
    file = folder / "killer.py"
    file.write_text(KILLER.format(handler=textwrap.dedent(handler).strip(), main=main))
    return file


def execute(file: Path, site: HostileSite, folder: Path) -> Awaitable[subprocess.CompletedProcess[str]]:
    command = [sys.executable, str(file), site.url(""), str(folder / "shoal.db")]
    place = {**os.environ, "TMPDIR": str(folder)}
    return asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, timeout=30, check=False, env=place
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


def test_a_busy_store_is_asked_in_groups() -> None:
    assert linger(0.3) == 0.004
    assert linger(80.0) == 0.08
    assert linger(9_000.0) == 0.25


def test_a_busy_store_is_asked_earlier() -> None:
    assert ahead(0.3) == 20
    assert ahead(30.0) == 60
    assert ahead(9_000.0) == 100
