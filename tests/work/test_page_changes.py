"""What counts as a change of a page, and visits that are made again and again to see one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from shoal.api.request import Request
from shoal.api.scraper import Scraper
from shoal.core.task import RunState
from shoal.frontier.contract.engine import Engine
from shoal.testing.hostile_site import HostileSite
from shoal.work.worker import Worker
from support.page_looks import asked, change, looking, recorded, run_job, seen, visit
from support.working import crawl, result_of, start_run, worker_for


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
    result = await run_job(engine, looking(every=0.05), "job", site.url("/etag/a"))
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
