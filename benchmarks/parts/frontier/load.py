"""Tasks and asks as a crawl would bring them, for measuring a frontier without fetching anything."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import os
from typing import TYPE_CHECKING

from shoal.core.outcome import Done, Settlement
from shoal.core.task import DEFAULT_POOL, DIRECT, NewTask, Policy
from shoal.frontier.contract.frontier import Ask, NewRun, WorkerInfo

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from shoal.core.task import Lease
    from shoal.frontier.contract.frontier import Frontier

SCRAPER = "benchmark"
LANE = "bulk"
BATCH = 64
BULK = 2_000
"""Size of batches where only the result counts, not the time."""

FILLERS = 2

WORKER = WorkerInfo("benchmark", "benchmark", os.getpid(), 0)


class Tasks:
    """An endless supply of tasks with URLs of 60 characters, none twice, going round over its sites.

    Two supplies for the same run and sites need numbers far apart (`first`), or the second brings duplicates.
    """

    def __init__(self, sites: Sequence[str], first: int = 0) -> None:
        self._site = itertools.cycle(sites)
        self._serial = itertools.count(first)

    def take(self, count: int) -> list[NewTask]:
        """The next tasks, each of the next site."""
        return [self.of(site) for site in itertools.islice(self._site, count)]

    def of(self, site: str) -> NewTask:
        """One more task of a given site."""
        url = f"https://{site}/books/item-{next(self._serial):09d}/index.html"
        return NewTask(url=url, site=site, key=hashlib.sha256(url.encode()).digest(), lane=LANE)


def site_names(count: int, kind: str = "shop") -> list[str]:
    """Names of sites, 20 characters each."""
    return [f"{kind}-{number:07d}.example" for number in range(count)]


async def new_run(frontier: Frontier, name: str, *, delay: int, concurrency: int = 1) -> str:
    """A run in the one queue that all runs of a benchmark share, so that a claim meets the sites of all of them."""
    policy = Policy(delay=delay, concurrency=concurrency)
    run = await frontier.create_run(NewRun(run_id=name, scraper=SCRAPER, policy=policy, queue=SCRAPER))
    return run.run_id


async def fill(frontier: Frontier, run_id: str, tasks: Tasks, count: int) -> None:
    """Enqueue `count` tasks in large batches, a few at a time."""
    sizes = _batches(count)

    async def enqueue() -> None:
        for size in sizes:
            await frontier.enqueue(run_id, tasks.take(size))

    async with asyncio.TaskGroup() as group:
        for _ in range(FILLERS):
            group.create_task(enqueue())


def ask(want: int, settlements: Sequence[Settlement] = ()) -> Ask:
    """What the benchmark's one worker asks for."""
    return Ask(
        worker=WORKER,
        scrapers=(SCRAPER,),
        lanes=(LANE,),
        exits={DEFAULT_POOL: (DIRECT,)},
        want=want,
        settlements=settlements,
    )


def done(lease: Lease, *tasks: NewTask) -> Settlement:
    """A lease whose request started as soon as it was claimed and brought 24 KB and these links."""
    return Settlement(
        run_id=lease.task.run_id,
        task=lease.task.id,
        token=lease.token,
        outcome=Done(tasks=tasks, url=lease.task.url),
        started_at=lease.claimed_at,
        requests=1,
        received=24_000,
    )


def _batches(count: int) -> Iterator[int]:
    while count > 0:
        yield min(count, BULK)
        count -= BULK
