"""Child processes: one that dies is replaced after a pause, a few times; those who are told to stop are not."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from shoal.cli.running.child_processes import ChildProcesses
from shoal.testing.jump_clock import JumpClock
from support.waiting import until

FAILS = [sys.executable, "-c", "raise SystemExit(3)"]
WAITS = "import os, sys; open(f'{sys.argv[1]}/{os.getpid()}', 'w').close(); sys.stdin.read()"


async def test_one_that_dies_is_replaced_a_few_times() -> None:
    clock, said = JumpClock(), list[str]()
    children = ChildProcesses(FAILS, {}, size=1, report=said.append, restarts=2, pause=3600, clock=clock)
    running = asyncio.create_task(children.run())
    async with asyncio.timeout(60):
        for _ in range(2):
            await until(lambda: clock.sleeping, "the pause before another is started")
            clock.advance(3_600_000)
        await running
    assert said == [
        "A worker process died (exit code 3); starting another. Nothing is lost.",
        "A worker process died (exit code 3); starting another. Nothing is lost.",
        "A worker process died (exit code 3); too many have, so it is not replaced.",
    ]


@pytest.mark.parametrize("end", [ChildProcesses.stop, ChildProcesses.kill])
async def test_those_that_are_stopped_are_not_replaced(end: Callable[[ChildProcesses], None], tmp_path: Path) -> None:
    said = list[str]()
    children = ChildProcesses([sys.executable, "-c", WAITS, str(tmp_path)], {}, size=2, report=said.append)
    running = asyncio.create_task(children.run())
    started = partial(os.listdir, tmp_path)
    await until(lambda: len(started()) == 2, "both are up")
    end(children)
    async with asyncio.timeout(60):
        await running
    assert said == []
    assert len(started()) == 2, "no other was started"
