"""A circuit breaker: a store that fails is left alone until it is back."""

from __future__ import annotations

import asyncio
import time

import pytest

from shoal.errors import EngineUnavailable
from shoal.gateway.http.answer import Problem
from shoal.gateway.limits.keys import ANYBODY
from shoal.gateway.limits.store_breaker import within
from shoal.gateway.service import GatewayService
from support.gateway_parts import Tap, submit
from support.waiting import until


async def test_a_store_that_fails_is_asked_no_more_until_it_is_back(service: GatewayService, tap: Tap) -> None:
    job_id = await submit(service, "w")
    tap.trouble = EngineUnavailable("it is gone")
    with pytest.raises(Problem, match="store") as told:
        await service.see(ANYBODY, job_id)
    assert told.value.status == 503
    assert "gone" not in str(told.value), "what the engine says is for the log"
    number = len(tap.reads)
    for _ in range(50):
        with pytest.raises(Problem):
            await service.see(ANYBODY, job_id)
        with pytest.raises(Problem):
            await submit(service, "x")
    assert (len(tap.reads), tap.groups) == (number, [1])
    tap.trouble = None
    await until(lambda: service.breaker.trouble is None, "the store is back")
    assert (await service.see(ANYBODY, job_id)).job_id == job_id


async def test_a_busy_process_does_not_take_its_own_slowness_for_that_of_the_store() -> None:
    async def answer_in_three_turns() -> str:
        for _ in range(3):
            await asyncio.sleep(0)
            time.sleep(0.05)  # noqa: ASYNC251 - this process has much to do
        return "here"

    assert await within(0.1, answer_in_three_turns()) == "here"
    with pytest.raises(TimeoutError):
        await within(0.05, asyncio.Event().wait())
