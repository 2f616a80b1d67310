"""What a store spends on an exchange, and on each task in it: the figures that `simulate.py` reckons with.

    python benchmarks/store_costs.py             # PostgreSQL and Redis, on servers of its own; two minutes

Exchanges of 1, 4, 16 and 64 tasks, each of which settles as many, brings a new one for each and claims as many again.
Of the server's CPU time, what grows with the tasks is taken for theirs, the rest for the exchange (least squares).
"""

from __future__ import annotations

import argparse
import asyncio
from statistics import linear_regression
from typing import TYPE_CHECKING

import uvloop
from parts.frontier.load import SCRAPER, Tasks, ask, done, fill, new_run, site_names
from parts.shared.private_servers import POSTGRESQL, REDIS, PrivateServers
from parts.shared.report import facts, machine, progress, save_section, table
from parts.shared.stores import delete_store, empty_store

from shoal.frontier.open import open_engine

if TYPE_CHECKING:
    from collections.abc import Callable

SITES = 1000
SIZES = (1, 4, 16, 64)
TASKS = 6_000
CALLERS = 4


async def measure(engine: str, cpu: Callable[[], float]) -> dict[int, float]:
    """CPU seconds of the server for one exchange, by the number of tasks in it."""
    costs = {}
    for size in SIZES:
        progress(f"exchanges of {size} …")
        store = await empty_store(engine, f"costs-{size}")
        costs[size] = await _cost(store, size, cpu)
        await delete_store(store)
    return costs


async def _cost(store: str, size: int, cpu: Callable[[], float]) -> float:
    engine = await open_engine(store)
    try:
        run_id = await new_run(engine.frontier, SCRAPER, delay=0)
        supply = Tasks(site_names(SITES))
        await fill(engine.frontier, run_id, supply, 2 * SITES)
        exchanges = max(100, TASKS // size)

        async def call(times: int) -> None:
            granted = await engine.frontier.exchange(ask(size))
            for _ in range(times):
                settled = [done(lease, supply.of(lease.task.site)) for lease in granted.leases]
                granted = await engine.frontier.exchange(ask(size, settled))
            await engine.frontier.exchange(ask(0, [done(lease) for lease in granted.leases]))

        await asyncio.gather(*(call(10) for _ in range(CALLERS)))
        used = cpu()
        await asyncio.gather(*(call(exchanges // CALLERS) for _ in range(CALLERS)))
        return (cpu() - used) / exchanges
    finally:
        await engine.close()


def main() -> None:
    """Measure both, print, and keep if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--save", action="store_true", help="write the figures to RESULTS.md")
    save = parser.parse_args().save
    rows = []
    with PrivateServers([POSTGRESQL, REDIS]) as servers:
        for kind in (POSTGRESQL, REDIS):
            costs = uvloop.run(measure(servers.url(kind), lambda kind=kind: servers.cpu_seconds_of_kind(kind)))  # type: ignore[misc]
            line = linear_regression(list(costs), list(costs.values()))
            shown = [f"{cost * 1e6:,.0f}" for cost in costs.values()]
            rows.append([kind, *shown, f"{line.intercept * 1e6:,.0f}", f"{line.slope * 1e6:,.1f}"])
    heads = ["server", *(f"exchange of {size}, µs" for size in SIZES), "an exchange, µs", "a task, µs"]
    body = "\n\n".join(["## What a store spends", table(heads, rows), facts(machine())])
    print(body)
    if save:
        save_section("store-costs", body)


if __name__ == "__main__":
    main()
