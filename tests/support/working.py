"""Crawls inside the test's own process: an engine in a file, the hostile site, and workers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from shoal.api.page import Page
from shoal.api.scraper import Scraper
from shoal.core.task import Policy
from shoal.frontier.contract.engine import Engine
from shoal.frontier.contract.frontier import Counters, NewRun, Run
from shoal.frontier.contract.reader import DeadLetter, Item
from shoal.frontier.sqlite.engine import SqliteEngine, open_sqlite
from shoal.runs.seeding import Seeded, seed
from shoal.work.options import WorkerOptions, WorkTiming
from shoal.work.worker import Worker

AGENT = "ShoalTest/1.0"
PATIENCE = 120.0

QUICK = WorkTiming(retry_first=5)
"""Retries come after a few milliseconds."""


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[SqliteEngine]:
    """An engine in a file of its own."""
    engine = await open_sqlite(folder / "shoal.db")
    try:
        yield engine
    finally:
        await engine.close()


@dataclass(frozen=True, slots=True)
class Crawled:
    """What a run has come to. `dead`: by path of the URL."""

    run: Run
    stored: Sequence[Item]
    dead: dict[str, DeadLetter]
    seeded: Seeded

    @property
    def counters(self) -> Counters:
        return self.run.counters

    @property
    def items(self) -> list[dict[str, Any]]:
        return [msgspec.json.decode(item.body) for item in self.stored]

    @property
    def only_death(self) -> DeadLetter:
        (letter,) = self.dead.values()
        return letter


def reader(name: str = "test", **options: Any) -> Scraper:
    """A scraper that follows nothing and says what it read. Without a delay unless told otherwise."""
    scraper = Scraper(name, **{"delay": 0.0, "obey_robots": False, **options})

    @scraper.page
    def read(page: Page) -> dict[str, object]:
        return {"url": page.url, "status": page.status, "h1": page.text("h1"), "bytes": len(page.body)}

    return scraper


async def start_run(
    engine: Engine,
    scraper: Scraper,
    run_id: str = "run",
    *,
    urls: Iterable[str] | None = None,
    policy: Policy | None = None,
) -> Seeded:
    """Seed a run, if need be under rules of its own."""
    if policy is not None:
        await engine.frontier.create_run(NewRun(run_id, scraper.name, policy))
    return await seed(engine, scraper, run_id, urls=urls)


def worker_for(engine: Engine, scraper: Scraper, *, drain: bool = True, **options: Any) -> Worker:
    options.setdefault("timing", QUICK)
    return Worker(engine, [scraper], WorkerOptions(user_agent=AGENT, drain=drain, **options), seed=1)


async def crawl(
    engine: Engine,
    scraper: Scraper,
    run_id: str = "run",
    *,
    urls: Iterable[str] | None = None,
    workers: int = 1,
    policy: Policy | None = None,
    **options: Any,
) -> Crawled:
    """Seed a run, have it worked on until nothing is left, and read what it has come to."""
    seeded = await start_run(engine, scraper, run_id, urls=urls, policy=policy)
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        for _ in range(workers):
            group.create_task(worker_for(engine, scraper, **options).run())
    return await result_of(engine, run_id, seeded)


async def result_of(engine: Engine, run_id: str = "run", seeded: Seeded | None = None) -> Crawled:
    stored: list[Item] = []
    cursor: int | None = 0
    while cursor is not None:
        page = await engine.reader.items(run_id, cursor)
        stored.extend(page.items)
        cursor = page.cursor
    dead = {f"/{letter.url.split('/', 3)[3]}": letter for letter in await engine.reader.dead(run_id)}
    return Crawled(await engine.reader.run(run_id), stored, dead, seeded or Seeded())
