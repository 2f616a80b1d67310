"""Group commit: one transaction for many submissions, and what happens when it fails."""

from __future__ import annotations

import asyncio
import math

import pytest

from shoal.frontier.contract.jobs import ANY, Backlog
from shoal.frontier.sqlite.engine import SqliteEngine
from shoal.gateway.http.answer import Problem
from shoal.gateway.limits.keys import ANYBODY
from shoal.gateway.options import GatewayOptions
from shoal.gateway.service import GatewayService
from support.gateway_parts import Tap, shop_scraper, submit
from support.waiting import until


async def test_submissions_at_the_same_time_share_a_commit(service: GatewayService, tap: Tap) -> None:
    tap.gate.clear()
    waiting = [asyncio.create_task(submit(service, f"w{n}")) for n in range(300)]
    await until(lambda: sum(tap.groups) + len(service.submissions._waiting) == 300, "all 300 have come")
    tap.gate.set()
    job_ids = await asyncio.gather(*waiting)
    assert len(set(job_ids)) == 300
    assert len(await service.store.jobs.statuses(dict.fromkeys(job_ids, ANY))) == 300
    assert len(tap.groups) < 30, tap.groups


async def test_a_commit_that_hangs_is_the_only_one_in_doubt(engine: SqliteEngine, tap: Tap) -> None:
    service = GatewayService(engine, [shop_scraper()], GatewayOptions(store_patience=0.2))
    async with service.running():
        tap.gate.clear()
        first = asyncio.create_task(submit(service, "first"))
        await until(lambda: tap.groups, "a group is being committed")
        answers = await asyncio.gather(*(submit(service, f"w{n}") for n in range(20)), return_exceptions=True)
        assert all(isinstance(answer, Problem) and answer.status == 503 for answer in answers)
        with pytest.raises(Problem):
            await first
        with pytest.raises(Problem) as told:
            await submit(service, "late")
        assert told.value.kind == "store-unavailable", "at once, without waiting in vain"
        tap.gate.set()
        await until(lambda: service.submissions._committing_since == math.inf, "nothing is being committed")
        await submit(service, "after")
        (backlog,) = await service.store.jobs.backlogs()
        assert (tap.groups, backlog.unfinished) == ([1, 1], 2), "those who still waited were not created"


async def test_submissions_are_turned_away_before_they_pile_up(engine: SqliteEngine, tap: Tap) -> None:
    service = GatewayService(
        engine, [shop_scraper()], GatewayOptions(max_submissions=10, commit_at_once=5, store_patience=60)
    )
    async with service.running():
        status = await service.see(ANYBODY, await submit(service, "first"))
        tap.gate.clear()
        waiting = [asyncio.create_task(submit(service, f"w{n}")) for n in range(40)]
        await until(lambda: any(task.done() for task in waiting), "one is turned away")
        assert (await service.see(ANYBODY, status.job_id)).job_id == status.job_id, "reading goes on"
        tap.gate.set()
        answers = await asyncio.gather(*waiting, return_exceptions=True)
        turned_away = [answer for answer in answers if isinstance(answer, Problem)]
        assert {problem.kind for problem in turned_away} == {"overloaded"}
        assert 0 < len(turned_away) < 40
        assert max(tap.groups) <= 5


async def test_a_full_queue_takes_no_more(service: GatewayService) -> None:
    service.backlogs = {"jobs:shop": Backlog("jobs:shop", 500, 0)}
    with pytest.raises(Problem, match="500 jobs") as told:
        await submit(service, "w")
    assert (told.value.status, told.value.kind) == (503, "queue-full")
