"""Coalesced reads: many who look at once, and few reads."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from shoal.core.clock import SystemClock
from shoal.gateway.http.answer import Problem
from shoal.gateway.jobs.shared_reads import SharedReads
from shoal.gateway.limits.keys import ANYBODY
from shoal.gateway.limits.store_breaker import away
from shoal.gateway.service import GatewayService
from support.gateway_parts import Tap, submit
from support.waiting import until


async def test_more_than_can_be_read_at_once_are_read_in_turns() -> None:
    reads: list[list[str]] = []

    async def read(keys: Sequence[str]) -> dict[str, str]:
        reads.append(list(keys))
        return {key: key.upper() for key in keys if key != "c"}

    coalesced = SharedReads(read, 2, SystemClock())
    running = asyncio.create_task(coalesced.run())
    async with asyncio.timeout(120):
        found = await asyncio.gather(*(coalesced.get(key) for key in "abcdea"))
    running.cancel()
    assert found == ["A", "B", None, "D", "E", "A"]
    assert reads == [["a", "b"], ["c", "d"], ["e"]]


async def test_many_who_look_at_once_are_few_reads(service: GatewayService, tap: Tap) -> None:
    job_ids = [await submit(service, f"w{n}") for n in range(20)]
    tap.reads.clear()
    seen = await asyncio.gather(*(service.see(ANYBODY, job_id) for job_id in job_ids * 50))
    assert [status.job_id for status in seen] == job_ids * 50
    assert len(tap.reads) <= 3, tap.reads


async def test_whoever_asks_while_the_store_is_waited_for_is_told_together_with_the_others() -> None:
    """And does not wait for it a second time."""
    reads: list[Sequence[str]] = []
    answer = asyncio.Event()

    async def read(keys: Sequence[str]) -> Mapping[str, int]:
        reads.append(keys)
        await answer.wait()
        raise away()

    coalesced = SharedReads(read, 100, SystemClock())
    running = asyncio.create_task(coalesced.run())
    first = asyncio.create_task(coalesced.get("first"))
    await until(lambda: reads, "it is read")
    others = [asyncio.create_task(coalesced.get(key)) for key in ("first", "other")]
    await asyncio.sleep(0)
    answer.set()
    for asked in (first, *others):
        with pytest.raises(Problem, match="store"):
            await asked
    assert reads == [["first"]]
    running.cancel()
