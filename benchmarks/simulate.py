"""A fleet on a virtual clock: what a crawl of a billion URLs asks of the store. No network, no store, no waiting.

    python benchmarks/simulate.py            # a million sites, 20 exits, 10,000 workers, a billion URLs
    python benchmarks/simulate.py --quick    # to see that it works

URLs are drawn lazily: a site only knows how many it has left. The claim is the one of the design: sites by the time
they may next be visited, one lease per slot, a slot free again `delay` after the start and not before the settlement.
Workers keep `concurrency` requests in flight, let settlements wait `linger` for company, and exchange them for leases.
"""

from __future__ import annotations

import argparse
import heapq
import json
import math
import random
import sys
from dataclasses import asdict, dataclass, field
from itertools import count

GAMMA = 0.57721566490153
"""Euler's constant: sums of 1/rank without walking over a million ranks."""

LINGERS = (0.004, 0.05, 0.25)
"""Seconds that the first finished request of a group waits for company, from what a worker does today upwards."""

FULL = 0.7
"""How busy a store should be at most, so that a peak does not make it late."""

FINISHED, EXCHANGE = 0, 1


@dataclass(frozen=True)
class Plan:
    """The crawl. Site number r (by size) has a share of the URLs that goes with 1/r, as sites of the web do."""

    sites: int = 1_000_000
    urls: int = 1_000_000_000
    exits: int = 20
    delay: float = 1.0
    workers: int = 10_000
    concurrency: int = 64
    latency: float = 0.6
    seconds: float = 2.0

    def urls_of(self, rank: int) -> int:
        """How many URLs the site of that rank has; the first is the largest."""
        return max(1, round(self.urls / (rank * harmonic(self.sites))))


@dataclass(frozen=True)
class Store:
    """What a store spends: CPU seconds for an exchange, and for each task in it.

    The defaults are what `store_costs.py` has measured (RESULTS.md). A partition is one processor's worth of store: all
    that a Redis server can use; a PostgreSQL server with n processors is n of them.
    """

    name: str
    per_exchange: float
    per_task: float

    def busy(self, exchanges: float, tasks: float) -> float:
        """CPU seconds of the store that a second of such a load takes."""
        return exchanges * self.per_exchange + tasks * self.per_task


@dataclass
class Site:
    """One site: URLs left, when each slot that is not in use is free, and when each began last."""

    left: int
    free: list[tuple[float, int]]
    begun: dict[int, float] = field(default_factory=dict)


@dataclass
class Worker:
    """Requests in flight, what has finished and was not settled yet, and whether an exchange is on its way."""

    in_flight: int = 0
    finished: list[tuple[int, int]] = field(default_factory=list)
    will_exchange: bool = False


@dataclass
class Seen:
    """What happened after the fleet had warmed up."""

    tasks: int = 0
    exchanges: int = 0
    smallest_gap: float = math.inf
    in_flight: float = 0.0


class Fleet:
    """Workers and one frontier on a virtual clock."""

    def __init__(self, plan: Plan, linger: float, seed: int) -> None:
        self.plan = plan
        self.linger = linger
        self.chance = random.Random(seed)  # noqa: S311 - a simulation
        self.sites: dict[int, Site] = {}
        self.due: list[tuple[float, int]] = []
        self.untouched = count(1)
        self.workers = [Worker() for _ in range(plan.workers)]
        self.events: list[tuple[float, int, int, int, int]] = []
        self.stride = _coprime(plan.sites)
        self.seen = Seen()
        self.warm_at = 2 * plan.latency + linger

    def run(self) -> Seen:
        """Let the fleet warm up, then watch it for the plan's time."""
        for number in range(self.plan.workers):
            self.schedule(self.chance.uniform(0, self.plan.latency), number)
        end = self.warm_at + self.plan.seconds
        while self.events:
            now, kind, number, site, way = heapq.heappop(self.events)
            if now > end:
                break
            if kind == FINISHED:
                self.finish(now, number, site, way)
            else:
                self.exchange(now, number)
        self.seen.in_flight = sum(worker.in_flight for worker in self.workers) / len(self.workers)
        return self.seen

    def schedule(self, at: float, number: int) -> None:
        self.workers[number].will_exchange = True
        heapq.heappush(self.events, (at, EXCHANGE, number, 0, 0))

    def finish(self, now: float, number: int, site: int, way: int) -> None:
        worker = self.workers[number]
        worker.finished.append((site, way))
        if not worker.will_exchange:
            self.schedule(now + self.linger, number)

    def exchange(self, now: float, number: int) -> None:
        """Settle what is finished and claim as much again."""
        worker = self.workers[number]
        worker.will_exchange = False
        for site, way in worker.finished:
            self.settle(now, site, way)
        worker.in_flight -= len(worker.finished)
        if now >= self.warm_at:
            self.seen.tasks += len(worker.finished)
            self.seen.exchanges += 1
        worker.finished.clear()
        while worker.in_flight < self.plan.concurrency:
            taken = self.claim(now)
            if taken is None:
                break
            latency = self.plan.latency * self.chance.lognormvariate(-0.125, 0.5)
            heapq.heappush(self.events, (now + latency, FINISHED, number, *taken))
            worker.in_flight += 1
        if not worker.in_flight:
            self.schedule(now + self.chance.uniform(0.15, 0.3), number)

    def settle(self, now: float, number: int, way: int) -> None:
        site = self.sites[number]
        free_at = max(now, site.begun[way] + self.plan.delay)
        heapq.heappush(site.free, (free_at, way))
        if site.left:
            heapq.heappush(self.due, (free_at, number))

    def claim(self, now: float) -> tuple[int, int] | None:
        """The slot of the site that has waited longest. Entries of the index that are stale are dropped when met."""
        while self.due and self.due[0][0] <= now:
            _, number = heapq.heappop(self.due)
            taken = self.take(now, number)
            if taken is not None:
                return taken
        for rank in self.untouched:
            if rank > self.plan.sites:
                return None
            number = rank * self.stride % self.plan.sites + 1
            self.sites[number] = Site(self.plan.urls_of(number), [(0.0, way) for way in range(self.plan.exits)])
            for _ in range(min(self.plan.exits, self.sites[number].left) - 1):
                heapq.heappush(self.due, (now, number))
            return self.take(now, number)
        return None

    def take(self, now: float, number: int) -> tuple[int, int] | None:
        site = self.sites[number]
        if not site.left or not site.free or site.free[0][0] > now:
            return None
        _, way = heapq.heappop(site.free)
        if way in site.begun:
            self.seen.smallest_gap = min(self.seen.smallest_gap, now - site.begun[way])
        site.begun[way] = now
        site.left -= 1
        return number, way


def harmonic(ranks: int) -> float:
    """1 + 1/2 + … + 1/ranks."""
    if ranks < 100:
        return sum(1 / rank for rank in range(1, ranks + 1))
    return math.log(ranks) + GAMMA + 1 / (2 * ranks)


def done_after(plan: Plan, seconds: float, capacity: float) -> float:
    """The share of all URLs that is done by then, at best: no site faster than its slots, no fleet than its workers."""
    each = seconds * plan.exits / plan.delay
    ranks = min(plan.sites, int(plan.urls / (each * harmonic(plan.sites))))
    polite = each * ranks + plan.urls * (1 - harmonic(ranks) / harmonic(plan.sites))
    return min(polite, capacity * seconds, plan.urls) / plan.urls


def time_for(plan: Plan, share: float, capacity: float) -> float:
    """Seconds until that share of all URLs is done, at best."""
    low, high = 0.0, plan.urls * plan.delay / plan.exits + plan.urls / capacity
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if done_after(plan, middle, capacity) < share else (low, middle)
    return high


def simulate(plan: Plan, stores: list[Store], seed: int) -> dict[str, object]:
    """All figures, for `--json` and for the tables."""
    fleets = []
    for linger in LINGERS:
        print(f"simulating {plan.seconds:g} s with a linger of {linger * 1000:.0f} ms …", file=sys.stderr)
        seen = Fleet(plan, linger, seed).run()
        tasks, exchanges = seen.tasks / plan.seconds, seen.exchanges / plan.seconds
        partitions = {store.name: math.ceil(store.busy(exchanges, tasks) / FULL) for store in stores}
        fleets.append(
            {
                "linger_ms": round(linger * 1000),
                "tasks_per_s": round(tasks),
                "exchanges_per_s": round(exchanges),
                "tasks_per_exchange": round(seen.tasks / max(1, seen.exchanges), 1),
                "requests_in_flight_per_worker": round(seen.in_flight, 1),
                "smallest_gap_s": None if seen.smallest_gap == math.inf else round(seen.smallest_gap, 4),
                "partitions": partitions,
            }
        )
    capacity = float(max(int(str(fleet["tasks_per_s"])) for fleet in fleets))
    times = {f"{share:.0%}": round(time_for(plan, share, capacity)) for share in (0.5, 0.9, 0.99, 1.0)}
    return {
        "plan": asdict(plan),
        "stores": [asdict(store) for store in stores],
        "fleets": fleets,
        "done_after_s": times,
    }


def _coprime(sites: int) -> int:
    """A step that visits all sites once, large and small mixed."""
    step = int(sites * 0.6180339887) | 1
    while math.gcd(step, sites) != 1:
        step += 2
    return step


def _span(seconds: float) -> str:
    for unit, size in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


def _print(figures: dict[str, object], plan: Plan) -> None:
    print(
        f"{plan.sites:,} sites, {plan.exits} exits, {plan.urls:,} URLs, {plan.workers:,} workers of {plan.concurrency}"
    )
    print("| linger | tasks/s | exchanges/s | tasks per exchange | in flight per worker | smallest gap | partitions |")
    print("|---|---|---|---|---|---|---|")
    fleets = figures["fleets"]
    assert isinstance(fleets, list)  # noqa: S101 - for the type checker
    for fleet in fleets:
        partitions = ", ".join(f"{name} {number}" for name, number in fleet["partitions"].items())
        gap = "none seen" if fleet["smallest_gap_s"] is None else f"{fleet['smallest_gap_s']:.4f} s"
        print(
            f"| {fleet['linger_ms']} ms | {fleet['tasks_per_s']:,} | {fleet['exchanges_per_s']:,} | "
            f"{fleet['tasks_per_exchange']} | {fleet['requests_in_flight_per_worker']} | {gap} | {partitions} |"
        )
    times = figures["done_after_s"]
    assert isinstance(times, dict)  # noqa: S101 - for the type checker
    print("done at the earliest: " + ", ".join(f"{share} after {_span(time)}" for share, time in times.items()))


def main() -> None:
    """Read the command line, simulate, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    plan = Plan()
    for name, value in asdict(plan).items():
        parser.add_argument(f"--{name}", type=type(value), default=value)
    parser.add_argument("--quick", action="store_true", help="a thousandth of everything")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--postgres", type=float, nargs=2, default=(0.00202, 0.000118), metavar="SECONDS")
    parser.add_argument("--redis", type=float, nargs=2, default=(0.00028, 0.0000233), metavar="SECONDS")
    parser.add_argument("--json", action="store_true")
    options = vars(parser.parse_args())
    stores = [Store("PostgreSQL", *options.pop("postgres")), Store("Redis", *options.pop("redis"))]
    quick, seed, as_json = (options.pop(name) for name in ("quick", "seed", "json"))
    plan = Plan(**options)
    if min(asdict(plan).values()) <= 0:
        parser.error("all figures must be above 0")
    if quick:
        plan = Plan(plan.sites // 1000, plan.urls // 1000, plan.exits, plan.delay, max(1, plan.workers // 1000))
    figures = simulate(plan, stores, seed)
    print(json.dumps(figures)) if as_json else _print(figures, plan)


if __name__ == "__main__":
    main()
