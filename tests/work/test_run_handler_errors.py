"""What handlers raise, and mistakes in a scraper."""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from shoal.api.page import Page
from shoal.api.request import Request
from shoal.api.scraper import Scraper
from shoal.core import log_events
from shoal.core.outcome import Blame
from shoal.core.task import NewTask
from shoal.core.url import dedup_key, site_of
from shoal.errors import Drop, Retry
from shoal.frontier.sqlite.engine import SqliteEngine
from shoal.testing.hostile_site import HostileSite
from support.working import Crawled, crawl, reader, result_of, start_run, worker_for


def bare(start: Any = (), **options: Any) -> Scraper:
    """A scraper without handlers."""
    options = {"delay": 0.0, "obey_robots": False, **options}
    return Scraper("test", start=start, **options)


# What handlers raise


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even this")


def recurse() -> None:
    recurse()


def cancelled() -> None:
    raise asyncio.CancelledError


RAISED: dict[str, tuple[Callable[[], object], str]] = {
    "an exception": (lambda: 1 // 0, "ZeroDivisionError: integer division or modulo by zero"),
    "without a word": (lambda: (_ for _ in ()).throw(KeyError()), "KeyError"),
    "sys.exit": (lambda: sys.exit(3), "SystemExit: 3"),
    "a base exception": (lambda: (_ for _ in ()).throw(BaseException("base")), "BaseException: base"),
    "a group": (lambda: (_ for _ in ()).throw(BaseExceptionGroup("g", [SystemExit()])), "BaseExceptionGroup: g"),
    "recursion": (recurse, "RecursionError: maximum recursion depth exceeded"),
    "out of memory": (lambda: (_ for _ in ()).throw(MemoryError()), "MemoryError"),
    "cancelled": (cancelled, "CancelledError"),
    "timeout": (lambda: (_ for _ in ()).throw(TimeoutError()), "TimeoutError"),
    "no words": (lambda: (_ for _ in ()).throw(Unspeakable()), "Unspeakable: <Unspeakable that cannot be shown>"),
    "half a character": (lambda: (_ for _ in ()).throw(ValueError("\udc80x")), "ValueError: ?x"),
    "a long story": (lambda: (_ for _ in ()).throw(ValueError("x" * 10**6)), "ValueError: xxx"),
    "a retry": (lambda: (_ for _ in ()).throw(Retry("not ready", after=0)), "not ready"),
    "a retry of no text": (lambda: (_ for _ in ()).throw(Retry(ValueError("x"))), "x"),  # type: ignore[arg-type]
    "a retry of no number": (
        lambda: (_ for _ in ()).throw(Retry(after="soon")),
        "raised Retry with after='soon', which must be a number of seconds, or a text such as",
    ),
    "a retry at no time": (lambda: (_ for _ in ()).throw(Retry(after=float("nan"))), "raised Retry with after=nan"),
    "a retry after a text": (lambda: (_ for _ in ()).throw(Retry("not ready", after="0ms")), "not ready"),
    "a retry in the past": (lambda: (_ for _ in ()).throw(Retry("past", after=-(10**30))), "past"),
}


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("what", RAISED)
async def test_whatever_a_handler_raises_is_its_own_failure(
    engine: SqliteEngine, site: HostileSite, what: str, asynchronous: bool
) -> None:
    """Two attempts, where that is asked for, and a dead letter with handler and line; the crawl goes on, and nothing
    that was yielded is kept."""
    urls = [Request(site.url("/site/1/"), "bad"), site.url("/json")]
    scraper = bare(urls, attempts=2, retry_handler_errors=True)
    action, says = RAISED[what]

    def bad(_page: Page) -> Iterator[object]:
        yield {"kept": False}
        yield Request(site.url("/empty"))
        action()

    async def bad_async(_page: Page) -> AsyncIterator[object]:
        yield {"kept": False}
        await asyncio.sleep(0)
        action()

    scraper.page("bad")(bad_async if asynchronous else bad)

    @scraper.page
    def good(_page: Page) -> object:
        return {"kept": True}

    crawled = await crawl(engine, scraper)
    letter = crawled.only_death
    assert letter.reason.blame is Blame.HANDLER
    assert letter.reason.text.startswith(says)
    assert len(letter.reason.text) < 1100
    assert (letter.attempts, letter.handler) == (2, "bad")
    assert crawled.items == [{"kept": True}]
    assert site.log.counts() == {"/site/1/": 2, "/json": 1}


async def test_a_report_names_scraper_url_handler_and_line(engine: SqliteEngine, site: HostileSite) -> None:
    url = site.url("/site/1/").replace("127", "user:secret@127")
    scraper = bare([Request(url, "detail")], attempts=1)

    @scraper.page("detail")
    def detail(page: Page) -> object:
        missing: Any = page.css_first("nothing")
        return {"x": missing.text()}

    line = inspect.getsourcelines(detail)[1] + 3
    with capture_logs() as logs:
        crawled = await crawl(engine, scraper)
    (report,) = [entry for entry in logs if entry["event"] == log_events.TASK_DEAD]
    assert report["reason"] == "AttributeError: 'NoneType' object has no attribute 'text'"
    assert (report["scraper"], report["handler"], report["url"]) == ("test", "detail", site.url("/site/1/"))
    assert report["where"] == f"test_run_handler_errors.py:{line} in detail"
    assert crawled.only_death.reason.detail == report["where"]


async def test_retry_and_drop(engine: SqliteEngine, site: HostileSite) -> None:
    scraper = bare([site.url("/site/1/"), Request(site.url("/json"), "drop")], attempts=5)
    seen = 0

    @scraper.page
    def again(_page: Page) -> Iterator[object]:
        nonlocal seen
        seen += 1
        yield {"seen": seen}
        if seen < 4:
            raise Retry("not yet", after=0.01)

    @scraper.page("drop")
    def drop(_page: Page) -> Iterator[object]:
        yield {"dropped": True}
        raise Drop("sold out")

    crawled = await crawl(engine, scraper)
    assert crawled.items == [{"seen": 4}]
    assert (crawled.counters.retries, crawled.counters.dropped, crawled.counters.dead) == (3, 1, 0)


async def test_retry_after_is_waited_for(engine: SqliteEngine, site: HostileSite) -> None:
    scraper = bare(site.url("/site/1/"))

    @scraper.page
    def again(page: Page) -> object:
        if len(site.log) == 1:
            raise Retry(after=0.4)
        return {"url": page.url}

    crawled = await crawl(engine, scraper)
    assert len(crawled.items) == 1
    assert 0.4 <= site.log.smallest_gap() < 1.5


async def test_retry_in_a_thousand_years_can_be_stored(engine: SqliteEngine, site: HostileSite) -> None:
    scraper = bare([Request(site.url("/json"), "late"), site.url("/empty")])

    @scraper.page("late")
    def late(_page: Page) -> object:
        raise Retry(after=float("inf"))

    @scraper.page
    def read(_page: Page) -> object:
        worker_stop()
        return None

    await start_run(engine, scraper)
    worker = worker_for(engine, scraper, concurrency=1)
    worker_stop = worker.stop
    async with asyncio.timeout(10):
        await worker.run()
    crawled = await result_of(engine)
    assert (crawled.counters.waiting, crawled.counters.retries, crawled.counters.done) == (1, 1, 1)


# Mistakes in a scraper


async def mistaken(engine: SqliteEngine, site: HostileSite, give: Callable[[Page], object]) -> Crawled:
    scraper = bare([site.url("/site/1/"), Request(site.url("/json"), "detail")])

    @scraper.page
    def listing(page: Page) -> Iterator[object]:
        yield {"kept": False}
        yield give(page)

    @scraper.page("detail")
    def detail(_page: Page) -> object:
        return {"kept": True}

    return await crawl(engine, scraper)


@pytest.mark.parametrize(
    ("give", "says"),
    [
        (lambda page: page.follow("a", to="detial"), "has no handler 'detial'; did you mean 'detail'?"),
        (lambda _page: 42, "it yielded an int (42)"),
        (lambda _page: "https://x.example/", "to have it fetched, yield Request(url)"),
        (lambda _page: {"x": object()}, "the item's key 'x' holds an object"),
        (lambda _page: {"x": "\ud800"}, "the item"),
        (lambda _page: Retry, "is to be raised"),
        (lambda page: page.css("a["), "is not a valid CSS selector"),
        (lambda _page: Request("http://x.example/", data=object()), "data that JSON cannot hold"),
        (lambda _page: Request("http://x.example/", lane="nowhere"), "in the lane 'nowhere'"),
        (lambda _page: Request(cast(str, 5)), "must be a string"),
    ],
)
async def test_a_mistake_in_the_scraper_is_a_dead_letter_at_once(
    engine: SqliteEngine, site: HostileSite, give: Callable[[Page], object], says: str
) -> None:
    crawled = await mistaken(engine, site, give)
    letter = crawled.only_death
    assert says in letter.reason.text
    assert (letter.reason.blame, letter.attempts) == (Blame.HANDLER, 1)
    assert letter.reason.detail is not None
    assert "test_run_handler_errors.py:" in letter.reason.detail
    assert crawled.items == [{"kept": True}]


@pytest.mark.parametrize(
    "wrong",
    [
        {"group": 5},
        {"headers": {"X": 5}},
        {"method": "POST", "body": {"a": 1}, "dedup": False},
    ],
    ids=str,
)
async def test_a_request_that_no_store_can_hold_is_a_mistake_in_the_scraper(
    engine: SqliteEngine, site: HostileSite, wrong: dict[str, Any]
) -> None:
    crawled = await mistaken(engine, site, lambda _page: Request(site.url("/empty"), "detail", **wrong))
    assert crawled.only_death.reason.blame is Blame.HANDLER


@pytest.mark.parametrize("odd", [{"group": "\udc80"}, {"headers": {"X": "\udc80"}}, {"group": "g" * 5_000}], ids=str)
async def test_a_link_with_a_text_of_its_page_that_no_store_can_hold_is_refused(
    engine: SqliteEngine, site: HostileSite, odd: dict[str, Any]
) -> None:
    """It is the page's text, and not the scraper's mistake: the link is left out and counted, and the page is read."""
    crawled = await mistaken(engine, site, lambda _page: Request(site.url("/empty"), "detail", **odd))
    assert (crawled.dead, crawled.counters.refused) == ({}, 1)


async def test_a_stored_task_whose_handler_is_gone(engine: SqliteEngine, site: HostileSite) -> None:
    """The code has changed since it was enqueued. It is not even fetched, and the others are read."""
    url = site.url("/json")
    scraper = reader()
    await start_run(engine, scraper, urls=[site.url("/empty")])
    await engine.frontier.enqueue("run", [NewTask(url, site_of(url), dedup_key(url), handler="gone")])
    async with asyncio.timeout(10):
        await worker_for(engine, scraper).run()
    crawled = await result_of(engine)
    assert "has no handler 'gone'" in crawled.only_death.reason.text
    assert (crawled.counters.done, len(site.log)) == (1, 1)
