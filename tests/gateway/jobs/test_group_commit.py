"""Group commit: one transaction for many submissions, and what happens when it fails."""

from __future__ import annotations

import asyncio
import math

import pytest

from shoal.core.clock import SystemClock
from shoal.core.task import NewTask, Policy
from shoal.frontier.contract.frontier import NewRun
from shoal.frontier.contract.jobs import ANY, Backlog, NewJob
from shoal.frontier.sqlite.engine import SqliteEngine
from shoal.gateway.http.answer import Problem
from shoal.gateway.jobs.group_commit import GroupCommit
from shoal.gateway.limits.keys import ANYBODY
from shoal.gateway.limits.store_breaker import StoreBreaker
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


async def test_between_two_large_jobs_small_ones_are_committed(engine: SqliteEngine, tap: Tap) -> None:
    """Of those who submit many, one at a time; whoever submits little comes next."""
    commits = GroupCommit(tap, StoreBreaker(engine.reader.now, 60), GatewayOptions(store_patience=60), SystemClock())
    running = asyncio.ensure_future(commits.run())
    tap.gate.clear()
    first = asyncio.create_task(commits.submit(job_of("first", 1), "a"))
    await until(lambda: tap.groups, "a group is being committed")
    orders = [*(("a", f"a{n}", 2000) for n in range(3)), ("b", "b0", 2000)]
    orders += [("a", f"small{n}", 1) for n in range(3)] + [("c", "small", 1)]
    waiting = [asyncio.create_task(commits.submit(job_of(name, size), client)) for client, name, size in orders]
    await until(lambda: len(commits._waiting) + len(commits._large) == len(orders), "all have come")
    tap.gate.set()
    await asyncio.gather(first, *waiting)
    assert tap.groups == [1, 1, 4, 1, 1, 1], "a large one, all small ones, then the other large ones"
    assert tap.named[1:2] + tap.named[6:] == ["a0", "b0", "a1", "a2"]
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def job_of(name: str, size: int) -> NewJob:
    run = NewRun(name, "shop", Policy(), queue="jobs:shop")
    return NewJob(run, [NewTask(f"https://shop.example/{name}/{n}", "shop.example", None) for n in range(size)])


async def test_who_submits_most_is_turned_away_first(engine: SqliteEngine, tap: Tap) -> None:
    options = GatewayOptions(max_submissions=6, store_patience=60)
    commits = GroupCommit(tap, StoreBreaker(engine.reader.now, 60), options, SystemClock())
    running = asyncio.ensure_future(commits.run())
    tap.gate.clear()
    first = asyncio.create_task(commits.submit(job_of("first", 1), "x"))
    await until(lambda: tap.groups, "a group is being committed")
    greedy = [asyncio.create_task(commits.submit(job_of(f"g{n}", 1), "greedy")) for n in range(6)]
    await until(lambda: len(commits._waiting) == 6, "there is no more room")
    commits.check()
    commits.check("modest")
    with pytest.raises(Problem, match="More jobs"):
        commits.check("greedy")
    modest = [asyncio.create_task(commits.submit(job_of(f"m{n}", 1), "modest")) for n in range(2)]
    await until(lambda: sum(task.done() for task in greedy) == 2, "two of the greedy one's have given way")
    tap.gate.set()
    await asyncio.gather(first, *modest)
    answers = await asyncio.gather(*greedy, return_exceptions=True)
    assert [isinstance(answer, Problem) for answer in answers] == [False] * 4 + [True] * 2
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
