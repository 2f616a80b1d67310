"""Answers that are used again, and what the target sees of it."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from shoal.api.page import Page
from shoal.api.request import Request
from shoal.api.scraper import Scraper
from shoal.errors import Drop, Retry
from shoal.frontier.contract.engine import Engine
from shoal.testing.hostile_site import HostileSite
from support.page_looks import asked, looking, run_job, seen, visit


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


async def test_web_clients_share_what_the_site_says_to_everybody(engine: Engine, site: HostileSite) -> None:
    scraper = looking(cache=60)
    for run in ("one", "two"):
        assert (await run_job(engine, scraper, run, site.url("/plain/a"))).counters.done == 1
    assert asked(site, "/plain/a") == [200]


async def test_web_clients_whom_the_site_knows_share_nothing(engine: Engine, site: HostileSite) -> None:
    scraper = looking(cache=60)
    for run in ("one", "two"):
        await run_job(engine, scraper, run, site.url("/cookies/set?me=1"), site.url("/cookies/echo"))
    assert asked(site, "/cookies/set?me=1") == [200, 200]
    assert asked(site, "/cookies/echo") == [200, 200]


async def test_what_was_fetched_without_the_guard_is_not_shown_to_web_clients(
    engine: Engine, site: HostileSite
) -> None:
    scraper = looking(cache=60)
    await visit(engine, scraper, "own", site.url("/plain/a"))
    await run_job(engine, scraper, "theirs", site.url("/plain/a"))
    assert asked(site, "/plain/a") == [200, 200]
