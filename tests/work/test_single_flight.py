"""Several who want the same page at once: one asks, and the others wait for what it brings, if that may be theirs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence, Set
from ipaddress import ip_network
from typing import Any

import pytest

from shoal.api.page import Page
from shoal.api.request import Request
from shoal.api.scraper import Scraper
from shoal.core.notes import Entry
from shoal.core.task import NewTask
from shoal.errors import Retry
from shoal.fetch.guard.rules import Guard
from shoal.frontier.contract.engine import Engine
from shoal.frontier.contract.frontier import NewRun
from shoal.intake.admission import to_task
from shoal.testing.hostile_site import HostileSite
from shoal.work.options import WorkTiming
from shoal.work.worker import Worker
from support.fleet import ways
from support.working import QUICK, Crawled, crawl, result_of, start_run, worker_for

EXITS = ways(*(f"source://127.0.0.{number}" for number in range(2, 6)))
RUNS = tuple("abcdefgh")
SLOW = "/ticking/a?pause=300"


def looking(name: str = "look", **options: Any) -> Scraper:
    """A scraper that says which answer of the site it was given."""
    scraper = Scraper(name, **{"delay": 0.0, "concurrency": 4, "obey_robots": False, "cache": 60, **options})

    @scraper.page
    def look(page: Page) -> dict[str, Any]:
        return {"url": page.url, "number": page.text("#token")}

    return scraper


async def work(
    engine: Engine, scraper: Scraper, runs: Sequence[str], each: int = 64, timing: WorkTiming = QUICK
) -> dict[str, Crawled]:
    """Have two workers, with several exits, work on these runs until nothing is left. `each`: tasks that one takes."""
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        for _ in range(2):
            guard = Guard([ip_network("127.0.0.0/8")])
            worker = worker_for(engine, scraper, exits=EXITS, guard=guard, concurrency=each, timing=timing)
            group.create_task(worker.run())
    return {run: await result_of(engine, run) for run in runs}


async def at_once(
    engine: Engine,
    scraper: Scraper,
    url: str,
    runs: Sequence[str] = RUNS,
    each: int = 64,
    timing: WorkTiming = QUICK,
) -> dict[str, Crawled]:
    """What each of these runs comes to that want the same page at the same moment."""
    for run in runs:
        await start_run(engine, scraper, run, urls=[url])
    return await work(engine, scraper, runs, each, timing)


def asked(site: HostileSite, path: str) -> list[int]:
    return [entry.status for entry in site.log if entry.path == path]


def numbers(results: dict[str, Crawled]) -> list[str]:
    """Which answer each run was given."""
    return [item["number"] for result in results.values() for item in result.items]


@pytest.mark.parametrize("options", [{}, {"delay": 0.05}, {"concurrency": 1}], ids=["no delay", "delay", "one each"])
async def test_one_asks_and_all_have_the_answer(any_engine: Engine, site: HostileSite, options: dict[str, Any]) -> None:
    results = await at_once(any_engine, looking(**options), site.url(SLOW))
    assert asked(site, SLOW) == [200]
    assert numbers(results) == ["1"] * len(RUNS)
    assert sum(result.counters.requests for result in results.values()) == 1
    assert sum(result.counters.saved_requests for result in results.values()) == len(RUNS) - 1
    assert all((r.counters.done, r.counters.retries, r.counters.dead) == (1, 0, 0) for r in results.values())


async def test_without_a_cache_each_asks_and_nothing_is_shared(engine: Engine, site: HostileSite) -> None:
    results = await at_once(engine, looking(cache=None), site.url(SLOW))
    assert asked(site, SLOW) == [200] * len(RUNS)
    assert sorted(numbers(results)) == sorted(str(number + 1) for number in range(len(RUNS)))


@pytest.mark.parametrize("options", [{"delay": 0.02, "concurrency": 2}, {"delay": 0.02, "concurrency": 1}])
async def test_a_redirect_is_followed_once(any_engine: Engine, site: HostileSite, options: dict[str, Any]) -> None:
    """Also where each step has a lease of its own: the flight goes on with its task."""
    results = await at_once(any_engine, looking(**options), site.url("/redirect/3"))
    assert [len(asked(site, path)) for path in ("/redirect/3", "/redirect/2", "/redirect/1")] == [1, 1, 1]
    assert all((r.counters.done, r.counters.items) == (1, 1) for r in results.values())


async def test_what_may_not_be_kept_is_asked_for_by_each_and_not_one_after_the_other(
    any_engine: Engine, site: HostileSite
) -> None:
    path = f"{SLOW}&Cache-Control=no-store"
    results = await at_once(any_engine, looking(), site.url(path))
    assert asked(site, path) == [200] * len(RUNS)
    assert sorted(numbers(results)) == sorted(str(number + 1) for number in range(len(RUNS)))
    in_flight = [sum(e.started <= each.started < (e.finished or 0) for e in site.log) for each in site.log]
    print("in flight when each began:", in_flight)
    assert in_flight[:2] == [1, 1], "the first had the flight, and nobody knew yet"
    assert max(in_flight) > 2


async def test_a_page_that_is_not_there_is_waited_for_once(engine: Engine, site: HostileSite) -> None:
    results = await at_once(engine, looking(), site.url("/status/404"))
    assert asked(site, "/status/404") == [404] * len(RUNS)
    assert all(result.counters.dead == 1 for result in results.values())


async def test_of_a_failure_the_next_one_makes_something_better(any_engine: Engine, site: HostileSite) -> None:
    """The flight ends with any outcome. One of those who waited takes it; the one that failed waits for that one, or
    looks for itself."""
    path = "/flaky/1/a"
    results = await at_once(any_engine, looking(), site.url(path))
    assert asked(site, path)[0] >= 500
    assert asked(site, path)[1:] in ([200], [200, 200])
    assert all((r.counters.done, r.counters.dead) == (1, 0) for r in results.values())


async def test_who_wants_another_look_takes_no_old_answer_but_one_that_comes_meanwhile(
    engine: Engine, site: HostileSite
) -> None:
    scraper = Scraper("again", delay=0.0, concurrency=4, obey_robots=False, cache=60)
    looks: list[str | None] = []

    @scraper.page
    def look(page: Page) -> None:
        looks.append(page.text("#token"))
        if looks[-1] == "1":
            raise Retry("not this one", after=0)

    await at_once(engine, scraper, site.url(SLOW), "ab")
    assert asked(site, SLOW) == [200, 200], "the first answer was for one of them only, the second for both"
    assert sorted(map(str, looks)) == ["1", "2", "2"]


async def test_web_clients_whom_the_site_gives_cookies_ask_for_themselves(engine: Engine, site: HostileSite) -> None:
    scraper = looking()
    path = f"{SLOW}&Set-Cookie=me%3D1"
    for run in RUNS:
        task = to_task(Request(site.url(path)), scraper, guarded=True)
        assert isinstance(task, NewTask)
        await engine.frontier.create_run(NewRun(run, scraper.name, scraper.policy()))
        await engine.frontier.enqueue(run, [task])
        await engine.frontier.seal_run(run)
    results = await work(engine, scraper, RUNS)
    assert sorted(numbers(results)) == sorted(str(number + 1) for number in range(len(RUNS)))


class _Delayed:
    """A real engine. Before somebody holds something for the first time, something else happens."""

    def __init__(self, engine: Engine, before: Callable[[], Awaitable[object]]) -> None:
        self._engine = engine
        self._before: Callable[[], Awaitable[object]] | None = before
        self.cache: Any = self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine.cache if name in ("get", "put") else self._engine, name)

    async def hold(self, entries: Sequence[Entry]) -> Set[str]:
        before, self._before = self._before, None
        if before is not None:
            await before()
        return await self._engine.cache.hold(entries)


async def test_an_answer_that_came_just_before_the_flight_was_taken_is_used(engine: Engine, site: HostileSite) -> None:
    scraper = looking()
    delayed: Any = _Delayed(engine, lambda: crawl(engine, scraper, "first", urls=[site.url(SLOW)], queues=["first"]))
    second = await crawl(delayed, scraper, "second", urls=[site.url(SLOW)], queues=["second"])
    assert (second.counters.saved_requests, asked(site, SLOW)) == (1, [200])


async def test_a_flight_is_held_for_as_long_as_its_handler_takes(engine: Engine, site: HostileSite) -> None:
    """Here twice as long as a flight lasts by itself."""
    scraper = Scraper("slow", delay=0.0, concurrency=4, obey_robots=False, cache=60, timeout=1)
    looks: list[str] = []

    @scraper.page
    async def look(page: Page) -> None:
        looks.append(page.url)
        if len(looks) == 1:
            await asyncio.sleep(6)

    await at_once(engine, scraper, site.url("/json"), "ab", each=1, timing=WorkTiming(flight_margin=2_000))
    assert (len(looks), asked(site, "/json")) == (2, [200])


async def test_a_flight_ends_when_its_run_is_cancelled_or_its_worker_stops(
    any_engine: Engine, site: HostileSite
) -> None:
    """With flights that would last for an hour: nobody waits for their time to be over."""
    scraper = looking()
    path = "/ticking/a?pause=400"

    async def begin(run: str, *, grace: float) -> tuple[Worker, asyncio.Task[None]]:
        await start_run(any_engine, scraper, run, urls=[site.url(path)])
        worker = worker_for(any_engine, scraper, exits=EXITS, grace=grace, timing=WorkTiming(flight_margin=3_600_000))
        working = asyncio.create_task(worker.run())
        await site.arrivals(len(site.log) + 1)
        return worker, working

    async with asyncio.timeout(60):
        stopped, working = await begin("stopped", grace=0)
        stopped.stop()
        await working
        await any_engine.frontier.cancel_run("stopped")
        _, working = await begin("cancelled", grace=30)
        await any_engine.frontier.cancel_run("cancelled")
        await start_run(any_engine, scraper, "next", urls=[site.url(path)])
        await working
    assert (await result_of(any_engine, "next")).counters.done == 1
