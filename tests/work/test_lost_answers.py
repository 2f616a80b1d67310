"""Answers that are lost on the way, connections that fall silent, stores that come back too late: a worker on its own,
with a proxy that breaks what the test wants to be broken."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from servers.postgres import shared_server
from servers.proxy import Proxy, running_proxy
from servers.redis import running_redis
from shoal.api.page import Page
from shoal.api.scraper import Scraper
from shoal.core import log_events
from shoal.core.task import Policy
from shoal.delivery.options import LeaseTiming
from shoal.errors import EngineUnavailable
from shoal.frontier.contract.engine import Engine
from shoal.frontier.contract.frontier import Ask, Granted
from shoal.frontier.contract.timeouts import StoreTimeouts
from shoal.frontier.open import open_engine
from shoal.frontier.retrying import RetryingEngine
from shoal.frontier.sqlite.engine import SqliteEngine
from shoal.testing.contract.scene import page
from shoal.testing.hostile_site import HostileSite
from shoal.work.options import WorkTiming
from shoal.work.worker import Worker
from support.waiting import until
from support.working import opened, reader, result_of, start_run, worker_for

AWAY = log_events.STORE_UNANSWERED
BACK = log_events.STORE_RECOVERED


@pytest.fixture
async def site() -> AsyncIterator[HostileSite]:
    async with HostileSite() as site:
        yield site


@dataclass
class Stage:
    """An engine behind a proxy, and the same store without."""

    proxy: Proxy
    engine: Engine
    straight: Engine


def on(*engines: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("stage", engines, indirect=True)


@pytest.fixture
async def stage(request: pytest.FixtureRequest) -> AsyncIterator[Stage]:
    with store(request.param) as (url, port), running_proxy(port) as proxy:
        engine = await open_engine(url.replace(f":{port}/", f":{proxy.port}/"), timeouts=IMPATIENT)
        straight = await open_engine(url)
        yield Stage(proxy, engine, straight)
        await engine.close()
        await straight.close()


@contextmanager
def store(engine: str) -> Iterator[tuple[str, int]]:
    if engine == "postgresql":
        server = shared_server()
        yield server.url(schema=f"outage_{secrets.token_hex(4)}"), server.port
        return
    with running_redis() as redis:
        yield f"{redis.url}?partitions={1 if engine == 'redis' else 4}", redis.port


IMPATIENT = StoreTimeouts(connect=60, call=1)

EXCHANGE = b"priority"
"""What only an exchange says, of all that a worker asks: the lanes it works on."""

SETTLEMENT = b'"bytes":'
"""What only an exchange says that brings something: a part of the item."""


@on("postgresql", "redis", "redis in partitions")
async def test_a_grant_that_was_lost_on_the_way_is_taken_back_at_once(stage: Stage, site: HostileSite) -> None:
    """The lease lasts five minutes; the run is over in seconds, and nobody is charged."""
    urls = [site.url(f"/json?{number}") for number in range(12)]
    await start_run(stage.straight, reader(concurrency=4), urls=urls)
    stage.proxy.lose_answer(to=EXCHANGE)
    async with asyncio.timeout(30):
        await worker_for(stage.engine, reader(concurrency=4)).run()
    counts = (await stage.straight.reader.run("run")).counters
    assert stage.proxy.lost == 1
    assert (counts.done, counts.requests, counts.crashes, counts.retries, counts.late) == (12, 12, 0, 0, 0)
    assert len(site.log) == 12


@on("postgresql", "redis")
async def test_answers_that_are_lost_again_and_again_lose_nothing(stage: Stage, site: HostileSite) -> None:
    scraper = reader(concurrency=2, delay=0.05)
    await start_run(stage.straight, scraper, urls=[site.url(f"/json?{number}") for number in range(30)])
    working = asyncio.create_task(worker_for(stage.engine, scraper).run())
    with capture_logs() as logs:
        for _ in range(6):
            stage.proxy.lose_answer(to=SETTLEMENT)
            await asyncio.to_thread(stage.proxy.wait_for_loss)
        async with asyncio.timeout(30):
            await working
    crawled = await result_of(stage.straight)
    counts = crawled.counters
    print(f"{counts.late} settlements were sent again for nothing; {len(site.log)} requests")
    assert (counts.done, counts.items, counts.crashes, counts.retries) == (30, 30, 0, 0)
    assert counts.late > 0, "what was settled in the first place is refused when it comes again"
    assert len({item["url"] for item in crawled.items}) == 30
    assert len(site.log) == 30, "no page was fetched twice"
    warnings = {line["event"] for line in logs if line["log_level"] == "warning"}
    assert warnings - {log_events.ROBOTS_IGNORED} == {AWAY, BACK}


@on("postgresql", "redis")
async def test_a_connection_that_falls_silent_is_given_up_and_replaced(stage: Stage, site: HostileSite) -> None:
    scraper = reader(delay=0.05)
    await start_run(stage.straight, scraper, urls=[site.url(f"/json?{number}") for number in range(10)])
    working = asyncio.create_task(worker_for(stage.engine, scraper).run())
    await until(lambda: len(site.log) >= 3, "what was done is seen")
    with capture_logs() as logs:
        stage.proxy.stall()
        await until(lambda: bool(logs), "what was done is seen")
        stage.proxy.resume()
        async with asyncio.timeout(30):
            await working
    counts = (await stage.straight.reader.run("run")).counters
    assert (counts.done, counts.items, counts.crashes) == (10, 10, 0)
    assert logs[0]["event"] == AWAY


@on("postgresql", "redis")
async def test_work_goes_on_while_the_store_is_away_and_is_settled_afterwards(stage: Stage, site: HostileSite) -> None:
    scraper = reader(concurrency=3)
    await start_run(stage.straight, scraper, urls=[site.url(f"/delay/300?{number}") for number in range(3)])
    worker = worker_for(stage.engine, scraper)
    working = asyncio.create_task(worker.run())
    await until(lambda: requests_of(worker) == 3, "what was done is seen")
    with capture_logs() as logs:
        stage.proxy.refuse()
        await until(lambda: not worker._leases.held, "what was done is seen")
        tries = len(logs)
        await until(lambda: len(logs) > tries + 1, "the store was asked to settle them, in vain")
        assert (await stage.straight.reader.run("run")).counters.leased == 3
        stage.proxy.resume()
        async with asyncio.timeout(30):
            await working
    counts = (await stage.straight.reader.run("run")).counters
    assert (counts.done, counts.items, counts.late, len(site.log)) == (3, 3, 0, 3)


@on("redis")
async def test_a_lease_that_ended_while_the_store_was_away_is_not_settled(stage: Stage, site: HostileSite) -> None:
    """Another worker does the work meanwhile; the first one hears so, and stops."""
    timing = WorkTiming(LeaseTiming(look_at_leases_every=0.05, sweep_every=0.2))
    scraper = Scraper("slow", delay=0, obey_robots=False)
    begun = 0

    @scraper.page
    async def read(page: Page) -> dict[str, int]:
        nonlocal begun
        begun += 1
        if begun == 1:
            await asyncio.Event().wait()
        return {"reader": begun}

    short = Policy(delay=0, lease=500, hard_timeout=0)
    await start_run(stage.straight, scraper, urls=[site.url("/json")], policy=short)
    cut_off, other = (worker_for(engine, scraper, timing=timing) for engine in (stage.engine, stage.straight))
    working = [asyncio.create_task(cut_off.run())]
    await until(lambda: begun == 1, "what was done is seen")
    stage.proxy.refuse()
    working.append(asyncio.create_task(other.run()))
    await until(lambda: begun == 2, "what was done is seen")
    with capture_logs() as logs:
        stage.proxy.resume()
        async with asyncio.timeout(30):
            await asyncio.gather(*working)
    crawled = await result_of(stage.straight)
    assert (crawled.counters.done, crawled.counters.crashes, crawled.items) == (1, 1, [{"reader": 2}])
    assert log_events.LEASE_LOST in {line["event"] for line in logs}


@on("postgresql", "redis")
async def test_stopped_while_the_store_is_away_a_worker_ends_when_its_grace_is_over(
    stage: Stage, site: HostileSite
) -> None:
    scraper = reader()
    await start_run(stage.straight, scraper, urls=[site.url("/delay/60000")])
    worker = worker_for(stage.engine, scraper, grace=0.3)
    working = asyncio.create_task(worker.run())
    await until(lambda: requests_of(worker) == 1, "what was done is seen")
    with capture_logs() as logs:
        stage.proxy.refuse()
        await until(lambda: bool(logs), "what was done is seen")
        worker.stop()
        async with asyncio.timeout(20):
            await working
    last = logs[-1]
    assert last["event"] == log_events.LEASE_ABANDONED
    assert str(stage.proxy.port) in last["reason"] or "127.0.0.1" in last["reason"]
    assert (await stage.straight.reader.run("run")).counters.leased == 1


@on("postgresql", "redis", "redis in partitions")
async def test_what_is_enqueued_again_after_a_lost_answer_is_there_once(stage: Stage) -> None:
    engine = RetryingEngine(stage.engine)
    await start_run(engine, reader(), urls=[])
    tasks = [page("a.example/unmistakable", key=None), page("a.example/other")]
    stage.proxy.lose_answer(to=b"unmistakable")
    await engine.frontier.enqueue("run", tasks)
    assert stage.proxy.lost == 1
    assert (await stage.straight.reader.run("run")).counters.waiting == 2
    await engine.frontier.enqueue("run", tasks)
    assert (await stage.straight.reader.run("run")).counters.waiting == 3, (
        "without a key, it may come as often as one likes"
    )


def requests_of(worker: Worker) -> int:
    """How many requests it has under way, for leases that it knows of."""
    return sum(held.starts for held in worker._leases.held.values())


async def test_a_store_that_stood_still_for_a_while_has_lost_nothing(site: HostileSite) -> None:
    """Each try has left a question behind, and all of them are answered when it goes on."""
    with running_redis() as redis:
        engine = await open_engine(redis.url, timeouts=StoreTimeouts(connect=60, call=0.1))
        straight = await open_engine(redis.url)
        scraper = reader(concurrency=3, delay=0.02)
        await start_run(straight, scraper, urls=[site.url(f"/json?{number}") for number in range(30)])
        working = asyncio.create_task(worker_for(engine, scraper).run())
        await until(lambda: len(site.log) >= 3, "what was done is seen")
        with capture_logs() as logs:
            redis.pause()
            await until(lambda: len(logs) >= 3, "what was done is seen")
            redis.resume()
            async with asyncio.timeout(30):
                await working
        counts = (await straight.reader.run("run")).counters
        await engine.close()
        await straight.close()
    assert (counts.done, counts.items, counts.crashes, counts.retries) == (30, 30, 0, 0)
    assert len(site.log) == 30


async def test_a_question_that_is_answered_when_nobody_waits_for_it_any_more(tmp_path: Path, site: HostileSite) -> None:
    """The first exchange fails, and happens nevertheless, but only after the second one: its grant is found, too."""
    urls = [site.url(f"/json?{number}") for number in range(6)]
    scraper = reader(concurrency=3)
    async with opened(tmp_path) as engine:
        await start_run(engine, scraper, urls=urls)
        late = LateAnswer(engine)
        async with asyncio.timeout(30):
            await worker_for(late, scraper, batch=1).run()
        counts = (await engine.reader.run("run")).counters
    assert late.granted_unheard == 1
    assert (counts.done, counts.requests, counts.crashes, counts.late) == (6, 6, 0, 0)


class LateAnswer:
    """A real engine that answers its first exchange when nobody waits for that any more."""

    shares_clock = True

    def __init__(self, engine: SqliteEngine) -> None:
        self.reader, self.cache, self._verbs = engine.reader, engine.cache, engine.frontier
        self.exits = engine.exits
        self.frontier: Any = self
        self._first: Ask | None = None
        self._asked = 0
        self.granted_unheard = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._verbs, name)

    async def exchange(self, ask: Ask) -> Granted:
        self._asked += 1
        if self._asked == 1:
            self._first = ask
            raise EngineUnavailable("It stands still.")
        granted = await self._verbs.exchange(ask)
        if self._first is not None:
            self.granted_unheard = len((await self._verbs.exchange(self._first)).leases)
            self._first = None
        return granted

    async def close(self) -> None:
        """It belongs to someone else."""
