"""How the rate of PostgreSQL holds while an old snapshot is kept open, so that nothing old can be cleaned away."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from parts.frontier.cycles import Cycles, Shape
from parts.shared.report import progress
from parts.shared.stores import delete_store, empty_store

from shoal.frontier.open import open_engine

if TYPE_CHECKING:
    from collections.abc import Callable

SHAPE = Shape("50,000 sites, delay 1 s, four callers", sites=50_000, delay=1000, callers=4)
TASKS_AT_ONCE = 10_000
WINDOW = 30.0


@dataclass(frozen=True)
class Pinned:
    """Tasks per second before the snapshot was taken, and when it was `seconds` old. Also per CPU second."""

    seconds: float
    before: float
    after: float
    cpu_before: float
    cpu_after: float

    @property
    def kept(self) -> float:
        """The share of the rate that is left."""
        return self.after / self.before


async def measure_pinned(engine: str, seconds: float, cpu: Callable[[], float]) -> Pinned:
    """Cycles without pause: a while undisturbed, then for `seconds` beside an open transaction that has looked once."""
    import asyncpg  # noqa: PLC0415 - an extra

    store = await empty_store(engine, "pinned")
    opened = await open_engine(store)
    stranger = await asyncpg.connect(store.partition("?")[0])
    try:
        cycles = await Cycles.prepare(opened.frontier, SHAPE, cpu)
        await cycles.run(TASKS_AT_ONCE)
        before = await _rate(cycles, min(WINDOW, seconds / 3))
        async with stranger.transaction(isolation="repeatable_read"):
            await stranger.fetchval("SELECT count(*) FROM pg_class")
            progress(f"pinned a snapshot; before: {before[0]:,.0f} tasks/s …")
            begin = time.perf_counter()
            for _ in range(max(1, round(seconds / WINDOW))):
                after = await _rate(cycles, min(WINDOW, seconds))
                progress(f"after {time.perf_counter() - begin:.0f} s: {after[0]:,.0f} tasks/s")
        await cycles.check(opened.reader)
    finally:
        await stranger.close()
        await opened.close()
        await delete_store(store)
    return Pinned(seconds, before[0], after[0], before[1], after[1])


async def _rate(cycles: Cycles, seconds: float) -> tuple[float, float]:
    """Tasks per second and per CPU second, over about so many seconds."""
    wall = cpu = tasks = 0.0
    while wall < seconds:
        rate = await cycles.run(TASKS_AT_ONCE)
        tasks += TASKS_AT_ONCE
        wall += TASKS_AT_ONCE / rate.per_second
        cpu += TASKS_AT_ONCE / rate.per_cpu_second
    return tasks / wall, tasks / cpu
