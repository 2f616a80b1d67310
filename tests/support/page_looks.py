"""A scraper that says what it sees of each page, and what the target and the record of changes know of its visits."""

from __future__ import annotations

import asyncio
from ipaddress import ip_network
from typing import Any

import aiohttp

from shoal.api.page import Page
from shoal.api.request import Request
from shoal.api.scraper import Scraper
from shoal.core.task import NewTask
from shoal.fetch.guard.rules import Guard
from shoal.frontier.contract.engine import Engine
from shoal.frontier.contract.frontier import NewRun
from shoal.insight.changes import changes_since
from shoal.intake.admission import to_task
from shoal.testing.hostile_site import HostileSite
from support.working import Crawled, crawl, result_of, worker_for


def looking(name: str = "look", **options: Any) -> Scraper:
    """A scraper that says what it sees of each page."""
    scraper = Scraper(name, **{"delay": 0.0, "obey_robots": False, **options})

    @scraper.page
    def look(page: Page) -> dict[str, Any]:
        return {"url": page.url, "status": page.status, "h1": page.text("h1"), "unchanged": page.unchanged}

    return scraper


async def visit(engine: Engine, scraper: Scraper, run: str, *starts: str | Request) -> Crawled:
    scraper.start_urls = starts
    return await crawl(engine, scraper, run)


async def seen(engine: Engine, scraper: Scraper, run: str, *starts: str | Request) -> list[tuple[Any, Any]]:
    """What the pages of a visit said, and whether that was known."""
    return [(item["h1"], item["unchanged"]) for item in (await visit(engine, scraper, run, *starts)).items]


def asked(site: HostileSite, path: str) -> list[int]:
    """The statuses that a path was answered with, as the target knows them."""
    return [entry.status for entry in site.log if entry.path == path]


async def change(site: HostileSite, name: str) -> None:
    async with aiohttp.ClientSession() as session, session.get(site.url(f"/change/{name}")) as answer:
        assert answer.status == 200


async def recorded(engine: Engine, scraper: str = "look") -> list[tuple[str, str]]:
    """The record of changes: kind and path."""
    found = await changes_since(engine.reader, [scraper])
    return [(change.kind.value, f"/{change.url.split('/', 3)[3]}") for change in found.changes]


LOCAL = Guard([ip_network("127.0.0.0/8")])


async def run_job(engine: Engine, scraper: Scraper, run: str, *urls: str) -> Crawled:
    """Tasks as the gateway makes them: guarded, with cookies of their own."""
    await engine.frontier.create_run(NewRun(run, scraper.name, scraper.policy()))
    for number, url in enumerate(urls):
        task = to_task(Request(url, priority=-number), scraper, guarded=True)
        assert isinstance(task, NewTask)
        await engine.frontier.enqueue(run, [task])
    await engine.frontier.seal_run(run)
    async with asyncio.timeout(30):
        await worker_for(engine, scraper, guard=LOCAL).run()
    return await result_of(engine, run)
