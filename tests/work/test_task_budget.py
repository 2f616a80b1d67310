"""The pages that a job may have: links count as well, and what is over is refused and counted."""

from __future__ import annotations

import ipaddress

import msgspec
import pytest

from shoal.api.page import Page
from shoal.api.request import Request
from shoal.api.scraper import Scraper
from shoal.core.outcome import Done, Settlement
from shoal.core.task import Extra, NewTask, Policy
from shoal.core.url import dedup_key, site_of
from shoal.fetch.guard.rules import Guard
from shoal.frontier.contract.frontier import NewRun
from shoal.frontier.sqlite.engine import SqliteEngine
from shoal.testing.hostile_site import HostileSite
from shoal.work.store.task_budget import SHARE, TaskBudget
from support.working import result_of, worker_for

LOOPBACK = Guard((ipaddress.ip_network("127.0.0.0/8"),))


def greedy(site: HostileSite, links: int) -> Scraper:
    """Every page has so many links of its own."""
    scraper = Scraper("greedy", delay=0, concurrency=8, obey_robots=False)

    @scraper.page
    def read(page: Page) -> object:
        own = page.url.rpartition("/")[2]
        yield [Request(site.url(f"/empty/{own}-{number}")) for number in range(links)]

    return scraper


async def start(engine: SqliteEngine, site: HostileSite, most: int, *, guarded: bool = True) -> None:
    policy = Policy(delay=0, concurrency=8, max_tasks=most)
    await engine.frontier.create_run(NewRun("run", "greedy", policy))
    url = site.url("/empty/x")
    await engine.frontier.enqueue("run", [NewTask(url, site_of(url), dedup_key(url), extra=Extra(guarded=guarded))])
    await engine.frontier.seal_run("run")


async def test_one_page_cannot_fill_the_store(engine: SqliteEngine, site: HostileSite) -> None:
    await start(engine, site, 50)
    await worker_for(engine, greedy(site, 300), guard=LOOPBACK).run()
    counters = (await result_of(engine)).counters
    assert counters.accepted == 50
    assert counters.refused == 300 * 50 - 49, "all but those that the job may have"


async def test_many_pages_of_one_job_stay_within_its_budget(engine: SqliteEngine, site: HostileSite) -> None:
    await start(engine, site, 100)
    await worker_for(engine, greedy(site, 7), guard=LOOPBACK).run()
    counters = (await result_of(engine)).counters
    assert counters.accepted == 100
    assert counters.accepted + counters.refused == 1 + 7 * 100


class CountedReader:
    """A reader of a store that counts how often it is asked for a run."""

    def __init__(self, engine: SqliteEngine) -> None:
        self.engine = engine
        self.asked = 0

    async def run(self, run_id: str) -> object:
        self.asked += 1
        return await self.engine.reader.run(run_id)


@pytest.mark.parametrize("most", [0, 1000])
async def test_the_store_is_asked_seldom(engine: SqliteEngine, most: int) -> None:
    await engine.frontier.create_run(NewRun("run", "greedy", Policy(max_tasks=most)))
    reader = CountedReader(engine)
    budget = TaskBudget(reader)  # type: ignore[arg-type]
    for token in range(500):
        assert await budget.room("run", 1) == 1
        budget.take("run", 1, token)
        budget.heard([Settlement("run", 1, token, Done())])
    assert reader.asked <= (1 if not most else 1 + 500 // (most // SHARE))


async def test_what_is_on_its_way_counts(engine: SqliteEngine) -> None:
    await engine.frontier.create_run(NewRun("run", "greedy", Policy(max_tasks=100)))
    budget = TaskBudget(engine.reader)
    rooms = []
    for token in range(64):
        rooms.append(await budget.room("run", 90))
        budget.take("run", rooms[-1], token)
    assert sum(rooms) == 100, "however many pages are read at once"
    assert await budget.room("unknown", 5) == 5


def test_a_policy_without_a_limit_is_stored_as_before() -> None:
    assert b"max_tasks" not in msgspec.json.encode(Policy())
