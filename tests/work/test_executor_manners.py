"""From a lease to an outcome: rate limits and robots.txt."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from email.utils import formatdate
from typing import Any

import pytest

from shoal.api.page import Page
from shoal.api.scraper import Scraper
from shoal.core.outcome import Blame
from shoal.frontier.sqlite.engine import SqliteEngine
from shoal.testing.hostile.call import Call
from shoal.testing.hostile_site import HostileSite, Robots, RobotsKind
from shoal.work.options import WorkTiming
from support.working import Crawled, crawl, reader

# Rate limits


@pytest.mark.parametrize(("form", "times"), [("429/first/2/1/x", 2), ("503/first/1/1/y", 1)])
async def test_a_rate_limit_waits_on_the_slot_and_costs_no_attempt(
    engine: SqliteEngine, site: HostileSite, form: str, times: int
) -> None:
    crawled = await crawl(engine, reader(attempts=1), urls=[site.url(f"/{form}")])
    assert [item["h1"] for item in crawled.items] == ["at last"]
    assert (crawled.counters.snoozes, crawled.counters.retries, crawled.counters.dead) == (times, 0, 0)
    assert site.log.smallest_gap() >= 1.0


@pytest.mark.parametrize(("status", "sitemap"), [(200, False), (403, False), (503, False), (200, True)])
async def test_a_page_that_says_so_is_a_rate_limit_whatever_its_status(
    engine: SqliteEngine, site: HostileSite, status: int, sitemap: bool
) -> None:
    """A captcha is no page, no dead letter and no sitemap: the slot waits, and the task has lost nothing."""

    async def once(call: Call, _rest: list[str]) -> None:
        if call.memory.count("captcha") == 1:
            await call.answer("<h1>Prove that you are no ROBOT</h1>", status=status)
        elif sitemap:
            await call.answer(f"http://127.0.0.1:{site.port}/json\n")
        else:
            await call.answer("<h1>at last</h1>")

    site._site.routes["guarded"] = once
    start: dict[str, Any] = {"sitemaps": [site.url("/guarded")]} if sitemap else {"start": [site.url("/guarded")]}
    crawled = await crawl(
        engine, reader(attempts=1, blocked=["you are no robot"], **start), timing=WorkTiming(backoff_first=50)
    )
    assert [item["h1"] for item in crawled.items] == [None if sitemap else "at last"]
    assert (crawled.counters.snoozes, crawled.counters.retries, crawled.counters.dead) == (1, 0, 0)
    [slot] = await engine.reader.slots(f"127.0.0.1:{site.port}")
    assert slot.cause == "blocked (the page matches 'you are no robot')"


async def test_retry_after_as_a_date(engine: SqliteEngine, site: HostileSite) -> None:
    """The date is in whole seconds: the wait is as long as it says, from the moment of the answer."""

    async def once(call: Call, _rest: list[str]) -> None:
        if call.memory.count("dated") == 1:
            when = formatdate(math.ceil(time.time() + 1), usegmt=True)
            await call.answer(b"", ("Retry-After", when), status=429)
        else:
            await call.answer("<h1>at last</h1>")

    site._site.routes["dated"] = once
    crawled = await crawl(engine, reader(attempts=1), urls=[site.url("/dated")])
    assert [item["h1"] for item in crawled.items] == ["at last"]
    assert site.log.smallest_gap() >= 0.9


async def test_a_limit_that_is_said_to_be_over_is_still_a_limit(engine: SqliteEngine, site: HostileSite) -> None:
    """Retry-After: 0 must not make us ask as fast as we can."""
    crawled = await crawl(engine, reader(attempts=1), urls=[site.url("/429/first/1/0/zero")])
    assert crawled.counters.done == 1
    assert site.log.smallest_gap() >= 1.0


async def test_a_limited_site_is_read_to_the_end(engine: SqliteEngine, site: HostileSite) -> None:
    """A bucket of 20 per second: all pages come, whatever was refused in between, and nothing is charged."""
    scraper = Scraper("test", start=site.url("/limited/20/"), delay=0, concurrency=8, obey_robots=False, attempts=1)

    @scraper.page
    def read(page: Page) -> Iterator[object]:
        yield {"h1": page.text("h1")}
        yield page.follow("a")

    site._site.memory.buckets["127.0.0.1", "127.0.0.1", 20.0] = (5.0, time.monotonic())
    crawled = await crawl(engine, scraper)
    assert {item["h1"] for item in crawled.items} == {f"Product {number}" for number in range(20)}
    assert crawled.counters.snoozes > 0
    assert (crawled.counters.dead, crawled.counters.retries) == (0, 0)


# Robots


PAGES = ("/private/x", "/json", "/site/3/")


async def robots_crawl(engine: SqliteEngine, site: HostileSite, **options: Any) -> Crawled:
    scraper = reader(obey_robots=True, **options)
    soon = WorkTiming(retry_first=5, robots_kept_without_answer=50, robots_retry=60, outage_first=60)
    return await crawl(engine, scraper, urls=[site.url(path) for path in PAGES], timing=soon)


@pytest.mark.parametrize("concurrency", [1, 8])
@pytest.mark.parametrize("delay", [0, 0.05])
@pytest.mark.parametrize(
    "kind", [RobotsKind.DISALLOW_PRIVATE, RobotsKind.REDIRECT, RobotsKind.HUGE, RobotsKind.BOM], ids=str
)
async def test_what_is_disallowed_is_never_fetched(
    engine: SqliteEngine, site: HostileSite, kind: RobotsKind, delay: float, concurrency: int
) -> None:
    site.robots["127.0.0.1"] = kind
    crawled = await robots_crawl(engine, site, delay=delay, concurrency=concurrency)
    seen = site.log.counts()
    assert "/private/x" not in seen
    assert (seen["/robots.txt"], seen["/json"], seen["/site/3/"]) == (1, 1, 1)
    assert (crawled.counters.done, crawled.counters.dropped, crawled.counters.dead) == (2, 1, 0)
    assert crawled.counters.requests == len(site.log)
    assert site.log.smallest_gap() >= delay


@pytest.mark.parametrize("kind", [RobotsKind.NONE, RobotsKind.ALLOW, RobotsKind.HTML, 403, 401, b""], ids=str)
async def test_robots_that_forbid_nothing(engine: SqliteEngine, site: HostileSite, kind: Robots) -> None:
    site.robots["127.0.0.1"] = kind
    crawled = await robots_crawl(engine, site)
    assert (crawled.counters.done, site.log.counts()["/robots.txt"]) == (3, 1)


async def test_robots_that_forbid_everything(engine: SqliteEngine, site: HostileSite) -> None:
    site.robots["127.0.0.1"] = RobotsKind.DISALLOW_ALL
    crawled = await robots_crawl(engine, site)
    assert (crawled.counters.dropped, set(site.log.counts())) == (3, {"/robots.txt"})


@pytest.mark.parametrize("kind", [RobotsKind.ERROR, RobotsKind.TIMEOUT, 503, 599], ids=str)
async def test_robots_that_cannot_be_had(engine: SqliteEngine, site: HostileSite, kind: Robots) -> None:
    """Nothing is fetched; it is asked for again after a while, and then the site is blamed."""
    site.robots["127.0.0.1"] = kind
    crawled = await robots_crawl(engine, site, timeout=0.2, attempts=2, concurrency=4, site_down_after=0)
    assert set(site.log.counts()) == {"/robots.txt"}
    assert 2 <= len(site.log) <= 4
    assert (crawled.counters.dead, crawled.counters.retries) == (3, 3)
    assert {(letter.reason.blame, letter.reason.text[:10]) for letter in crawled.dead.values()} == {
        (Blame.HOST, "robots.txt")
    }


async def test_robots_that_come_back(engine: SqliteEngine, site: HostileSite) -> None:
    async def answer(call: Call) -> None:
        broken = call.memory.count("robots") == 1
        await call.answer("User-agent: *\nDisallow: /private/\n", status=500 if broken else 200)

    site.robots["127.0.0.1"] = answer
    crawled = await robots_crawl(engine, site)
    assert (crawled.counters.done, crawled.counters.dropped) == (2, 1)


async def test_a_rate_limit_on_robots_txt_is_a_rate_limit(engine: SqliteEngine, site: HostileSite) -> None:
    """It neither allows everything, as other answers of its class do, nor costs an attempt; and it is asked once."""
    site.pages["/json"] = "<h1>json</h1>"
    limited = 0

    async def answer(call: Call) -> None:
        nonlocal limited
        limited += 1
        if limited == 1:
            await call.answer(b"", ("Retry-After", "1"), status=429)
        else:
            await call.answer("User-agent: *\nDisallow: /private/\n")

    site.robots["127.0.0.1"] = answer
    crawled = await robots_crawl(engine, site, attempts=1, concurrency=8)
    assert [entry.path for entry in site.log][:2] == ["/robots.txt", "/robots.txt"]
    assert site.log.entries[1].started - site.log.entries[0].started >= 1.0
    assert (crawled.counters.done, crawled.counters.dropped, crawled.counters.dead) == (2, 1, 0)


@pytest.mark.parametrize("concurrency", [1, 8])
@pytest.mark.parametrize("delay", [0, 0.1])
async def test_a_crawl_delay_slows_down_everything_that_follows(
    engine: SqliteEngine, site: HostileSite, delay: float, concurrency: int
) -> None:
    site.robots["127.0.0.1"] = "User-agent: *\nCrawl-delay: 0.3\n"
    crawled = await robots_crawl(engine, site, delay=delay, concurrency=concurrency)
    assert crawled.counters.done == 3
    print(f"smallest gap {site.log.smallest_gap():.3f} s")
    assert site.log.smallest_gap() >= 0.3


async def test_a_crawl_delay_holds_in_the_next_run_too(engine: SqliteEngine, site: HostileSite) -> None:
    """The second run's worker knows the rules already, from the shared cache."""
    site.robots["127.0.0.1"] = "User-agent: *\nCrawl-delay: 0.3\n"
    for run_id in ("one", "two"):
        await crawl(engine, reader(obey_robots=True, concurrency=4), run_id, urls=[site.url("/json"), site.url("/x")])
    assert len(site.log) == 5
    assert site.log.smallest_gap() >= 0.3


async def test_robots_txt_is_a_request_like_any_other(engine: SqliteEngine, site: HostileSite) -> None:
    crawled = await robots_crawl(engine, site, delay=0.15)
    assert next(entry.path for entry in site.log) == "/robots.txt"
    assert crawled.counters.requests == 4
    assert site.log.smallest_gap() >= 0.15


async def test_robots_are_those_of_the_host_that_a_redirect_leads_to(engine: SqliteEngine, site: HostileSite) -> None:
    site.robots["127.0.0.2"] = RobotsKind.DISALLOW_ALL
    target = site.url("/json", host="127.0.0.2")
    crawled = await crawl(engine, reader(obey_robots=True), urls=[site.url(f"/redirect-to?url={target}")])
    assert (crawled.counters.done, crawled.counters.dropped) == (1, 1)
    assert [entry.path for entry in site.log if entry.host == "127.0.0.2"] == ["/robots.txt"]


async def test_a_redirect_within_the_site_is_held_against_robots_too(engine: SqliteEngine, site: HostileSite) -> None:
    site.robots["127.0.0.1"] = RobotsKind.DISALLOW_PRIVATE
    crawled = await crawl(engine, reader(obey_robots=True), urls=[site.url("/redirect-to?url=/private/x")])
    assert crawled.counters.dropped == 1
    assert "/private/x" not in site.log.counts()
