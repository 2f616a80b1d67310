from __future__ import annotations

import asyncio

import pytest

from shoal.core.clock import SystemClock
from shoal.testing.jump_clock import NOON, JumpClock


async def test_who_sleeps_by_the_clock_of_the_machine_sleeps_as_long_as_it_says() -> None:
    clock = SystemClock()
    began = clock.elapsed()
    await clock.sleep(0.02)
    assert clock.elapsed() - began >= 19  # timers of the loop have the resolution of its clock


async def test_who_sleeps_by_a_jumping_clock_wakes_when_it_is_moved_far_enough() -> None:
    clock, woken = JumpClock(), list[str]()

    async def nap(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append(name)

    async with asyncio.TaskGroup() as naps:
        naps.create_task(nap("long", 3600))
        naps.create_task(nap("short", 0.0101))  # rounded up: never shorter than asked for
        await asyncio.sleep(0)
        assert list(clock.sleeping) == [11, 3_600_000]

        clock.advance(10)
        await _turns()
        assert woken == []
        clock.advance(1)
        await _turns()
        assert woken == ["short"]
        assert list(clock.sleeping) == [3_600_000 - 11]

        clock.advance(3_600_000)
    assert woken == ["short", "long"]
    assert clock.now() == NOON + 3_600_011


async def test_no_sleep_is_a_turn_of_the_loop() -> None:
    clock = JumpClock()
    await clock.sleep(0)
    await clock.sleep(-1)
    assert clock.sleeping == ()


async def test_a_sleeper_that_is_cancelled_is_forgotten() -> None:
    clock = JumpClock()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await clock.sleep(5)
    assert clock.sleeping == ()
    clock.advance(5000)


async def test_a_clock_never_goes_back() -> None:
    with pytest.raises(ValueError, match="cannot go back"):
        JumpClock().advance(-1)


async def _turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)
