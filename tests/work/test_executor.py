"""From a lease to an outcome: answers, redirects, and the pace between them."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest

from shoal.api.page import Page
from shoal.api.request import Request
from shoal.api.scraper import Scraper
from shoal.core.outcome import Blame
from shoal.frontier.sqlite.engine import SqliteEngine
from shoal.testing.hostile.call import Call
from shoal.testing.hostile_site import BROKEN_TITLE, CHARSET_TEXTS, HostileSite
from support.working import crawl, reader

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
    timeout = 0.4 if "timed out" in says else 60
    scraper = reader(attempts=2, timeout=timeout, max_bytes=100_000)
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
    scraper = reader(attempts=2, site_down_after=0)
    crawled = await crawl(engine, scraper, urls=["http://127.0.0.1:1/x", site.url("/json")])
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


# The pace of a connection that was kept


async def test_a_request_on_a_dead_connection_is_not_repeated_too_soon(engine: SqliteEngine, site: HostileSite) -> None:
    """The target saw the first of the two: the second has to keep the delay, and counts as an attempt."""
    urls = [site.url(f"/{path}") for path in ("json", "drop", "empty", "drop?2")]
    crawled = await crawl(engine, reader(delay=0.1, attempts=2), urls=urls)
    assert (crawled.counters.done, crawled.counters.dead) == (2, 2)
    assert site.log.smallest_gap() >= 0.1
    assert len(site.log) == crawled.counters.requests == 6
