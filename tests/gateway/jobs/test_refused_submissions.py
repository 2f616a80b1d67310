"""A group of submissions that the store refuses: the culprit alone is told so. And jobs that have had their time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest
from structlog.testing import capture_logs

from shoal.core import log_events
from shoal.errors import Unstorable
from shoal.frontier.contract.jobs import JobState, NewJob, Submitted
from shoal.frontier.sqlite.engine import SqliteEngine
from shoal.gateway.http.answer import Problem
from shoal.gateway.limits.keys import ANYBODY
from shoal.gateway.options import GatewayOptions
from shoal.gateway.service import GatewayService
from support.gateway_parts import Tap, shop_scraper, submit
from support.waiting import until


class Picky(Tap):
    """Refuses every transaction with a job for one of these words, with this error."""

    def __init__(self, engine: SqliteEngine, error: Exception) -> None:
        super().__init__(engine)
        self.error = error

    async def submit(self, jobs: Sequence[NewJob]) -> Sequence[Submitted]:
        if not any(_is_odd(job) for job in jobs):
            return await super().submit(jobs)
        self.groups.append(len(jobs))
        await self.gate.wait()
        raise self.error


def _is_odd(job: NewJob) -> bool:
    return any(task.url.endswith("/odd") for task in job.tasks)


@pytest.fixture(params=[Unstorable("The store does not hold such a value."), ValueError("who knows")], ids=str)
def picky(request: pytest.FixtureRequest, engine: SqliteEngine) -> Picky:
    made = Picky(engine, request.param)
    engine.jobs = made  # type: ignore[assignment]
    return made


@pytest.fixture
async def picked(engine: SqliteEngine, picky: Picky) -> AsyncIterator[GatewayService]:
    service = GatewayService(engine, [shop_scraper()], GatewayOptions(store_patience=60))
    async with service.running():
        yield service


async def test_the_culprit_alone_is_refused_and_the_others_are_stored(picked: GatewayService, picky: Picky) -> None:
    picky.gate.clear()
    words = [f"w{n}" for n in range(30)]
    words[17] = "odd"
    with capture_logs() as lines:
        waiting = [asyncio.create_task(submit(picked, word)) for word in words]
        await until(lambda: sum(picky.groups) + len(picked.submissions._waiting) == 30, "all have come")
        picky.gate.set()
        answers = await asyncio.gather(*waiting, return_exceptions=True)
    refused = answers.pop(17)
    assert isinstance(refused, Problem)
    expected = (422, "unstorable") if isinstance(picky.error, Unstorable) else (500, "internal-error")
    assert (refused.status, refused.kind) == expected
    assert len({str(answer) for answer in answers}) == 29
    assert not any(isinstance(answer, BaseException) for answer in answers)
    assert [line["event"] for line in lines] == [log_events.SUBMISSION_UNSTORABLE]
    assert picked.breaker.trouble is None, "the store is well, and nobody else is turned away"


async def test_an_error_that_nobody_has_foreseen_ends_no_loop(service: GatewayService, tap: Tap) -> None:
    tap.trouble = ValueError("who knows")
    with capture_logs() as lines:
        await until(
            lambda: any(line["event"] == log_events.BACKGROUND_FAILED for line in lines), "a loop has failed, by name"
        )
        tap.trouble = None
        assert await until(lambda: _submitted(service), "jobs are taken again")


async def _submitted(service: GatewayService) -> str | None:
    try:
        return await submit(service, "after")
    except Problem:
        return None


async def test_a_job_that_has_had_its_time_fails_with_that_reason(engine: SqliteEngine) -> None:
    service = GatewayService(engine, [shop_scraper()], GatewayOptions(deadline=0.5))
    async with service.running():
        job_id = await submit(service, "slow")
        status = await service.see(ANYBODY, job_id)
        assert status.state is JobState.QUEUED
        status = await service.wait(ANYBODY, status, None, 60)
    assert status.state is JobState.FAILED
    assert status.error == "It had not ended 0.5 seconds after it came, which is as long as a job may take here."
