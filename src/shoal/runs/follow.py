"""Looking at a run again and again, whoever works on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from shoal.core.clock import Clock
    from shoal.frontier.contract.frontier import Run
    from shoal.frontier.contract.reader import Reader

LOOK_EVERY = 1.0
"""Seconds between two looks of those who only wait for the end."""


async def snapshots(reader: Reader, run_id: str, clock: Clock, every: float) -> AsyncIterator[Run]:
    """The run as it is now, and every so many seconds anew, for as long as one asks."""
    while True:
        yield await reader.run(run_id)
        await clock.sleep(every)


async def followed_to_end(reader: Reader, run_id: str, clock: Clock, every: float = LOOK_EVERY) -> Run:
    """The run when it has ended. Waits for that, however long it takes."""
    async for run in snapshots(reader, run_id, clock, every):
        if run.ended_at is not None:
            return run
    raise AssertionError("snapshots never end")
