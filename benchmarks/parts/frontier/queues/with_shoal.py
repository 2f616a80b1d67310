"""Shoal's frontier: tasks enqueued in batches, then claimed and settled by a few callers until nothing is left.

Usage: with_shoal.py ENGINE_URL JOBS BATCH CALLERS
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys
from typing import TYPE_CHECKING

import uvloop
from contest import finished, produce, wait_for_start

from shoal.core.outcome import Done, Settlement
from shoal.core.task import DEFAULT_POOL, DIRECT, NewTask, Policy
from shoal.frontier.contract.frontier import Ask, NewRun, WorkerInfo
from shoal.frontier.open import open_engine

if TYPE_CHECKING:
    from shoal.frontier.contract.frontier import Frontier

RUN = "contest"


async def main(url: str, count: int, batch: int, callers: int) -> None:
    """Enqueue, work, and count."""
    engine = await open_engine(url)
    await engine.frontier.create_run(NewRun(run_id=RUN, scraper=RUN, policy=Policy(delay=0)))

    async def enqueue(some: list[tuple[str, str]]) -> None:
        tasks = [NewTask(url, site, hashlib.sha256(url.encode()).digest()) for url, site in some]
        await engine.frontier.enqueue(RUN, tasks)

    wait_for_start()
    await produce(count, batch, enqueue)
    await asyncio.gather(*(_work(engine.frontier, batch) for _ in range(callers)))
    finished((await engine.reader.run(RUN)).counters.done)
    await engine.close()


async def _work(frontier: Frontier, batch: int) -> None:
    """Claim and settle until nothing is left."""
    worker = WorkerInfo("contest", "contest", os.getpid(), 0)
    settlements: list[Settlement] = []
    while True:
        ask = Ask(worker, [RUN], ["bulk"], {DEFAULT_POOL: [DIRECT]}, want=batch, settlements=settlements)
        granted = await frontier.exchange(ask)
        settlements = [
            Settlement(RUN, lease.task.id, lease.token, Done(), started_at=lease.claimed_at, requests=1)
            for lease in granted.leases
        ]
        if not settlements and not granted.left:
            return
        if not settlements:
            await asyncio.sleep(0.001)


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], *map(int, sys.argv[2:5])))
