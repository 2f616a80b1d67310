"""Background loops: one that fails is named and run again; what ends a process was decided."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from shoal.core import log_events
from shoal.delivery.supervised import FIRST_PAUSE, LONGEST_PAUSE, STEADY_AFTER, supervised
from shoal.errors import EngineError, EngineFull, Unstorable
from shoal.testing.jump_clock import JumpClock


class Loop:
    """Raises what it is told to, one after the other, and then ends."""

    def __init__(self, *errors: Exception, clock: JumpClock | None = None) -> None:
        self.errors = list(errors)
        self.clock = clock
        self.runs = 0

    async def run(self) -> None:
        self.runs += 1
        if self.errors:
            raise self.errors.pop(0)


async def ended(task: asyncio.Task[None], clock: JumpClock) -> None:
    """Let all pauses pass."""
    for _ in range(200):
        if task.done():
            break
        await asyncio.sleep(0)
        clock.advance(int(LONGEST_PAUSE * 1000))
    await task


async def test_a_loop_that_fails_is_named_and_run_again() -> None:
    clock, loop = JumpClock(), Loop(ValueError("odd"), KeyError("odder"))
    with capture_logs() as lines:
        await ended(asyncio.create_task(supervised("sweep", loop.run, clock)), clock)
    assert loop.runs == 3
    assert [(line["event"], line["loop"], line["attempt"]) for line in lines] == [
        (log_events.BACKGROUND_FAILED, "sweep", 1),
        (log_events.BACKGROUND_FAILED, "sweep", 2),
    ]
    assert [line["next_try"] for line in lines] == [f"in {FIRST_PAUSE:.1f} s", f"in {2 * FIRST_PAUSE:.1f} s"]


async def test_pauses_are_bounded_and_a_loop_that_was_well_begins_anew() -> None:
    clock = JumpClock()

    class Flaky(Loop):
        async def run(self) -> None:
            if self.runs == 19:
                clock.advance(int(STEADY_AFTER) + 1)
            await super().run()

    loop = Flaky(*(ValueError() for _ in range(20)))
    with capture_logs() as lines:
        await ended(asyncio.create_task(supervised("sweep", loop.run, clock)), clock)
    assert lines[18]["next_try"] == f"in {LONGEST_PAUSE:.1f} s"
    assert lines[19]["attempt"] == 1


async def test_what_is_fatal_is_raised_unless_it_is_about_one_value() -> None:
    clock, loop = JumpClock(), Loop(Unstorable("not that"), EngineFull("full"))
    with capture_logs() as lines, pytest.raises(EngineFull):
        await ended(asyncio.create_task(supervised("sweep", loop.run, clock, fatal=EngineError)), clock)
    assert (loop.runs, len(lines)) == (2, 1)


async def test_cancellation_passes() -> None:
    async def forever() -> None:
        await asyncio.Event().wait()

    task = asyncio.create_task(supervised("sweep", forever, JumpClock()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
