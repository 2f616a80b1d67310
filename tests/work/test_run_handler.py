"""What handlers give, and what they are let in by."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

from structlog.testing import capture_logs

from shoal.api.page import Page
from shoal.api.request import Request
from shoal.api.scraper import Scraper
from shoal.core.task import RunState
from shoal.frontier.sqlite.engine import SqliteEngine
from shoal.testing.hostile_site import HostileSite
from support.working import crawl, reader


def bare(start: Any = (), **options: Any) -> Scraper:
    """A scraper without handlers."""
    options = {"delay": 0.0, "obey_robots": False, **options}
    return Scraper("test", start=start, **options)


# What handlers give


@dataclass
class Product:
    title: str | None


async def test_handlers_of_all_four_kinds(engine: SqliteEngine, site: HostileSite) -> None:
    scraper = bare([Request(site.url(f"/site/3/?{kind}"), kind) for kind in ("plain", "gen", "coro", "agen")])

    @scraper.page("plain")
    def plain(page: Page) -> object:
        return [Product(page.text("h1")), [None, {"kind": page.request.to}]]

    @scraper.page("gen")
    def generator(page: Page) -> Iterator[object]:
        yield {"kind": page.request.to}
        yield page.follow("a", to="plain")

    @scraper.page("coro")
    async def coroutine(page: Page) -> object:
        await asyncio.sleep(0)
        return {"kind": page.request.to}

    @scraper.page("agen")
    async def async_generator(page: Page) -> AsyncIterator[object]:
        yield {"kind": page.request.to}
        await asyncio.sleep(0)
        yield [{"kind": "late"}]

    crawled = await crawl(engine, scraper)
    kinds = sorted(item["kind"] for item in crawled.items if "kind" in item)
    assert kinds == ["agen", "coro", "gen", "late", "plain", "plain", "plain", "plain"]
    assert (crawled.counters.done, crawled.counters.dead) == (7, 0)


async def test_data_and_group_go_along(engine: SqliteEngine, site: HostileSite) -> None:
    scraper = bare([Request(site.url("/site/4/"), data={"step": 0}, group="milk")])

    @scraper.page
    def first(page: Page) -> Iterator[object]:
        yield page.follow_url(["p/1", "p/2"], to="second", data={"step": page.data["step"] + 1})
        yield page.follow_url(["p/3"], to="second", group="eggs")

    @scraper.page("second")
    def second(page: Page) -> object:
        return {"path": page.url[-1], "data": page.data, "group": page.group, "depth": page.depth}

    crawled = await crawl(engine, scraper)
    assert sorted(crawled.items, key=lambda item: str(item["path"])) == [
        {"path": "1", "data": {"step": 1}, "group": "milk", "depth": 1},
        {"path": "2", "data": {"step": 1}, "group": "milk", "depth": 1},
        {"path": "3", "data": None, "group": "eggs", "depth": 1},
    ]
    assert sorted(str(item.group) for item in crawled.stored) == ["eggs", "milk", "milk"]


async def test_depth_has_an_end(engine: SqliteEngine, site: HostileSite) -> None:
    scraper = bare(site.url("/site/200/"), max_depth=1)

    @scraper.page
    def read(page: Page) -> Iterator[object]:
        yield {"depth": page.depth}
        yield page.follow("a")

    crawled = await crawl(engine, scraper)
    depths = [item["depth"] for item in crawled.items]
    assert (depths.count(0), depths.count(1), max(depths)) == (1, len(depths) - 1, 1)
    assert len(site.log) == len(depths) < 20
    assert crawled.counters.refused > 0


async def test_only_what_is_allowed_is_fetched(engine: SqliteEngine, site: HostileSite) -> None:
    site.pages["/mixed"] = f'<a href="/json">in</a><a href="{site.url("/json", host="127.0.0.9")}">out</a>'
    scraper = bare(site.url("/mixed"), allow=["127.0.0.1"])

    @scraper.page
    def read(page: Page) -> object:
        return page.follow("a")

    crawled = await crawl(engine, scraper)
    assert {entry.host for entry in site.log} == {"127.0.0.1"}
    assert (crawled.counters.done, crawled.counters.refused) == (2, 1)


async def test_higher_priorities_come_first_at_the_target(engine: SqliteEngine, site: HostileSite) -> None:
    wanted = {"/json?0": 0, "/json?5": 5, "/json?-5": -5, "/json?9": 9}
    scraper = reader(start=[Request(site.url(path), priority=priority) for path, priority in wanted.items()])
    await crawl(engine, scraper, concurrency=1)
    assert [entry.path for entry in site.log] == ["/json?9", "/json?5", "/json?0", "/json?-5"]


async def test_first_come_first_served(engine: SqliteEngine, site: HostileSite) -> None:
    paths = [f"/json?{number}" for number in range(20)]
    await crawl(engine, reader(), urls=[site.url(path) for path in paths])
    assert [entry.path for entry in site.log] == paths


async def test_links_are_fetched_once_unless_told_otherwise(engine: SqliteEngine, site: HostileSite) -> None:
    scraper = bare(site.url("/site/2/"))

    @scraper.page
    def read(page: Page) -> Iterator[object]:
        yield page.follow_url(["/json", "/json#top", "/./json"])
        if page.depth < 2 and page.url.endswith("/"):
            yield Request(site.url("/site/2/"), dedup=False)

    crawled = await crawl(engine, scraper)
    assert site.log.counts() == {"/site/2/": 3, "/json": 1}
    assert crawled.counters.duplicates == 3


async def test_a_download_is_refused_until_there_are_file_workers(engine: SqliteEngine, site: HostileSite) -> None:
    site.pages["/shop"] = '<img src="/big/1"><img src="/big/2">'
    scraper = bare(site.url("/shop"))

    @scraper.page
    def read(page: Page) -> object:
        return page.download("img")

    crawled = await crawl(engine, scraper)
    assert (crawled.run.state, crawled.run.lanes) == (RunState.FINISHED, {})
    assert (crawled.counters.done, crawled.counters.refused) == (1, 2)
    assert set(site.log.counts()) == {"/shop"}


async def test_headers_and_cookies(engine: SqliteEngine, site: HostileSite) -> None:
    scraper = bare(site.url("/cookies/set?flavour=oat"), headers={"X-All": "all", "X-Both": "scraper"})

    @scraper.page
    def first(_page: Page) -> object:
        return Request(site.url("/echo"), "echo", headers={"X-Both": "request"})

    @scraper.page("echo")
    def echo(page: Page) -> object:
        seen = page.json()["headers"]
        return {name: seen.get(name) for name in ("x-all", "x-both", "cookie", "user-agent")}

    crawled = await crawl(engine, scraper)
    assert crawled.items == [
        {"x-all": "all", "x-both": "request", "cookie": "flavour=oat", "user-agent": "ShoalTest/1.0"}
    ]


# The door


BAD_STARTS = {
    "htp://x.example/": "its scheme 'htp' is not http or https",
    "http://x.example/a b": "it contains a space",
    "http://": "host",
    "http:///path": "host",
    "http://x.example/" + "a" * 10_000: "it is 10017 characters long",
    "javascript:alert(1)": "its scheme 'javascript'",
    "": "",
    "x.example": "",
    "http://x.example:99999/": "host or port",
    "http://x.example/\x00": "control character",
    "http://\ud800.example/": "",
}


async def test_bad_start_urls_are_refused_with_the_reason_and_never_fetched(
    engine: SqliteEngine, site: HostileSite
) -> None:
    crawled = await crawl(engine, reader(), urls=[*BAD_STARTS, site.url("/json")])
    assert (crawled.seeded.accepted, crawled.seeded.refusals) == (1, len(BAD_STARTS))
    for url, reason in crawled.seeded.refused:
        assert reason
        assert BAD_STARTS[url] in reason
    assert (len(site.log), crawled.counters.done, crawled.counters.accepted) == (1, 1, 1)


async def test_bad_links_are_counted_and_never_fetched(engine: SqliteEngine, site: HostileSite) -> None:
    scraper = bare(site.url("/site/1/"))

    @scraper.page
    def read(page: Page) -> Iterator[object]:
        yield [Request(url) for url in BAD_STARTS]
        yield page.follow_url(["http://[", "/json"])

    with capture_logs() as logs:
        crawled = await crawl(engine, scraper)
    assert all(len(entry.get("url", "").encode()) < 5000 for entry in logs)  # fit for any terminal
    assert crawled.counters.refused == 2 * (len(BAD_STARTS) + 1)
    assert (crawled.counters.done, crawled.counters.dead) == (2, 0)
