"""Redirects, step by step: what arrives at the target, and that the task stays the one that was asked for."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from shoal.api.page import Page
from shoal.api.request import Request
from shoal.api.scraper import Scraper
from shoal.core.task import Policy
from shoal.frontier.sqlite.engine import SqliteEngine
from shoal.testing.hostile.call import Call
from shoal.testing.hostile_site import HostileSite
from support.engine_urls import ENGINES, emptied
from support.fleet import ways, work_together
from support.working import crawl, reader, result_of, worker_for

SEVERAL: dict[str, Any] = {"concurrency": 4, "delay": 0.02}
"""Leases overlap, so that each step of a redirect needs one of its own."""

BODY_HEADERS = {
    "Content-Type": "application/json",
    "Content-Encoding": "identity",
    "Content-Language": "de",
    "Content-Location": "/here",
}


def becomes_get(status: int, method: str) -> bool:
    """As the Fetch standard has it, and so every browser."""
    return (status in (301, 302) and method == "POST") or (status == 303 and method not in ("GET", "HEAD"))


def targets(site: HostileSite, path: str = "target") -> list[Call]:
    """What arrives at `/target` from now on."""
    arrived: list[Call] = []

    async def answer(call: Call, _rest: list[str]) -> None:
        arrived.append(call)
        await call.answer("<h1>arrived</h1>")

    site._site.routes[path] = answer
    return arrived


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2"], ids=["same host", "another host"])
@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "DELETE"])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_what_arrives_at_the_target(
    engine: SqliteEngine, site: HostileSite, status: int, method: str, concurrency: int, host: str
) -> None:
    arrived = targets(site)
    scraper = reader(concurrency=concurrency, delay=0.01)
    body = "milk" if method in ("POST", "PUT") else None
    headers = {"X-Mine": "1", **(BODY_HEADERS if body else {})}
    start = site.url(f"/redirect-to?url={site.url('/target', host=host)}&status={status}")
    scraper.start_urls = (Request(start, method=method, body=body, headers=headers),)
    crawled = await crawl(engine, scraper)
    [call] = arrived
    turned = becomes_get(status, method)
    assert (call.method, call.body) == ("GET" if turned else method, b"" if turned or not body else b"milk")
    sent = {name: call.headers.get(name.lower()) for name in BODY_HEADERS}
    assert sent == (BODY_HEADERS if body and not turned else dict.fromkeys(BODY_HEADERS))
    assert call.headers.get("content-length") == (None if turned or not body else "4")
    assert call.headers["x-mine"] == "1", "what is not about the body is sent on"
    assert (len(crawled.items), len(site.log)) == (1, 2)


@pytest.mark.parametrize("kind", ENGINES)
async def test_a_chain_goes_through_the_hands_of_several_workers(site: HostileSite, tmp_path: Path, kind: str) -> None:
    """On every engine: no step is made twice, each chain is one task from beginning to end, and all of it is told."""
    scraper = Scraper("test", obey_robots=False, **SEVERAL)
    scraper.page(lambda page: {"url": page.url, "history": [[hop.url, hop.status] for hop in page.history]})
    urls = [site.url(f"/redirect-to?url=/redirect-to?url=/site/9/p/{page}") for page in range(1, 9)]
    policy = Policy(delay=20, concurrency=4)
    async with emptied(kind, tmp_path) as store:
        worked = await work_together(store, scraper, urls, ways("direct"), workers=2, policy=policy)
    assert sorted(item["url"] for item in worked.items) == [site.url(f"/site/9/p/{page}") for page in range(1, 9)]
    first, second = site.url("/redirect-to?url=/redirect-to?url="), site.url("/redirect-to?url=")
    for item in worked.items:
        path = item["url"].removeprefix(site.url(""))
        assert item["history"] == [[first + path, 302], [second + path, 302]]
    assert set(site.log.counts().values()) == {1}
    assert (len(site.log), worked.counters.done, worked.counters.accepted) == (24, 8, 8)
    assert site.log.smallest_gap() >= 0.02


@pytest.mark.parametrize("options", [{}, SEVERAL], ids=["one lease", "several"])
class TestTheTaskStaysWhatItWas:
    async def test_another_attempt_begins_at_the_beginning(
        self, engine: SqliteEngine, site: HostileSite, options: dict[str, Any]
    ) -> None:
        """The target may be good for one visit only."""
        start = "/redirect-to?url=/redirect-to?url=/flaky/2/x"
        crawled = await crawl(engine, reader(**options), urls=[site.url(start)])
        assert [item["h1"] for item in crawled.items] == ["at last"]
        assert site.log.counts() == {start: 3, "/redirect-to?url=/flaky/2/x": 3, "/flaky/2/x": 3}
        assert crawled.counters.retries == 2

    async def test_a_form_is_sent_again_with_all_that_was_in_it(
        self, engine: SqliteEngine, site: HostileSite, options: dict[str, Any]
    ) -> None:
        bodies: list[tuple[str, bytes, str | None]] = []

        async def form(call: Call, _rest: list[str]) -> None:
            bodies.append((call.method, call.body, call.headers.get("content-type")))
            await call.answer(b"", ("Location", "/flaky/1/form"), status=303)

        site._site.routes["form"] = form
        scraper = Scraper("test", obey_robots=False, **{"delay": 0, **options})

        @scraper.page
        def read(page: Page) -> dict[str, object]:
            asked = page.request
            return {"url": page.url, "asked": asked.url, "method": asked.method, "body": str(asked.body)}

        scraper.start_urls = (
            Request(site.url("/form"), method="POST", body="q=milk", headers={"Content-Type": "text/x"}),
        )
        crawled = await crawl(engine, scraper)
        assert bodies == [("POST", b"q=milk", "text/x")] * 2
        assert crawled.items == [
            {"url": site.url("/flaky/1/form"), "asked": site.url("/form"), "method": "POST", "body": "b'q=milk'"}
        ]

    async def test_a_dead_letter_names_what_was_asked_for_and_so_does_requeue(
        self, engine: SqliteEngine, site: HostileSite, options: dict[str, Any]
    ) -> None:
        start, middle = "/redirect-to?url=/redirect-to?url=/status/404", "/redirect-to?url=/status/404"
        scraper = reader(**options)
        crawled = await crawl(engine, scraper, urls=[site.url(start)])
        assert crawled.only_death.url == site.url(start)
        assert await engine.frontier.requeue_dead("run") == 1
        await worker_for(engine, scraper).run()
        assert site.log.counts() == {start: 2, middle: 2, "/status/404": 2}
        assert (await result_of(engine)).only_death.url == site.url(start)

    async def test_a_rate_limit_at_the_target_begins_at_the_beginning_too(
        self, engine: SqliteEngine, site: HostileSite, options: dict[str, Any]
    ) -> None:
        start = "/redirect-to?url=/429/first/1/1/x"
        crawled = await crawl(engine, reader(**options), urls=[site.url(start)])
        assert [item["h1"] for item in crawled.items] == ["at last"]
        assert site.log.counts() == {start: 2, "/429/first/1/1/x": 2}

    async def test_a_chain_is_counted_over_all_its_leases(
        self, engine: SqliteEngine, site: HostileSite, options: dict[str, Any]
    ) -> None:
        crawled = await crawl(engine, reader(**options), urls=[site.url("/redirect/12")])
        assert crawled.only_death.reason.text == "more than 10 redirects"
        assert crawled.only_death.url == site.url("/redirect/12")
        assert len(site.log) == 11

    async def test_a_sitemap_too(self, engine: SqliteEngine, site: HostileSite, options: dict[str, Any]) -> None:
        start = "/redirect-to?url=/flaky/1/map"
        crawled = await crawl(engine, reader(sitemaps=site.url(start), **options))
        assert crawled.only_death.url == site.url(start)
        assert site.log.counts() == Counter({start: 2, "/flaky/1/map": 2})

    async def test_back_from_another_site(
        self, engine: SqliteEngine, site: HostileSite, options: dict[str, Any]
    ) -> None:
        """Each site that a chain leads to has a task of its own, which begins again where it was let in."""
        there = "/redirect-to?url=/flaky/1/there"
        start = site.url(f"/redirect-to?url={site.url(there, host='127.0.0.2')}")
        crawled = await crawl(engine, reader(**options), urls=[start])
        assert [item["h1"] for item in crawled.items] == ["at last"]
        assert site.log.filter(host="127.0.0.2").counts() == {there: 2, "/flaky/1/there": 2}
        assert len(site.log.filter(host="127.0.0.1")) == 1
