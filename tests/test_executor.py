"""What every kind of answer comes to, on a real engine against a site that misbehaves on purpose."""

from __future__ import annotations

import math
import re
import time
from collections.abc import AsyncIterator, Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from shoal import politeness
from shoal.fetch import robots
from shoal.frontier.sqlite.engine import SqliteEngine
from shoal.outcome import Blame
from shoal.page import Page
from shoal.request import Request
from shoal.scraper import Scraper
from shoal.testing.hostile import connection
from shoal.testing.hostile.call import Call
from shoal.testing.hostile_site import BROKEN_TITLE, CHARSET_TEXTS, HostileSite, Robots, RobotsKind
from shoal.work import permission
from working import Crawled, crawl, opened, reader

pytestmark = pytest.mark.usefixtures("short_waits")


@pytest.fixture
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries come after a few milliseconds."""
    monkeypatch.setattr(politeness, "RETRY_FIRST", 5)


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[SqliteEngine]:
    async with opened(tmp_path) as engine:
        yield engine


@pytest.fixture
async def site() -> AsyncIterator[HostileSite]:
    async with HostileSite(host="0.0.0.0") as site:  # noqa: S104 - all of 127.0.0.0/8, and it hangs up on others
        yield site


# Answers that never become a page


@pytest.mark.parametrize(
    ("path", "blame", "says", "requests"),
    [
        ("/drop", Blame.HOST, "connection closed before an answer", 2),
        ("/reset", Blame.HOST, "connection", 2),
        ("/half", Blame.HOST, "body cut short", 2),
        ("/drip/100/100", Blame.HOST, "timed out after 0.4 s", 2),
        ("/delay/5000", Blame.HOST, "timed out after 0.4 s", 2),
        ("/endless", Blame.URL, "body larger than 100000 bytes", 1),
        ("/headers/endless", Blame.URL, "malformed answer", 2),
        ("/garbage", Blame.URL, "malformed answer", 2),
        ("/length/long", Blame.HOST, "body cut short", 2),
        ("/length/garbage", Blame.URL, "malformed answer", 2),
        ("/length/negative", Blame.URL, "malformed answer", 2),
        ("/length/short", Blame.URL, "malformed answer", 2),
        ("/length/twice", Blame.URL, "malformed answer", 2),
        ("/chunked/bad", Blame.URL, "malformed answer", 2),
        ("/bad-gzip", Blame.URL, "damaged compressed body", 2),
        ("/bomb/gzip", Blame.URL, "body larger than", 1),
        ("/bomb/br", Blame.URL, "body larger than", 1),
        ("/bomb/deflate", Blame.URL, "body larger than", 1),
        ("/big/200", Blame.URL, "body larger than", 1),
        ("/status/500", Blame.HOST, "HTTP 500", 2),
        ("/status/503", Blame.HOST, "HTTP 503", 2),
        ("/status/408", Blame.URL, "HTTP 408", 2),
        ("/status/400", Blame.URL, "HTTP 400", 1),
        ("/status/401", Blame.URL, "HTTP 401", 1),
        ("/status/403", Blame.URL, "HTTP 403", 1),
        ("/status/404", Blame.URL, "HTTP 404", 1),
        ("/status/410", Blame.URL, "HTTP 410", 1),
        ("/status/304", Blame.URL, "HTTP 304", 1),
        ("/status/302", Blame.URL, "HTTP 302", 1),
        ("/status/501", Blame.HOST, "HTTP 501", 1),
        ("/status/999", Blame.HOST, "HTTP 999", 1),
    ],
)
async def test_no_page_no_item(
    engine: SqliteEngine, site: HostileSite, path: str, blame: Blame, says: str, requests: int
) -> None:
    """A dead letter with the reason, after as many attempts as it deserves."""
    scraper = reader(retries=2, timeout=0.4, max_bytes=100_000)
    crawled = await crawl(engine, scraper, urls=[site.url(path)])
    letter = crawled.dead[path]
    assert (letter.reason.blame, letter.attempts) == (blame, requests)
    assert says in letter.reason.text
    assert len(site.log) == requests == crawled.counters.requests
    assert crawled.items == []
    assert (crawled.counters.dead, crawled.counters.retries) == (1, requests - 1)
    assert crawled.counters.remaining == 0


@pytest.mark.parametrize(
    ("path", "h1"),
    [
        ("/gzip", "Compressed with care"),
        ("/br", "Compressed with care"),
        ("/deflate", "Compressed with care"),
        ("/html/broken", BROKEN_TITLE),
        ("/empty", None),
        ("/status/204", None),
        ("/status/206", "status 206"),
        ("/chunked/good", None),
        ("/flaky/2/once", "at last"),
        ("/redirect/3", "arrived"),
        ("/redirect-cookie", "welcome back"),
        *((f"/charset/{kind}", text) for kind, text in CHARSET_TEXTS.items()),
    ],
)
async def test_a_page_for_the_handler(engine: SqliteEngine, site: HostileSite, path: str, h1: str | None) -> None:
    crawled = await crawl(engine, reader(), urls=[site.url(path)])
    assert [item["h1"] for item in crawled.items] == [h1]
    assert (crawled.counters.done, crawled.counters.dead) == (1, 0)


async def test_nobody_listens(engine: SqliteEngine, site: HostileSite) -> None:
    """Port 1 refuses; the crawl of the others goes on."""
    crawled = await crawl(engine, reader(retries=2), urls=["http://127.0.0.1:1/x", site.url("/json")])
    assert crawled.dead["/x"].reason.text == "connection refused"
    assert crawled.counters.done == 1


async def test_the_number_of_attempts_is_the_scrapers(engine: SqliteEngine, site: HostileSite) -> None:
    crawled = await crawl(engine, reader(), urls=[site.url("/status/500")])
    assert (len(site.log), crawled.only_death.attempts) == (3, 3)


# Redirects


async def test_ten_redirects_are_followed_and_no_more(engine: SqliteEngine, site: HostileSite) -> None:
    crawled = await crawl(engine, reader(), urls=[site.url("/redirect/10"), site.url("/redirect/12")])
    assert [item["h1"] for item in crawled.items] == ["arrived"]
    assert crawled.dead["/redirect/12"].reason.text == "more than 10 redirects"
    assert crawled.counters.requests == 11 + 11


async def test_a_redirect_loop_ends(engine: SqliteEngine, site: HostileSite) -> None:
    crawled = await crawl(engine, reader(), urls=[site.url("/redirect-loop")])
    assert crawled.only_death.reason.text == "more than 10 redirects"
    assert len(site.log) == 11


@pytest.mark.parametrize(
    "target", ["javascript:alert(1)", "http://", "ftp://x/", "http://[bad", "http://a b/", "%FF://"]
)
async def test_redirected_to_what_cannot_be_fetched(engine: SqliteEngine, site: HostileSite, target: str) -> None:
    crawled = await crawl(engine, reader(), urls=[site.url(f"/redirect-to?url={quote(target)}")])
    if target == "%FF://":
        assert crawled.only_death.reason.text == "HTTP 404"  # a path on this site
    else:
        assert "redirected to an address that cannot be fetched" in crawled.only_death.reason.text


async def test_a_location_that_is_not_even_text(engine: SqliteEngine, site: HostileSite) -> None:
    crawled = await crawl(engine, reader(), urls=[site.url("/redirect-to?url=/a%C3%BF%80")])
    assert crawled.counters.remaining == 0
    assert crawled.counters.done + crawled.counters.dead == 1


async def test_a_redirect_to_another_site_is_a_task_of_its_own(engine: SqliteEngine, site: HostileSite) -> None:
    other = site.url("/echo", host="127.0.0.2")
    scraper = Scraper("test", delay=0, obey_robots=False)

    @scraper.page("there")
    def there(page: Page) -> dict[str, object]:
        return {"data": page.data, "group": page.group, "asked": page.request.url, "depth": page.depth, "url": page.url}

    start = site.url(f"/redirect-to?url={other}")
    scraper.start_urls = (Request(start, "there", data={"n": 1}, group="g"),)
    crawled = await crawl(engine, scraper)
    assert crawled.items == [{"data": {"n": 1}, "group": "g", "asked": start, "depth": 0, "url": other}]
    assert [entry.host for entry in site.log] == ["127.0.0.1", "127.0.0.2"]
    assert (crawled.counters.done, crawled.counters.accepted) == (2, 2)


async def test_a_redirect_elsewhere_is_a_duplicate_of_what_the_run_has(engine: SqliteEngine, site: HostileSite) -> None:
    other = site.url("/json", host="127.0.0.2")
    crawled = await crawl(engine, reader(), urls=[other, site.url(f"/redirect-to?url={other}")])
    assert (len(crawled.items), crawled.counters.duplicates) == (1, 1)


async def test_there_and_back_again(engine: SqliteEngine, site: HostileSite) -> None:
    """By way of another site (a login, a consent page) back to the page itself, which then is read."""
    away = site.url(f"/redirect-to?url={site.url('/redirect-cookie')}", host="127.0.0.2")

    async def bounce(call: Call, _rest: list[str]) -> None:
        if call.cookies.get("visited") == "yes":
            await call.answer("<h1>welcome back</h1>")
        else:
            await call.answer(b"", ("Location", away), ("Set-Cookie", "visited=yes; Path=/"), status=302)

    site._site.routes["redirect-cookie"] = bounce
    crawled = await crawl(engine, reader(), urls=[site.url("/redirect-cookie")])
    assert [item["h1"] for item in crawled.items] == ["welcome back"]


async def test_an_endless_loop_over_two_sites_ends(engine: SqliteEngine, site: HostileSite) -> None:
    async def loop(call: Call, _rest: list[str]) -> None:
        other = "127.0.0.2" if call.host == "127.0.0.1" else "127.0.0.1"
        await call.answer(b"", ("Location", site.url("/pingpong", host=other)), status=302)

    site._site.routes["pingpong"] = loop
    crawled = await crawl(engine, reader(), urls=[site.url("/pingpong")])
    assert crawled.only_death.reason.text == "more than 10 redirects"
    assert len(site.log) == 11


async def test_a_redirect_turns_a_post_into_a_get_unless_it_says_otherwise(
    engine: SqliteEngine, site: HostileSite
) -> None:
    scraper = Scraper("test", delay=0, obey_robots=False)

    @scraper.page
    def read(page: Page) -> object:
        seen = page.json()
        return {"method": seen["method"], "body": seen["body"]}

    def post(status: int) -> Request:
        return Request(site.url(f"/redirect-to?url=/echo?{status}&status={status}"), method="POST", body="milk")

    scraper.start_urls = (post(302), post(303), post(307), post(308))
    crawled = await crawl(engine, scraper)
    assert sorted((item["method"], item["body"]) for item in crawled.items) == [
        ("GET", ""), ("GET", ""), ("POST", "milk"), ("POST", "milk"),
    ]  # fmt: skip


async def test_credentials_in_headers_stay_with_their_site(engine: SqliteEngine, site: HostileSite) -> None:
    scraper = Scraper("test", delay=0, obey_robots=False)

    @scraper.page
    def read(page: Page) -> object:
        return {name: page.json()["headers"].get(name) for name in ("authorization", "x-mine")}

    headers = {"Authorization": "Bearer secret", "X-Mine": "1"}
    here, there = site.url("/echo?1"), site.url("/echo?2", host="127.0.0.2")
    scraper.start_urls = tuple(Request(site.url(f"/redirect-to?url={url}"), headers=headers) for url in (here, there))
    crawled = await crawl(engine, scraper)
    assert sorted(crawled.items, key=str) == [
        {"authorization": "Bearer secret", "x-mine": "1"},
        {"authorization": None, "x-mine": "1"},
    ]


async def test_a_redirect_leads_nowhere_that_the_scraper_does_not_allow(
    engine: SqliteEngine, site: HostileSite
) -> None:
    scraper = reader(allow=[re.compile("redirect")])
    inside, outside = site.url("/echo"), site.url("/echo", host="127.0.0.2")
    crawled = await crawl(engine, scraper, urls=[site.url(f"/redirect-to?url={url}") for url in (inside, outside)])
    assert (crawled.counters.dropped, crawled.items) == (2, [])
    assert set(site.log.counts()) == {f"/redirect-to?url={url}" for url in (inside, outside)}


async def test_redirects_at_a_pace_with_several_leases(engine: SqliteEngine, site: HostileSite) -> None:
    """Where leases overlap, each step of a redirect waits for a lease of its own; the pace holds all the same."""
    scraper = reader(delay=0.1, concurrency=4)
    crawled = await crawl(engine, scraper, urls=[site.url("/redirect/3"), site.url("/redirect/2?x")])
    assert [item["h1"] for item in crawled.items] == ["arrived"] * 2
    assert crawled.counters.requests == len(site.log) == 7
    assert site.log.smallest_gap() >= 0.1


# Rate limits


@pytest.mark.parametrize(("form", "times"), [("429/first/2/1/x", 2), ("503/first/1/1/y", 1)])
async def test_a_rate_limit_waits_on_the_slot_and_costs_no_attempt(
    engine: SqliteEngine, site: HostileSite, form: str, times: int
) -> None:
    crawled = await crawl(engine, reader(retries=1), urls=[site.url(f"/{form}")])
    assert [item["h1"] for item in crawled.items] == ["at last"]
    assert (crawled.counters.snoozes, crawled.counters.retries, crawled.counters.dead) == (times, 0, 0)
    assert site.log.smallest_gap() >= 1.0


@pytest.mark.parametrize(("status", "sitemap"), [(200, False), (403, False), (503, False), (200, True)])
async def test_a_page_that_says_so_is_a_rate_limit_whatever_its_status(
    engine: SqliteEngine, site: HostileSite, status: int, sitemap: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A captcha is no page, no dead letter and no sitemap: the slot waits, and the task has lost nothing."""
    monkeypatch.setattr(politeness, "BACKOFF_FIRST", 50)

    async def once(call: Call, _rest: list[str]) -> None:
        if call.memory.count("captcha") == 1:
            await call.answer("<h1>Prove that you are no ROBOT</h1>", status=status)
        elif sitemap:
            await call.answer(f"http://127.0.0.1:{site.port}/json\n")
        else:
            await call.answer("<h1>at last</h1>")

    site._site.routes["guarded"] = once
    start: dict[str, Any] = {"sitemaps": [site.url("/guarded")]} if sitemap else {"start": [site.url("/guarded")]}
    crawled = await crawl(engine, reader(retries=1, blocked=["you are no robot"], **start))
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
    crawled = await crawl(engine, reader(retries=1), urls=[site.url("/dated")])
    assert [item["h1"] for item in crawled.items] == ["at last"]
    assert site.log.smallest_gap() >= 0.9


async def test_a_limit_that_is_said_to_be_over_is_still_a_limit(engine: SqliteEngine, site: HostileSite) -> None:
    """Retry-After: 0 must not make us ask as fast as we can."""
    crawled = await crawl(engine, reader(retries=1), urls=[site.url("/429/first/1/0/zero")])
    assert crawled.counters.done == 1
    assert site.log.smallest_gap() >= 1.0


async def test_a_limited_site_is_read_to_the_end(engine: SqliteEngine, site: HostileSite) -> None:
    """A bucket of 20 per second: all pages come, whatever was refused in between, and nothing is charged."""
    scraper = Scraper("test", start=site.url("/limited/20/"), delay=0, concurrency=8, obey_robots=False, retries=1)

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
    return await crawl(engine, scraper, urls=[site.url(path) for path in PAGES])


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
async def test_robots_that_cannot_be_had(
    engine: SqliteEngine, site: HostileSite, kind: Robots, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is fetched; it is asked for again after a while, and then the site is blamed."""
    monkeypatch.setattr(permission, "KEPT_WITHOUT_ANSWER", 60)
    monkeypatch.setattr(robots, "KEPT_WITHOUT_ANSWER", 50)
    site.robots["127.0.0.1"] = kind
    crawled = await robots_crawl(engine, site, timeout=0.2, retries=2, concurrency=4)
    assert set(site.log.counts()) == {"/robots.txt"}
    assert 2 <= len(site.log) <= 4
    assert (crawled.counters.dead, crawled.counters.retries) == (3, 3)
    assert {(letter.reason.blame, letter.reason.text[:10]) for letter in crawled.dead.values()} == {
        (Blame.HOST, "robots.txt")
    }


async def test_robots_that_come_back(engine: SqliteEngine, site: HostileSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(permission, "KEPT_WITHOUT_ANSWER", 60)
    monkeypatch.setattr(robots, "KEPT_WITHOUT_ANSWER", 50)

    async def answer(call: Call, _robots: Robots) -> None:
        broken = call.memory.count("robots") == 1
        await call.answer("User-agent: *\nDisallow: /private/\n", status=500 if broken else 200)

    monkeypatch.setattr(connection, "answer_robots", answer)
    crawled = await robots_crawl(engine, site)
    assert (crawled.counters.done, crawled.counters.dropped) == (2, 1)


async def test_a_rate_limit_on_robots_txt_is_a_rate_limit(engine: SqliteEngine, site: HostileSite) -> None:
    """It neither allows everything, as other answers of its class do, nor costs an attempt; and it is asked once."""
    site.pages["/json"] = "<h1>json</h1>"
    site.robots["127.0.0.1"] = RobotsKind.NONE
    limited = 0

    async def answer(call: Call, _robots: Robots) -> None:
        nonlocal limited
        limited += 1
        if limited == 1:
            await call.answer(b"", ("Retry-After", "1"), status=429)
        else:
            await call.answer("User-agent: *\nDisallow: /private/\n")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection, "answer_robots", answer)
        crawled = await robots_crawl(engine, site, retries=1, concurrency=8)
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


# The pace of a connection that was kept


async def test_a_request_on_a_dead_connection_is_not_repeated_too_soon(engine: SqliteEngine, site: HostileSite) -> None:
    """The target saw the first of the two: the second has to keep the delay, and counts as an attempt."""
    urls = [site.url(f"/{path}") for path in ("json", "drop", "empty", "drop?2")]
    crawled = await crawl(engine, reader(delay=0.1, retries=2), urls=urls)
    assert (crawled.counters.done, crawled.counters.dead) == (2, 2)
    assert site.log.smallest_gap() >= 0.1
    assert len(site.log) == crawled.counters.requests == 6
