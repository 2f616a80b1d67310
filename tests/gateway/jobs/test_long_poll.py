"""Long polling: one read for many who wait."""

from __future__ import annotations

import asyncio

from shoal.core.task import DEFAULT_POOL, DIRECT
from shoal.errors import EngineUnavailable
from shoal.frontier.contract.frontier import Ask
from shoal.frontier.sqlite.engine import SqliteEngine
from shoal.gateway.limits.keys import ANYBODY
from shoal.gateway.options import GatewayOptions
from shoal.gateway.service import GatewayService
from shoal.testing.contract.scene import worker
from support.gateway_parts import Tap, shop_scraper, submit
from support.waiting import until


async def test_a_thousand_who_wait_are_one_read_a_tick(service: GatewayService, tap: Tap) -> None:
    statuses = [await service.see(ANYBODY, await submit(service, f"w{n}")) for n in range(100)]
    waiting = [asyncio.create_task(service.wait(ANYBODY, status, None, 60)) for status in statuses for _ in range(10)]
    await until(lambda: service.polls.waiting == 1000, "all wait")
    tap.reads.clear()
    await until(lambda: len(tap.reads) >= 3, "there were three reads")
    assert set(tap.reads) == {100}, "each id once"
    for status in statuses:
        await service.store.frontier.cancel_run(status.job_id)
    ended = await asyncio.gather(*waiting)
    assert [each.job_id for each in ended] == [status.job_id for status in statuses for _ in range(10)]
    assert service.polls.waiting == 0
    assert not service.polls._versions
    assert len(tap.reads) < 60, "however many wait"


async def test_what_has_changed_is_told_once_and_wakes_only_those_who_want_to_know(
    service: GatewayService, tap: Tap
) -> None:
    status = await service.see(ANYBODY, await submit(service, "w"))
    patient = asyncio.create_task(service.wait(ANYBODY, status, None, 60))
    curious = asyncio.create_task(service.wait(ANYBODY, status, status.version, 60))
    await until(lambda: service.polls.waiting == 2, "both wait")
    tap.told = 0
    ask = Ask(worker(), ("shop",), ("bulk",), {DEFAULT_POOL: (DIRECT,)}, 1)
    await service.store.frontier.exchange(ask)
    assert (await curious).state.value == "processing"
    tap.reads.clear()
    await until(lambda: len(tap.reads) >= 3, "there were three reads")
    assert (tap.told, patient.done()) == (1, False)
    await service.store.frontier.cancel_run(status.job_id)
    assert (await patient).state.value == "cancelled"


async def test_more_than_may_wait_are_answered_at_once(engine: SqliteEngine) -> None:
    service = GatewayService(engine, [shop_scraper()], GatewayOptions(max_waiting=1, store_patience=60))
    async with service.running():
        status = await service.see(ANYBODY, await submit(service, "w"))
        first = asyncio.create_task(service.wait(ANYBODY, status, None, 60))
        await until(lambda: service.polls.waiting, "somebody waits")
        assert await service.wait(ANYBODY, status, None, 60) == status
        service.close()
        assert (await first).job_id == status.job_id


async def test_whoever_waits_when_the_store_fails_goes_on_waiting(service: GatewayService, tap: Tap) -> None:
    status = await service.see(ANYBODY, await submit(service, "w"))
    waiting = asyncio.create_task(service.wait(ANYBODY, status, None, 60))
    await until(lambda: service.polls.waiting, "somebody waits")
    tap.trouble = EngineUnavailable("it is gone")
    await until(lambda: service.breaker.trouble is not None, "the store is known to be away")
    number, ticks = len(tap.reads), service.polls.reads
    await until(lambda: service.polls.reads >= ticks + 3, "it was looked for news three times")
    assert len(tap.reads) == number, "the ticks leave it alone"
    tap.trouble = None
    await until(lambda: service.breaker.trouble is None, "the store is back")
    await service.store.frontier.cancel_run(status.job_id)
    assert (await waiting).state.value == "cancelled"
