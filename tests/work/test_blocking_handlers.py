"""Handlers that block: who it is gets said, and in a thread they hold up nothing."""

from __future__ import annotations

import asyncio
import inspect
import re
import threading
from collections.abc import Iterator, MutableMapping
from typing import Any

import pytest
from structlog.testing import capture_logs

from shoal.api.page import Page
from shoal.api.request import Request
from shoal.api.scraper import Scraper
from shoal.core import log_events
from shoal.core.outcome import Blame
from shoal.core.task import Policy
from shoal.delivery.options import LeaseTiming
from shoal.errors import BadScraper, Drop, Retry
from shoal.frontier.sqlite.engine import SqliteEngine
from shoal.testing.hostile_site import HostileSite
from shoal.work.options import WorkTiming
from support.working import crawl

AT_MOST = 20.0


def bare(*start: str | Request, **options: Any) -> Scraper:
    return Scraper("test", start=start, **{"delay": 0.0, "obey_robots": False, **options})


def blocked(logs: list[MutableMapping[str, Any]]) -> list[MutableMapping[str, Any]]:
    return [line for line in logs if line["event"] == log_events.LOOP_BLOCKED]


async def test_who_blocks_the_loop_is_named_while_it_does(engine: SqliteEngine, site: HostileSite) -> None:
    scraper = bare(Request(site.url("/json").replace("127", "me:secret@127"), "slow"))
    logs: list[MutableMapping[str, Any]]

    @scraper.page("slow")
    def slow(_page: Page) -> object:
        never = threading.Event()
        for _ in range(int(AT_MOST / 0.05)):
            never.wait(0.05)
            if blocked(logs):
                return {"seen": True}
        return None

    with capture_logs() as logs:
        crawled = await crawl(engine, scraper)
    assert crawled.items == [{"seen": True}]
    (line,) = blocked(logs)
    assert (line["scraper"], line["handler"], line["url"]) == ("test", "slow", site.url("/json"))
    first = inspect.getsourcelines(slow)[1]
    assert line["where"] in {f"test_blocking_handlers.py:{first + more} in slow" for more in range(3, 7)}


async def test_what_blocks_for_too_long_is_stopped_where_it_stands(engine: SqliteEngine, site: HostileSite) -> None:
    """Python, a sleep, and a regular expression, which lets no other thread run. Each costs its own page alone."""
    ways = ("loop", "sleep", "expression", "swallow")
    scraper = bare(
        *(Request(site.url(f"/json?{way}"), way) for way in ways),
        *(site.url(f"/json?{n}") for n in range(3)),
        concurrency=8, attempts=1,
    )  # fmt: skip

    @scraper.page("loop")
    def loop(_page: Page) -> None:
        while True:
            pass

    @scraper.page("sleep")
    async def sleep(_page: Page) -> None:
        threading.Event().wait(AT_MOST * 10)

    @scraper.page("expression")
    def expression(_page: Page) -> None:
        re.match(r"(a+)+b", "a" * 60)

    @scraper.page("swallow")
    def swallow(_page: Page) -> object:
        try:
            threading.Event().wait(AT_MOST * 10)
        except Exception:  # noqa: BLE001 - as handlers do
            return {"swallowed": True}
        return None

    @scraper.page
    def quick(page: Page) -> object:
        return {"url": page.url}

    crawled = await crawl(engine, scraper, max_block=1.0)
    assert (len(crawled.items), crawled.counters.done, crawled.counters.crashes) == (3, 3, 0)
    for way in ways:
        reason = crawled.dead[f"/json?{way}"].reason
        assert (reason.blame, reason.text) == (Blame.HANDLER, "held up its worker for more than 1 s and was stopped")
        assert str(reason.detail).startswith("test_blocking_handlers.py:")
        assert str(reason.detail).endswith(f" in {way}")


async def test_what_blocks_outside_of_its_handler_is_stopped_too(engine: SqliteEngine, site: HostileSite) -> None:
    scraper = bare(site.url("/json"), attempts=1, blocked=[r"^(([\s\S]+)+)+\x00$"])

    @scraper.page
    def quick(_page: Page) -> None: ...

    reason = (await crawl(engine, scraper, max_block=1.0)).only_death.reason
    assert (reason.blame, reason.text) == (Blame.HANDLER, "held up its worker for more than 1 s and was stopped")


async def test_the_loop_is_free_while_a_handler_blocks_in_a_thread(engine: SqliteEngine, site: HostileSite) -> None:
    """Two pages of one run: the first is read only when the second was."""
    scraper = bare(Request(site.url("/json"), "slow"), site.url("/empty"), concurrency=2)
    read = threading.Event()

    @scraper.page("slow", thread=True)
    def slow(page: Page) -> Iterator[object]:
        yield {"waited": read.wait(AT_MOST), "thread": threading.current_thread() is not threading.main_thread()}
        yield {"bytes": len(page.body) > 0}

    @scraper.page
    def quick(_page: Page) -> None:
        read.set()

    crawled = await crawl(engine, scraper)
    assert crawled.items == [{"waited": True, "thread": True}, {"bytes": True}]


async def test_leases_are_renewed_while_a_handler_blocks_in_a_thread(engine: SqliteEngine, site: HostileSite) -> None:
    """A lease of 300 ms, and a handler that blocks for four of them."""
    scraper = bare(site.url("/json"))

    @scraper.page(thread=True)
    def slow(_page: Page) -> object:
        return {"waited": threading.Event().wait(1.2)}

    timing = WorkTiming(leases=LeaseTiming(look_at_leases_every=0.02, sweep_every=0.05))
    crawled = await crawl(
        engine, scraper, policy=Policy(delay=0, lease=300, hard_timeout=100), timing=timing, workers=2
    )
    assert (len(crawled.items), len(site.log), crawled.counters.late) == (1, 1, 0)


@pytest.mark.parametrize(
    ("error", "ends"),
    [
        (ValueError("no price"), "ValueError: no price"),
        (StopIteration(), "StopIteration"),
        (SystemExit(3), "SystemExit: 3"),
        (Retry("not ready", after=0), "not ready"),
    ],
)
async def test_what_is_raised_in_a_thread_is_an_outcome_like_any_other(
    engine: SqliteEngine, site: HostileSite, error: BaseException, ends: str
) -> None:
    scraper = bare(site.url("/json"), attempts=2)

    @scraper.page(thread=True)
    def slow(_page: Page) -> object:
        raise error

    letter = (await crawl(engine, scraper)).only_death
    assert (letter.reason.blame, letter.reason.text) == (Blame.HANDLER, ends)
    assert isinstance(error, Retry) or "in slow" in str(letter.reason.traceback)


async def test_drop_and_what_is_to_be_awaited(engine: SqliteEngine, site: HostileSite) -> None:
    scraper = bare(site.url("/json"), Request(site.url("/empty"), "await"))

    @scraper.page(thread=True)
    def drop(_page: Page) -> object:
        raise Drop("sold out")

    @scraper.page("await", thread=True)
    def give(_page: Page) -> object:
        return asyncio.sleep(0)

    crawled = await crawl(engine, scraper)
    assert crawled.counters.dropped == 1
    assert "which cannot be with thread=True" in crawled.only_death.reason.text


def test_an_async_handler_needs_no_thread() -> None:
    scraper = bare()

    async def read(_page: Page) -> None: ...

    with pytest.raises(BadScraper, match="is async and cannot have thread=True"):
        scraper.page(thread=True)(read)
