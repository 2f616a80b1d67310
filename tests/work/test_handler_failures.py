"""What a failure of a handler leaves behind: where it was, its traceback, and how often the page was fetched."""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from structlog.testing import capture_logs

from shoal.api.page import Page
from shoal.api.scraper import Scraper
from shoal.core import log_events
from shoal.core.outcome import Blame, Reason
from shoal.core.task import Extra, NewTask, RunState
from shoal.core.url import dedup_key, site_of
from shoal.errors import Retry
from shoal.frontier.sqlite.engine import SqliteEngine
from shoal.testing.hostile_site import HostileSite
from shoal.work.process.run_halts import halt_of
from shoal.work.task.failure_report import MOST_BYTES
from support.working import crawl, result_of, start_run, worker_for

PRICES = """\
def price(text):
    return amount(text, "hunter2")


def amount(text, secret):
    words = {"password": secret}
    return float(text.strip("£")) if words else None
"""


def scraper(*urls: str, **options: Any) -> Scraper:
    return Scraper("test", start=urls, **{"delay": 0.0, "obey_robots": False, **options})


@pytest.fixture
def prices(tmp_path: Path) -> Iterator[ModuleType]:
    """A module of the user's own, beside the scraper."""
    file = tmp_path / "prices.py"
    file.write_text(PRICES)
    spec = importlib.util.spec_from_file_location("prices", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.modules.pop("prices", None)


async def reason_of(engine: SqliteEngine, failing: Scraper) -> Reason:
    return (await crawl(engine, failing)).only_death.reason


# Where


async def test_the_place_is_the_innermost_line_of_the_users_own_code(
    engine: SqliteEngine, site: HostileSite, prices: ModuleType
) -> None:
    shop = scraper(site.url("/json"))

    @shop.page
    def book(_page: Page) -> Iterator[object]:
        yield {"price": prices.price("£ twelve")}

    line = inspect.getsourcelines(book)[1] + 2
    reason = await reason_of(engine, shop)
    assert reason.detail == f"prices.py:7 in amount, from test_handler_failures.py:{line} in book"


async def test_the_place_of_a_wrong_yield_is_the_yield(engine: SqliteEngine, site: HostileSite) -> None:
    shop = scraper(site.url("/json"))

    @shop.page
    def book(_page: Page) -> Iterator[object]:
        yield {"fine": True}
        yield 42

    line = inspect.getsourcelines(book)[1] + 3
    assert (await reason_of(engine, shop)).detail == f"test_handler_failures.py:{line} in book"


async def test_the_place_of_what_cannot_be_told_is_the_def_and_not_the_decorator(
    engine: SqliteEngine, site: HostileSite
) -> None:
    shop = scraper(site.url("/json"))

    @shop.page
    def book(_page: Page) -> object:
        return 42

    line = inspect.getsourcelines(book)[1] + 1
    assert (await reason_of(engine, shop)).detail == f"test_handler_failures.py:{line} in book"


# The traceback


async def test_the_dead_letter_keeps_the_traceback_without_our_frames_and_without_variables(
    engine: SqliteEngine, site: HostileSite, prices: ModuleType
) -> None:
    shop = scraper(site.url("/json"))

    @shop.page
    def book(_page: Page) -> object:
        return {"price": prices.price("£ twelve")}

    with capture_logs() as logs:
        kept = (await reason_of(engine, shop)).traceback
    assert kept is not None
    lines = kept.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-1] == "ValueError: could not convert string to float: ' twelve'"
    assert [line.split('"')[1].rpartition("/")[2] for line in lines if line.startswith("  File ")] == [
        "test_handler_failures.py", "prices.py", "prices.py",
    ]  # fmt: skip
    assert '    return float(text.strip("£")) if words else None' in lines
    assert "password" not in kept
    (report,) = [entry for entry in logs if entry["event"] == log_events.TASK_DEAD]
    assert report["exception"] == kept


async def test_what_was_raised_because_of_another_error_shows_both(engine: SqliteEngine, site: HostileSite) -> None:
    shop = scraper(site.url("/json"))

    @shop.page
    def book(_page: Page) -> object:
        try:
            return {"title": "x"}["price"]
        except KeyError as error:
            raise ValueError("no price") from error

    kept = (await reason_of(engine, shop)).traceback
    assert kept is not None
    assert "KeyError: 'price'\n\nThe above exception was the direct cause" in kept
    assert kept.endswith("\nValueError: no price")


def even(number: int) -> None:
    odd(number - 1)


def odd(number: int) -> None:
    even(number - 1)


async def test_a_traceback_is_bounded(engine: SqliteEngine, site: HostileSite) -> None:
    """Its last lines are kept. However deep the stack, long the message and many the causes."""
    shop = scraper(site.url("/json"))

    @shop.page
    def book(_page: Page) -> None:
        try:
            even(0)
        except RecursionError as error:
            raise ValueError("é" * 10**6) from error

    reason = await reason_of(engine, shop)
    kept = reason.traceback
    assert kept is not None
    assert len(kept.encode()) <= MOST_BYTES
    assert "ValueError: éé" in kept
    assert " in book" in kept


async def test_only_handlers_have_one(engine: SqliteEngine, site: HostileSite) -> None:
    shop = scraper(site.url("/status/404"))
    shop.page(lambda _page: None)
    assert (await reason_of(engine, shop)).traceback is None


# Fetching again


async def test_an_error_of_the_handler_is_a_dead_letter_at_once(engine: SqliteEngine, site: HostileSite) -> None:
    shop = scraper(site.url("/json"), attempts=3)

    @shop.page
    def book(_page: Page) -> object:
        raise ValueError("no price")

    letter = (await crawl(engine, shop)).only_death
    assert (letter.reason.blame, letter.attempts, len(site.log)) == (Blame.HANDLER, 1, 1)


@pytest.mark.parametrize("error", [ValueError("no price"), Retry("not ready")], ids=["asked for", "raise Retry"])
async def test_a_page_is_fetched_again_where_that_is_asked_for(
    engine: SqliteEngine, site: HostileSite, error: Exception
) -> None:
    shop = scraper(site.url("/json"), attempts=3, retry_handler_errors=isinstance(error, ValueError))

    @shop.page
    def book(_page: Page) -> object:
        raise error

    letter = (await crawl(engine, shop)).only_death
    assert (letter.attempts, len(site.log)) == (3, 3)


# All in the same way


def broken(site: HostileSite, pages: int = 40, **options: Any) -> Scraper:
    shop = scraper(*(site.url(f"/site/{pages}/p/{number}") for number in range(pages)), **options)

    @shop.page
    def book(_page: Page) -> object:
        raise ValueError("no price")

    return shop


async def test_a_run_whose_first_pages_fail_in_the_same_way_is_paused(engine: SqliteEngine, site: HostileSite) -> None:
    with capture_logs() as logs:
        crawled = await crawl(engine, broken(site, max_same_errors=5), queues=("run",), concurrency=2)
    counters = crawled.counters
    assert crawled.run.state is RunState.PAUSED
    assert 5 <= counters.dead <= 7, "those that were in flight may have been read"
    assert (counters.waiting, counters.leased) == (40 - counters.dead, 0)
    halt = await halt_of(engine.reader, engine.cache, "run")
    assert halt is not None
    assert halt.sentence.startswith("The first 5 pages all failed in the handler in the same way: ValueError: no price")
    (line,) = [entry for entry in logs if entry["event"] == log_events.RUN_HALTED]
    assert (line["run"], line["pages"], line["where"]) == ("run", 5, halt.where)


async def test_a_second_worker_of_the_run_ends_as_well(engine: SqliteEngine, site: HostileSite) -> None:
    crawled = await crawl(engine, broken(site, 60, max_same_errors=5, delay=0.02), queues=("run",), workers=2)
    assert crawled.run.state is RunState.PAUSED


async def test_a_run_of_which_a_page_was_read_goes_on(engine: SqliteEngine, site: HostileSite) -> None:
    shop = scraper(site.url("/json"), *(site.url(f"/site/20/p/{n}") for n in range(20)), max_same_errors=3)

    @shop.page
    def book(page: Page) -> object:
        if page.url.endswith("/json"):
            return {"read": True}
        raise ValueError("no price")

    crawled = await crawl(engine, shop, queues=("run",), concurrency=1)
    assert (crawled.run.state, crawled.counters.dead) == (RunState.FINISHED, 20)


async def test_failures_of_several_kinds_are_no_reason_to_stop(engine: SqliteEngine, site: HostileSite) -> None:
    shop = scraper(*(site.url(f"/site/20/p/{n}") for n in range(20)), max_same_errors=11)

    @shop.page
    def book(page: Page) -> object:
        if int(page.url.rpartition("/")[2]) % 2:
            raise ValueError("odd")
        raise KeyError("even")

    assert (await crawl(engine, shop, queues=("run",))).run.state is RunState.FINISHED


@pytest.mark.parametrize("most", [0, 20])
async def test_a_run_that_has_no_more_pages_ends_as_any_other(
    engine: SqliteEngine, site: HostileSite, most: int
) -> None:
    crawled = await crawl(engine, broken(site, 20, max_same_errors=most), queues=("run",))
    assert (crawled.run.state, crawled.counters.dead) == (RunState.FINISHED, 20)


@pytest.mark.parametrize("guarded", [False, True], ids=["a run", "a job"])
async def test_tasks_whose_handler_is_gone_pause_a_run_and_never_a_job(
    engine: SqliteEngine, site: HostileSite, guarded: bool
) -> None:
    """The code has changed: nothing is fetched, and nothing more is burned. But a client waits for the end of a job."""
    shop = broken(site, 1, max_same_errors=5)
    await start_run(engine, shop, urls=[])
    urls = [site.url(f"/site/30/p/{number}") for number in range(30)]
    extra = Extra(guarded=guarded)
    tasks = [NewTask(url, site_of(url), dedup_key(url), handler="gone", extra=extra) for url in urls]
    await engine.frontier.enqueue("run", tasks)
    async with asyncio.timeout(20):
        await worker_for(engine, shop, queues=("run",), concurrency=1).run()
    crawled = await result_of(engine)
    assert len(site.log) == 0
    assert crawled.run.state is (RunState.FINISHED if guarded else RunState.PAUSED)
    assert guarded or crawled.counters.dead <= 7
