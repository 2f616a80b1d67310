"""What a claim costs with a hundred sites and with a million, when nearly all of them are blocked by their delay.

All stores are prepared first and then measured in turns, so that a noisy minute of the machine hits all of them.
"""

from __future__ import annotations

import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import TYPE_CHECKING

from parts.frontier.load import BATCH, BULK, Tasks, ask, done, fill, new_run, site_names
from parts.shared.report import BenchmarkError, progress

from shoal.frontier.open import open_engine

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from shoal.core.outcome import Settlement
    from shoal.frontier.contract.frontier import Frontier

TEN_HOURS = 36_000_000
TURNS = 10
CLAIMS_PER_TURN = 20


@dataclass(frozen=True)
class Scale:
    """How much waits. `sites` are blocked, with `depth` tasks each; beside them one in a hundred is due.

    At least 64 are due, so that at every scale a claim of 64 finds 64 sites, and does the same work.
    """

    sites: int
    depth: int = 1

    @property
    def due(self) -> int:
        """How many sites can be visited now."""
        return max(BATCH, self.sites // 100)

    @property
    def tasks(self) -> int:
        """How many tasks wait on the blocked sites."""
        return self.sites * self.depth


@dataclass
class ClaimCost:
    """Milliseconds for one claim of 64 leases, and for settling them, as measured so far."""

    scale: Scale
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    settle: list[float] = field(default_factory=list)

    @property
    def wall_ms(self) -> float:
        """Wall time of a claim: the median."""
        return median(self.wall)

    @property
    def cpu_ms(self) -> float:
        """CPU time of a claim, here and in the server: the mean, without the dearest and cheapest tenth."""
        tenth = len(self.cpu) // 10
        return fmean(sorted(self.cpu)[tenth : len(self.cpu) - tenth])

    @property
    def settle_ms(self) -> float:
        """Wall time of settling the batch, with one new task each: the median."""
        return median(self.settle)


async def prepare_scale(store: str, scale: Scale) -> None:
    """Fill a store so that `scale.sites` sites have work and are blocked, and `scale.due` have work and are due."""
    progress(f"preparing {scale.sites:,} blocked sites with {scale.tasks:,} waiting tasks …")
    engine = await open_engine(store)
    try:
        frontier = engine.frontier
        blocked = await new_run(frontier, "blocked", delay=TEN_HOURS)
        await fill(frontier, blocked, Tasks(site_names(scale.sites)), scale.sites * (scale.depth + 1))
        await _visit_each_site_once(frontier, scale.sites)
        due = await new_run(frontier, "due", delay=0)
        await fill(frontier, due, Tasks(site_names(scale.due, "open")), scale.due)
    finally:
        await engine.close()


async def measure_claims(stores: Sequence[tuple[str, Scale]], cpu: Callable[[], float]) -> list[ClaimCost]:
    """The cost of claims at each scale. `cpu`: CPU seconds used so far."""
    async with AsyncExitStack() as stack:
        measures = []
        for store, scale in stores:
            engine = await open_engine(store)
            stack.push_async_callback(engine.close)
            measures.append((engine.frontier, Tasks((), first=100_000_000), ClaimCost(scale)))
        for turn in range(TURNS + 1):
            for frontier, supply, cost in measures:
                await _claims(frontier, supply, cost if turn else ClaimCost(cost.scale), cpu)
        return [cost for _, _, cost in measures]


async def _claims(frontier: Frontier, supply: Tasks, cost: ClaimCost, cpu: Callable[[], float]) -> None:
    for _ in range(CLAIMS_PER_TURN):
        used = cpu()
        wall = time.perf_counter()
        granted = await frontier.exchange(ask(BATCH))
        cost.wall.append((time.perf_counter() - wall) * 1000)
        cost.cpu.append((cpu() - used) * 1000)
        if len(granted.leases) != BATCH:
            raise BenchmarkError(
                f"A claim of {BATCH} among {cost.scale.due} due sites beside {cost.scale.sites} blocked ones gave "
                f"{len(granted.leases)}, at {granted.now}; next at {granted.wake_at}, {granted.left} left."
            )
        settlements = [done(lease, supply.of(lease.task.site)) for lease in granted.leases]
        wall = time.perf_counter()
        late = (await frontier.exchange(ask(0, settlements))).late
        cost.settle.append((time.perf_counter() - wall) * 1000)
        if late:
            raise BenchmarkError(f"{len(late)} of {BATCH} settlements were refused as late.")


async def _visit_each_site_once(frontier: Frontier, sites: int) -> None:
    visited = 0
    settlements: list[Settlement] = []
    while visited < sites or settlements:
        granted = await frontier.exchange(ask(min(BULK, sites - visited), settlements))
        if not granted.leases and not settlements:
            raise BenchmarkError(f"Only {visited} of {sites} sites could be visited while preparing the store.")
        visited += len(granted.leases)
        settlements = [done(lease) for lease in granted.leases]
