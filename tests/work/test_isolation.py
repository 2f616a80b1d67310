"""Handlers in processes of their own: they give what they would give here, and are killed when they do not end."""

from __future__ import annotations

import os
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import psutil
import pytest
from structlog.testing import capture_logs

from shoal.api.request import Request
from shoal.api.scraper import Scraper
from shoal.config.target import load_scraper
from shoal.core import log_events
from shoal.core.outcome import Blame
from shoal.core.task import NewTask
from shoal.errors import BadScraper
from shoal.fetch.guard.rules import Guard
from shoal.frontier.contract.frontier import NewRun
from shoal.frontier.sqlite.engine import SqliteEngine
from shoal.intake.admission import admit
from shoal.testing.hostile_site import HostileSite
from shoal.work.options import IsolationOptions
from support.working import Crawled, crawl, reader, result_of, worker_for

SCRAPER = """
import asyncio, os, re, sys, threading
from dataclasses import dataclass
from pathlib import Path
from shoal import Drop, Page, Request, Retry, Scraper

here = Scraper("here", delay=0, concurrency=16, obey_robots=False, isolate=True, max_same_errors=0)

@dataclass
class Product:
    title: str | None

@here.page
def listing(page: Page):
    yield Product(page.text("h1"))
    yield page.follow("a", to="detail", data={"from": page.url})

@here.page("detail")
async def detail(page: Page):
    await asyncio.sleep(0)
    yield {"h1": page.text("h1"), "data": page.data, "depth": page.depth, "group": page.group, "to": page.request.to}

@here.page("where")
def where(page: Page):
    return {"pid": os.getpid(), "secret": os.environ.get("SHOAL_ENGINE"), "type": page.headers["content-type"],
            "status": page.status, "unchanged": page.unchanged, "xpath": page.xpath("//h1").get()}

@here.page("hang")
def hang(page: Page):
    re.match(r"(a+)+b", "a" * 60)

@here.page("sleep")
async def sleep(page: Page):
    await asyncio.sleep(3600)

@here.page("parse")
def parse(page: Page):
    return {"p": page.text("p")}

@here.page("eat")
def eat(page: Page):
    return {"held": len(bytearray(1 << 31))}

@here.page("die")
def die(page: Page):
    os.kill(os.getpid(), 11)

@here.page("exit")
def leave(page: Page):
    sys.exit(3)

@here.page("lie")
def lie(page: Page):
    os.write(int(sys.argv[1]), (10).to_bytes(8, "little") + b"0123456789")

@here.page("raise")
def fail(page: Page):
    return page.text("h1").price

@here.page("drop")
def drop(page: Page):
    raise Drop("sold out")

@here.page("retry")
def retry(page: Page):
    raise Retry("not yet", after=0)

@here.page("odd")
def odd(page: Page):
    yield Request(page.url + "?odd", data={"x": object()})

@here.page("label")
def label(page: Page):
    yield Request(page.url + "?label", "nobody")
"""
SHORT = IsolationOptions(timeout=4.0, memory=256 * 2**20)


def line_of(code: str) -> int:
    return SCRAPER[: SCRAPER.index(code)].count("\n") + 1


@pytest.fixture
def scraper(tmp_path: Path) -> Scraper:
    file = tmp_path / "here.py"
    file.write_text(SCRAPER)
    return load_scraper(str(file))


def children() -> list[psutil.Process]:
    """The handler processes of this one."""
    return [child for child in psutil.Process().children() if "shoal.work.isolation.child" in " ".join(child.cmdline())]


async def crawl_job(engine: SqliteEngine, scraper: Scraper, *requests: Request, **options: Any) -> Crawled:
    """A run whose tasks a web client has asked for."""
    await engine.frontier.create_run(NewRun("run", scraper.name, scraper.policy()))
    tasks = [admit(request, scraper, guarded=True) for request in requests]
    await engine.frontier.enqueue("run", [task for task in tasks if isinstance(task, NewTask)])
    await engine.frontier.seal_run("run")
    await worker_for(engine, scraper, guard=Guard((ip_network("127.0.0.0/8"),)), **options).run()
    return await result_of(engine)


async def test_an_isolated_handler_gives_what_it_gives_here(
    engine: SqliteEngine, site: HostileSite, scraper: Scraper
) -> None:
    scraper.start_urls = (Request(site.url("/site/5/"), group="a"),)
    apart = await crawl(engine, scraper, "apart")
    assert children() == []
    scraper.isolate = False
    here = await crawl(engine, scraper, "here")
    by_title = sorted(here.items, key=str)
    assert sorted(apart.items, key=str) == by_title
    assert apart.counters == here.counters
    assert by_title[0] == {
        "h1": by_title[0]["h1"], "data": {"from": site.url("/site/5/")}, "depth": 1, "group": "a", "to": "detail",
    }  # fmt: skip


async def test_what_does_not_end_well_costs_its_own_task_and_no_other(
    engine: SqliteEngine, site: HostileSite, scraper: Scraper
) -> None:
    """Regular expressions, sleep, memory, signals, lies and pages that are quadratic to parse, all at once."""
    failing = ("hang", "sleep", "eat", "die", "exit", "lie", "raise", "drop", "retry", "odd", "label")
    scraper.attempts = 1
    scraper.start_urls = (
        *(Request(site.url(f"/site/3/?{name}"), name) for name in failing),
        Request(site.url("/complex/quoted-attributes"), "parse"),
        Request(site.url("/complex/nested"), "parse"),
        *(Request(site.url(f"/site/3/?{n}"), "detail") for n in range(20)),
    )
    crawled = await crawl(engine, scraper, isolation=SHORT)
    reasons = {path.rpartition("?")[2]: letter.reason for path, letter in crawled.dead.items()}
    for name, reason in reasons.items():
        print(f"{name}: {reason.text} ({reason.detail})")
    too_long = "took longer than 4 s and was stopped"
    assert (reasons["hang"].text, reasons["hang"].detail) == (too_long, f"here.py:{line_of('re.match')} in hang")
    assert reasons["sleep"].text == reasons["/complex/quoted-attributes"].text == too_long
    parsing = line_of('page.text("p")')
    assert reasons["/complex/quoted-attributes"].detail == f"here.py:{parsing} in parse"
    assert reasons["/complex/nested"].blame is Blame.URL
    assert "too complex" in reasons["/complex/nested"].text
    assert "MemoryError" in reasons["eat"].text
    assert reasons["die"].text == "its process has died (signal SIGSEGV)"
    assert reasons["exit"].text == "SystemExit: 3"
    assert "answer that cannot be used" in reasons["lie"].text
    assert reasons["raise"].text == "AttributeError: 'str' object has no attribute 'price'"
    assert "return page.text" in str(reasons["raise"].traceback)
    assert reasons["retry"].text == "not yet"
    assert "cannot be sent on" in reasons["odd"].text
    assert "no handler 'nobody'" in reasons["label"].text
    assert {reason.blame for name, reason in reasons.items() if "nested" not in name} == {Blame.HANDLER}
    assert (crawled.counters.done, crawled.counters.dropped, crawled.counters.dead) == (20, 1, 12)
    assert children() == []


async def test_what_hangs_every_time_is_given_up_after_three(
    engine: SqliteEngine, site: HostileSite, scraper: Scraper
) -> None:
    scraper.start_urls = (Request(site.url("/json"), "hang"),)
    crawled = await crawl(engine, scraper, isolation=IsolationOptions(timeout=0.2))
    assert (crawled.only_death.attempts, len(site.log)) == (3, 3)


async def test_what_a_page_said_last_time_is_known_there_too(
    engine: SqliteEngine, site: HostileSite, scraper: Scraper
) -> None:
    scraper.changes = True
    scraper.start_urls = (Request(site.url("/site/3/"), "where"),)
    for run, unchanged in (("one", False), ("two", True)):
        (item,) = (await crawl(engine, scraper, run)).items
        assert (item["unchanged"], item["status"]) == (unchanged, 200)
        assert item["xpath"].startswith("<h1>")


async def test_pages_of_web_clients_are_read_apart_and_without_the_settings(
    engine: SqliteEngine, site: HostileSite, scraper: Scraper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOAL_ENGINE", "postgresql://me:secret@store/")
    scraper.isolate = False
    (item,) = (await crawl_job(engine, scraper, Request(site.url("/site/3/"), "where"))).items
    assert item["pid"] != os.getpid()
    assert item["secret"] is None


async def test_pages_of_web_clients_are_read_here_if_the_settings_say_so(
    engine: SqliteEngine, site: HostileSite, scraper: Scraper
) -> None:
    scraper.isolate = False
    request = Request(site.url("/site/3/"), "where")
    (item,) = (await crawl_job(engine, scraper, request, isolation=IsolationOptions(jobs=False))).items
    assert item["pid"] == os.getpid()


async def test_a_scraper_that_no_other_process_can_load(engine: SqliteEngine, site: HostileSite) -> None:
    """It is refused if it asks for it; jobs of one that does not are read here, and that is said."""
    with pytest.raises(BadScraper, match="'test' has isolate=True, but no other process could load it: make it at the"):
        worker_for(engine, reader(isolate=True))
    with capture_logs() as logs:
        crawled = await crawl_job(engine, reader(), *(Request(site.url(f"/json?{n}")) for n in range(3)))
    assert len(crawled.items) == 3
    assert [line["scraper"] for line in logs if line["event"] == log_events.ISOLATION_MISSING] == ["test"]
