"""Answers that are used again, pages that have not changed, and what the target sees of it."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from shoal.api.page import Page
from shoal.api.request import Request
from shoal.api.scraper import Scraper
from shoal.core.task import NewTask, RunState
from shoal.errors import Drop, Retry
from shoal.fetch.guard.rules import Guard
from shoal.frontier.contract.engine import Engine
from shoal.frontier.contract.frontier import NewRun
from shoal.frontier.open import open_engine
from shoal.insight.changes import changes_since
from shoal.intake.admission import to_task
from shoal.testing.hostile_site import HostileSite
from shoal.work.worker import Worker
from support.engine_urls import ENGINES, empty_store
from support.working import Crawled, crawl, opened, result_of, start_run, worker_for


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with opened(tmp_path) as engine:
        yield engine


@pytest.fixture(params=[*ENGINES, "redis in partitions"])
async def any_engine(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Engine]:
    kind, _, apart = request.param.partition(" in ")
    with empty_store(kind, tmp_path) as url:
        engine = await open_engine(f"{url}?partitions=4" if apart else url)
        yield engine
        await engine.close()


@pytest.fixture
async def site() -> AsyncIterator[HostileSite]:
    async with HostileSite(host="0.0.0.0") as site:  # noqa: S104 - all of 127.0.0.0/8, and it hangs up on others
        yield site


def looking(name: str = "look", **options: Any) -> Scraper:
    """A scraper that says what it sees of each page."""
    scraper = Scraper(name, **{"delay": 0.0, "obey_robots": False, **options})

    @scraper.page
    def look(page: Page) -> dict[str, Any]:
        return {"url": page.url, "status": page.status, "h1": page.text("h1"), "unchanged": page.unchanged}

    return scraper


async def visit(engine: Engine, scraper: Scraper, run: str, *starts: str | Request) -> Crawled:
    scraper.start_urls = starts
    return await crawl(engine, scraper, run)


async def seen(engine: Engine, scraper: Scraper, run: str, *starts: str | Request) -> list[tuple[Any, Any]]:
    """What the pages of a visit said, and whether that was known."""
    return [(item["h1"], item["unchanged"]) for item in (await visit(engine, scraper, run, *starts)).items]


def asked(site: HostileSite, path: str) -> list[int]:
    """The statuses that a path was answered with, as the target knows them."""
    return [entry.status for entry in site.log if entry.path == path]


async def change(site: HostileSite, name: str) -> None:
    async with aiohttp.ClientSession() as session, session.get(site.url(f"/change/{name}")) as answer:
        assert answer.status == 200


async def recorded(engine: Engine, scraper: str = "look") -> list[tuple[str, str]]:
    """The record of changes: kind and path."""
    found = await changes_since(engine.reader, [scraper])
    return [(change.kind.value, f"/{change.url.split('/', 3)[3]}") for change in found.changes]


# On every engine


async def test_a_fresh_answer_is_used_again_and_costs_the_slot_nothing(any_engine: Engine, site: HostileSite) -> None:
    scraper = looking(cache="1h", delay=0.2)
    first = await visit(any_engine, scraper, "first", site.url("/plain/a"))
    (slot,) = await any_engine.reader.slots(f"127.0.0.1:{site.port}")
    second = await visit(any_engine, scraper, "second", site.url("/plain/a"))
    (after,) = await any_engine.reader.slots(f"127.0.0.1:{site.port}")
    assert asked(site, "/plain/a") == [200]
    assert after.next_at == slot.next_at, "no request, so the clock stands where it stood"
    counts = second.counters
    assert (counts.done, counts.requests, counts.received, counts.saved_requests) == (1, 0, 0, 1)
    assert counts.saved_bytes == first.counters.received > 1_000
    assert [(item["h1"], item["status"], item["unchanged"]) for item in second.items] == [("a v1", 200, True)]


async def test_two_runs_at_once_ask_the_target_once(any_engine: Engine, site: HostileSite) -> None:
    scraper = looking(cache=True)
    for run in ("one", "two", "three"):
        await start_run(any_engine, scraper, run, urls=[site.url("/delay/50")])
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        for _ in range(2):
            group.create_task(worker_for(any_engine, scraper).run())
    assert asked(site, "/delay/50") == [200]
    for run in ("one", "two", "three"):
        assert (await result_of(any_engine, run)).counters.done == 1


async def test_what_changes_is_recorded_once_and_told_to_handlers(any_engine: Engine, site: HostileSite) -> None:
    scraper = looking(changes=True)
    pages = (site.url("/etag/a"), site.url("/modified/b"), site.url("/plain/c"))
    assert sorted(await seen(any_engine, scraper, "first", *pages)) == [(f"{n} v1", False) for n in "abc"]
    assert sorted(await seen(any_engine, scraper, "second", *pages)) == [(f"{n} v1", True) for n in "abc"]
    for name in "abc":
        await change(site, name)
    assert sorted(await seen(any_engine, scraper, "third", *pages)) == [(f"{n} v2", False) for n in "abc"]
    assert asked(site, "/etag/a") == asked(site, "/modified/b") == [200, 304, 200]
    assert asked(site, "/plain/c") == [200, 200, 200]
    paths = ("/etag/a", "/modified/b", "/plain/c")
    assert sorted(await recorded(any_engine)) == sorted((kind, path) for kind in ("changed", "new") for path in paths)
    counts = (await result_of(any_engine, "second")).counters
    assert (counts.requests, counts.saved_requests) == (3, 0)
    assert counts.saved_bytes > 2_000, "two bodies were not sent"


async def test_pages_are_visited_again_and_again(any_engine: Engine, site: HostileSite) -> None:
    scraper = looking(every="50ms", delay=0.01)
    scraper.start_urls = (site.url("/etag/a"), site.url("/fading/410/2/9/b"))
    await start_run(any_engine, scraper)
    worker = worker_for(any_engine, scraper)
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        working = group.create_task(worker.run())
        while len(asked(site, "/etag/a")) < 4:
            await site.arrivals(len(site.log) + 1)
        assert not working.done(), "there is always another visit"
        worker.stop()
    result = await result_of(any_engine)
    assert asked(site, "/etag/a")[:4] == [200, 304, 304, 304]
    assert asked(site, "/fading/410/2/9/b") == [200, 410]
    record = await recorded(any_engine)
    assert sorted(record) == [("gone", "/fading/410/2/9/b"), ("new", "/etag/a"), ("new", "/fading/410/2/9/b")]
    counts = result.counters
    assert (counts.dead, counts.remaining, counts.duplicates, counts.retries) == (1, 1, 0, 0)
    assert counts.done == counts.items == len(result.items) >= 4
    assert [item["unchanged"] for item in result.items if "etag" in item["url"]][:4] == [False, True, True, True]


# Which answers are used again


async def test_only_while_it_is_fresh_and_then_it_is_asked_about(engine: Engine, site: HostileSite) -> None:
    scraper = looking(cache=0.001)
    for run in ("first", "second"):
        assert (await visit(engine, scraper, run, site.url("/etag/a"))).counters.requests == 1
        await asyncio.sleep(0.002)
    assert asked(site, "/etag/a") == [200, 304]
    confirmed = looking(cache=60)
    third = await visit(engine, confirmed, "third", site.url("/etag/a"))
    assert (third.counters.requests, third.counters.saved_requests) == (0, 1), "a 304 makes it fresh again"


@pytest.mark.parametrize(
    ("path", "requests"),
    [
        ("/plain/a", 1),
        ("/plain/a?Cache-Control=no-cache%2C+private%2C+max-age%3D0", 1),
        ("/plain/a?Cache-Control=max-age%3D60%2C+No-Store", 2),
        ("/plain/a?Vary=*", 2),
        ("/plain/a?Vary=Cookie", 1),
        ("/empty", 1),
        ("/json", 1),
        ("/gzip", 1),
        ("/charset/header-latin1", 1),
        ("/big/5000", 2),
        ("/redirect/2", 3),
        ("/status/201", 2),
    ],
)
async def test_what_may_be_used_again(engine: Engine, site: HostileSite, path: str, requests: int) -> None:
    scraper = looking(cache=60)
    first = await visit(engine, scraper, "first", site.url(path))
    second = await visit(engine, scraper, "second", site.url(path))
    assert len(site.log) == requests, site.log
    assert [{**item, "unchanged": None} for item in first.items] == [{**i, "unchanged": None} for i in second.items]
    saved = requests if second.counters.requests == 0 else 0
    assert second.counters.saved_requests == saved


async def test_what_the_user_is_known_by_keeps_answers_apart(engine: Engine, site: HostileSite) -> None:
    one = Request(site.url("/echo"), headers={"Authorization": "Bearer one"})
    two = Request(site.url("/echo"), headers={"authorization": "Bearer two"})
    scraper, other = looking(cache=60), looking("other", cache=60)
    await visit(engine, scraper, "first", one, two)
    assert (await visit(engine, scraper, "run", one)).counters.requests == 0
    await visit(engine, scraper, "second", two)
    await visit(engine, other, "third", one)
    await visit(engine, looking(cache=60, headers={"Cookie": "me=1"}), "fourth", site.url("/echo"))
    await visit(engine, looking(cache=60, headers={"Cookie": "me=2"}), "fifth", site.url("/echo"))
    await visit(engine, scraper, "sixth", Request(site.url("/echo").replace("//", "//me:secret@")))
    await visit(engine, scraper, "seventh", site.url("/echo"))
    assert len(site.log) == 7


async def test_other_methods_are_never_answered_from_memory(engine: Engine, site: HostileSite) -> None:
    scraper = looking(cache=60)
    for run in ("first", "second"):
        await visit(engine, scraper, run, Request(site.url("/echo"), method="POST", body=b"x"))
    assert len(site.log) == 2


async def test_cookies_of_an_answer_are_not_kept_with_it(engine: Engine, site: HostileSite) -> None:
    scraper = Scraper("cookies", delay=0.0, obey_robots=False, cache=60)

    @scraper.page
    def look(page: Page) -> dict[str, Any]:
        return {"cookie": page.headers.get("Set-Cookie")}

    first = await visit(engine, scraper, "first", site.url("/cookies/set?session=secret"))
    second = await visit(engine, scraper, "second", site.url("/cookies/set?session=secret"))
    assert len(site.log) == 1
    assert "secret" in first.items[0]["cookie"]
    assert second.items == [{"cookie": None}]


async def test_a_handler_that_wants_another_look_gets_one(engine: Engine, site: HostileSite) -> None:
    """What is not ready is neither kept nor shown to it again; and a page that nobody wanted is not kept either."""
    scraper = Scraper("again", delay=0.0, obey_robots=False, cache=60)
    looks: list[str | None] = []

    @scraper.page
    def look(page: Page) -> None:
        looks.append(page.request.url)
        if page.url.endswith("drop"):
            raise Drop("not wanted")
        if len(looks) < 3:
            raise Retry("not ready", after=0)

    await visit(engine, scraper, "first", site.url("/plain/a"))
    assert (len(looks), len(site.log)) == (3, 3)
    await visit(engine, scraper, "second", site.url("/plain/a"))
    assert (len(looks), len(site.log)) == (4, 3)
    for run in ("third", "fourth"):
        await visit(engine, scraper, run, site.url("/plain/drop"))
    assert len(site.log) == 5
    looks.clear()
    await visit(engine, scraper, "fifth", site.url("/plain/a"))
    assert (len(looks), len(site.log)) == (3, 7), "the first look was at what is kept, the others were not"


async def test_a_kept_answer_that_is_no_longer_allowed_is_not_used(engine: Engine, site: HostileSite) -> None:
    await visit(engine, looking(cache=60), "first", site.url("/redirect/1"))
    narrow = looking(cache=60, allow=[f"127.0.0.1:{site.port}/redirect/1"])
    assert (await visit(engine, narrow, "second", site.url("/redirect/1"))).counters.dropped == 1


async def test_what_cannot_be_read_is_as_good_as_nothing(engine: Engine, site: HostileSite, tmp_path: Path) -> None:
    scraper = looking(cache=60)
    await visit(engine, scraper, "first", site.url("/etag/a"))
    with closing(sqlite3.connect(tmp_path / "shoal.db")) as file:
        file.execute("UPDATE cache SET value = x'c1'")
        file.commit()
    assert await seen(engine, scraper, "second", site.url("/etag/a")) == [("a v1", False)]
    assert asked(site, "/etag/a") == [200, 200]


async def test_a_304_that_nobody_asked_for_is_no_page(engine: Engine, site: HostileSite) -> None:
    result = await visit(engine, looking(cache=60), "first", site.url("/unasked"))
    assert result.only_death.reason.text == "HTTP 304"


# What counts as a change


async def test_scripts_comments_and_what_is_volatile_do_not_count(engine: Engine, site: HostileSite) -> None:
    for scraper, second in ((looking("strict", changes=True), False), (looking(volatile="#token"), True)):
        assert await seen(engine, scraper, f"{scraper.name}-1", site.url("/ticking/a")) == [("a v1", False)]
        assert await seen(engine, scraper, f"{scraper.name}-2", site.url("/ticking/a")) == [("a v1", second)]
    assert await recorded(engine) == [("new", "/ticking/a")]
    await change(site, "a")
    assert await seen(engine, looking(volatile="#token"), "3", site.url("/ticking/a")) == [("a v2", False)]
    # Another way to compare is a new beginning: nothing can be said, and nothing is.
    assert await seen(engine, looking(volatile=["i"]), "4", site.url("/ticking/a")) == [("a v2", False)]
    assert await recorded(engine) == [("new", "/ticking/a"), ("changed", "/ticking/a")]


async def test_a_page_that_goes_is_recorded_once_and_again_when_it_is_back(engine: Engine, site: HostileSite) -> None:
    for run in "1234":
        await visit(engine, looking(changes=True), run, site.url("/fading/410/2/3/a"))
    assert asked(site, "/fading/410/2/3/a") == [200, 410, 410, 200]
    assert [kind for kind, _ in await recorded(engine)] == ["new", "gone", "new"]


async def test_only_what_was_settled_counts(engine: Engine, site: HostileSite) -> None:
    """A handler that fails has not seen the page: the next one is told that it is new to it."""
    broken = Scraper("look", delay=0.0, obey_robots=False, changes=True, attempts=1)
    broken.page(lambda page: 1 / 0)
    assert (await visit(engine, broken, "first", site.url("/plain/a"))).counters.dead == 1
    assert await recorded(engine) == []
    assert await seen(engine, looking(changes=True), "second", site.url("/plain/a")) == [("a v1", False)]


async def test_scrapers_that_ask_for_nothing_remember_nothing(engine: Engine, site: HostileSite) -> None:
    await visit(engine, looking(), "first", site.url("/etag/a"))
    assert await seen(engine, looking(), "second", site.url("/etag/a")) == [("a v1", False)]
    assert (asked(site, "/etag/a"), await recorded(engine)) == ([200, 200], [])


# Visiting again


@pytest.mark.parametrize("options", [{}, {"delay": 0.01, "concurrency": 2}], ids=["one lease", "a lease for each step"])
async def test_one_request_may_be_visited_again(engine: Engine, site: HostileSite, options: dict[str, Any]) -> None:
    scraper = looking(**options)
    scraper.start_urls = (Request(site.url("/gate/a"), every=0.05, data={"n": 1}), site.url("/json"))
    await _visited(engine, scraper, site, "/etag/a", 3)
    assert asked(site, "/json") == [200]
    assert asked(site, "/etag/a")[:3] == [200, 304, 304]
    assert asked(site, "/gate/a")[:3] == [302, 302, 302], "what was asked for is visited, not where it led to"


async def test_a_site_that_fails_at_one_visit_is_visited_again(engine: Engine, site: HostileSite) -> None:
    scraper = looking(every="20ms", attempts=1)
    scraper.start_urls = (site.url("/fading/500/2/4/a"),)
    await _visited(engine, scraper, site, "/fading/500/2/4/a", 6)
    counts = (await result_of(engine)).counters
    assert (counts.dead, counts.remaining, counts.retries) == (0, 1, 3)
    assert asked(site, "/fading/500/2/4/a")[:6] == [200, 500, 500, 500, 200, 200]


async def test_sitemaps_are_read_again_and_bring_what_is_new(engine: Engine, site: HostileSite) -> None:
    scraper = looking(every="50ms", sitemaps=[site.url("/sitemap/urls/2")])
    await _visited(engine, scraper, site, "/sitemap/urls/2", 3)
    counts = (await result_of(engine)).counters
    assert (counts.remaining, counts.dead) == (3, 0), "the sitemap and its two pages wait for their next visit"
    assert counts.duplicates >= 4


async def test_jobs_end_whatever_the_scraper_would_visit_again(engine: Engine, site: HostileSite) -> None:
    result = await _job(engine, looking(every=0.05), "job", site.url("/etag/a"))
    assert (result.counters.done, result.counters.remaining, result.run.state) == (1, 0, RunState.FINISHED)


async def test_without_revisits_a_run_ends(engine: Engine, site: HostileSite) -> None:
    scraper = looking(every="1h")
    scraper.start_urls = (site.url("/plain/a"),)
    result = await crawl(engine, scraper, revisit=False)
    assert (result.counters.done, result.counters.remaining) == (1, 0)


async def _visited(engine: Engine, scraper: Scraper, site: HostileSite, path: str, times: int) -> Worker:
    await start_run(engine, scraper)
    worker = worker_for(engine, scraper)
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        group.create_task(worker.run())
        while len(asked(site, path)) < times:
            await site.arrivals(len(site.log) + 1)
        worker.stop()
    return worker


# Web clients


LOCAL = Guard([ip_network("127.0.0.0/8")])


async def _job(engine: Engine, scraper: Scraper, run: str, *urls: str) -> Crawled:
    """Tasks as the gateway makes them: guarded, with cookies of their own."""
    await engine.frontier.create_run(NewRun(run, scraper.name, scraper.policy()))
    for number, url in enumerate(urls):
        task = to_task(Request(url, priority=-number), scraper, guarded=True)
        assert isinstance(task, NewTask)
        await engine.frontier.enqueue(run, [task])
    await engine.frontier.seal_run(run)
    async with asyncio.timeout(30):
        await worker_for(engine, scraper, guard=LOCAL).run()
    return await result_of(engine, run)


async def test_web_clients_share_what_the_site_says_to_everybody(engine: Engine, site: HostileSite) -> None:
    scraper = looking(cache=60)
    for run in ("one", "two"):
        assert (await _job(engine, scraper, run, site.url("/plain/a"))).counters.done == 1
    assert asked(site, "/plain/a") == [200]


async def test_web_clients_whom_the_site_knows_share_nothing(engine: Engine, site: HostileSite) -> None:
    scraper = looking(cache=60)
    for run in ("one", "two"):
        await _job(engine, scraper, run, site.url("/cookies/set?me=1"), site.url("/cookies/echo"))
    assert asked(site, "/cookies/set?me=1") == [200, 200]
    assert asked(site, "/cookies/echo") == [200, 200]


async def test_what_was_fetched_without_the_guard_is_not_shown_to_web_clients(
    engine: Engine, site: HostileSite
) -> None:
    scraper = looking(cache=60)
    await visit(engine, scraper, "own", site.url("/plain/a"))
    await _job(engine, scraper, "theirs", site.url("/plain/a"))
    assert asked(site, "/plain/a") == [200, 200]
