"""How many tasks a second go the whole way through a frontier: enqueued, claimed, settled, each durably."""

from __future__ import annotations

import asyncio
import itertools
import time
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from parts.frontier.load import BATCH, Tasks, ask, done, fill, new_run, site_names
from parts.shared.report import BenchmarkError

from shoal.frontier.open import open_engine

if TYPE_CHECKING:
    from collections.abc import Callable

    from shoal.core.outcome import Settlement
    from shoal.core.task import NewTask
    from shoal.frontier.contract.frontier import Frontier
    from shoal.frontier.contract.reader import Reader


@dataclass(frozen=True)
class Shape:
    """One way of using the frontier.

    `callers`: how many ask at the same time, from one process. `apart`: each batch is enqueued by a call of its own;
    otherwise each settlement brings one new task, as a crawled page does.
    """

    name: str
    sites: int
    delay: int
    callers: int = 1
    apart: bool = True


STRICT = Shape("1,000 sites, no delay, one caller", sites=1000, delay=0)
POLITE = Shape("50,000 sites, delay 1 s, one caller", sites=50_000, delay=1000)
FOUR = Shape("1,000 sites, no delay, four callers", sites=1000, delay=0, callers=4)
SHAPES = (
    STRICT,
    FOUR,
    Shape("1,000 sites, no delay, new tasks inside settlements", sites=1000, delay=0, apart=False),
    POLITE,
)


@dataclass(frozen=True)
class Rate:
    """Tasks through the whole way, per second, and per CPU second of this process and of its server together."""

    per_second: float
    per_cpu_second: float


async def measure_cycles(store: str, shape: Shape, tasks: int, rounds: int, cpu: Callable[[], float]) -> Rate:
    """The median of `rounds`, each of about `tasks` tasks, in one store. `cpu`: CPU seconds used so far."""
    engine = await open_engine(store)
    try:
        cycles = await Cycles.prepare(engine.frontier, shape, cpu)
        await cycles.run(tasks // 10)
        rates = [await cycles.run(tasks) for _ in range(rounds)]
        await cycles.check(engine.reader)
    finally:
        await engine.close()
    return Rate(median(rate.per_second for rate in rates), median(rate.per_cpu_second for rate in rates))


class Cycles:
    """Callers that go on enqueueing, claiming and settling, with as many tasks waiting as at the start."""

    def __init__(
        self, frontier: Frontier, shape: Shape, run_id: str, supply: Tasks, cpu: Callable[[], float] = time.process_time
    ) -> None:
        self._frontier = frontier
        self._shape = shape
        self._cpu = cpu
        self._run_id = run_id
        self._supply = supply
        self._made: list[list[NewTask]] = []
        self._settled = 0

    @classmethod
    async def prepare(cls, frontier: Frontier, shape: Shape, cpu: Callable[[], float] = time.process_time) -> Cycles:
        """A run with two tasks waiting on each site, so that every claim finds a whole batch."""
        run_id = await new_run(frontier, "cycles", delay=shape.delay)
        supply = Tasks(site_names(shape.sites))
        await fill(frontier, run_id, supply, 2 * shape.sites)
        return cls(frontier, shape, run_id, supply, cpu)

    async def run(self, tasks: int) -> Rate:
        """Take at least `tasks` tasks the whole way. New ones are made before the clock starts."""
        left = itertools.count(tasks, -BATCH)
        self._made = [self._supply.take(BATCH) for _ in range(-(-tasks // BATCH))]
        wall, cpu = time.perf_counter(), self._cpu()
        async with asyncio.TaskGroup() as group:
            callers = [group.create_task(self._call(left)) for _ in range(self._shape.callers)]
        wall, cpu = time.perf_counter() - wall, self._cpu() - cpu
        settled = sum(caller.result() for caller in callers)
        self._settled += settled
        return Rate(settled / wall, settled / cpu)

    async def check(self, reader: Reader) -> None:
        """Raise unless the store counts as done exactly what was settled here."""
        counters = (await reader.run(self._run_id)).counters
        if counters.done != self._settled or counters.leased:
            raise BenchmarkError(f"{self._settled} tasks were settled, but {counters.done} are done in the store.")

    async def _call(self, left: itertools.count[int]) -> int:
        settled = 0
        settlements: list[Settlement] = []
        while next(left) > 0:
            settled += len(settlements)
            settlements = await self._batch(settlements)
        await self._frontier.exchange(ask(0, settlements))
        return settled + len(settlements)

    async def _batch(self, settlements: list[Settlement]) -> list[Settlement]:
        if self._shape.apart:
            await self._frontier.enqueue(self._run_id, self._made.pop())
        granted = await self._frontier.exchange(ask(BATCH, settlements))
        if granted.late:
            raise BenchmarkError(f"{len(granted.late)} of {len(settlements)} settlements were refused as late.")
        if not granted.leases and granted.wake_at is not None:
            await asyncio.sleep(max(0, granted.wake_at - granted.now) / 1000)
        if self._shape.apart:
            return [done(lease) for lease in granted.leases]
        return [done(lease, task) for lease, task in zip(granted.leases, self._made.pop(), strict=False)]
