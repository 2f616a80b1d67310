"""The frontier alone, without fetching: cycles per second, what a claim costs as sites grow, bytes per waiting URL.

Runs over any engine: --engine URL, which may be repeated. For each it uses empty stores of its own beside that URL.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import uvloop
from frontier_claims import ClaimCost, Scale, measure_claims, prepare_scale
from frontier_cycles import POLITE, SHAPES, STRICT, Rate, measure_cycles
from frontier_disk import bytes_per_waiting_url
from load import BATCH
from report import BenchmarkError, Goal, facts, goals_table, machine, number, progress, save_section, table
from stores import delete_store, empty_store, sync_milliseconds

WORKSHOP = Path(__file__).parent.parent / ".bench"
PARTS = ("cycles", "claims", "disk")
CYCLE_GOALS = {"sqlite": 15_000.0, "redis": 25_000.0, "rediss": 25_000.0, "postgresql": 7_000.0}
DISK_GOALS = {"sqlite": 250.0}


@dataclass(frozen=True)
class Effort:
    """How long to measure."""

    cycles: int
    rounds: int
    scales: tuple[Scale, ...]
    urls: int


FULL = Effort(30_000, 5, tuple(Scale(10**power) for power in range(2, 7)), 1_000_000)
QUICK = Effort(5_000, 3, tuple(Scale(10**power) for power in range(2, 5)), 100_000)
DEEP = Scale(100_000, depth=100)


@dataclass
class Figures:
    """What was measured of one engine. None and empty = that part was left out."""

    engine: str
    cycles: dict[str, Rate]
    claims: list[ClaimCost]
    disk: float | None = None

    @property
    def kind(self) -> str:
        """The kind of engine, as its URL begins."""
        return self.engine.partition(":")[0]

    @property
    def growth(self) -> float | None:
        """How many times dearer a claim is at the worst scale than at the first: wall or CPU, whichever is worse."""
        if not self.claims:
            return None
        first = self.claims[0]
        return max(max(cost.wall_ms / first.wall_ms, cost.cpu_ms / first.cpu_ms) for cost in self.claims)


async def measure(engine: str, effort: Effort, parts: list[str]) -> Figures:
    """All that was asked for, of one engine. Stores are removed when they are no longer needed."""
    figures = Figures(engine, {}, [])
    if "cycles" in parts:
        for shape in SHAPES:
            progress(f"cycles: {shape.name} …")
            store = empty_store(engine, "cycles")
            figures.cycles[shape.name] = await measure_cycles(store, shape, effort.cycles, effort.rounds)
            delete_store(store)
    if "claims" in parts:
        stores = [(empty_store(engine, f"claims-{scale.sites}-{scale.depth}"), scale) for scale in effort.scales]
        for store, scale in stores:
            await prepare_scale(store, scale)
        progress("measuring claims …")
        figures.claims = await measure_claims(stores)
        for store, _ in stores:
            delete_store(store)
    if "disk" in parts:
        store = empty_store(engine, "disk")
        figures.disk = await bytes_per_waiting_url(store, effort.urls)
        delete_store(store)
    return figures


def goals(figures: Figures, effort: Effort) -> list[Goal]:
    """DESIGN.md's goals for this kind of engine."""
    found = []
    if limit := CYCLE_GOALS.get(figures.kind):
        for shape in (STRICT, POLITE):
            rate = figures.cycles.get(shape.name)
            found.append(Goal(f"cycle: {shape.name}", limit, rate.per_second if rate else None, "/s"))
    claim = f"claim: dearest of {effort.scales[0].sites:,} to {effort.scales[-1].sites:,} sites to the first"
    found.append(Goal(claim, 2.0, figures.growth, "x", at_least=False))
    if limit := DISK_GOALS.get(figures.kind):
        found.append(Goal(f"disk: each of {effort.urls:,} waiting URLs", limit, figures.disk, "B", at_least=False))
    return found


def shown(figures: Figures, effort: Effort) -> str:
    """The figures of one engine as tables."""
    parts = []
    if figures.cycles:
        rows = [[name, number(rate.per_second), number(rate.per_cpu_second)] for name, rate in figures.cycles.items()]
        parts.append(table([f"enqueue + claim + settle, batches of {BATCH}", "tasks/s", "tasks/CPU s"], rows))
    if figures.claims:
        head = [
            "blocked sites",
            "waiting tasks",
            "due sites",
            f"claim of {BATCH}: wall ms",
            "CPU ms",
            "settle: wall ms",
        ]
        rows = [
            [
                f"{cost.scale.sites:,}",
                f"{cost.scale.sites * cost.scale.depth:,}",
                f"{cost.scale.due:,}",
                f"{cost.wall_ms:.2f}",
                f"{cost.cpu_ms:.2f}",
                f"{cost.settle_ms:.2f}",
            ]
            for cost in figures.claims
        ]
        parts.append(table(head, rows))
    parts.append(goals_table(goals(figures, effort)))
    return "\n\n".join(parts)


def as_json(figures: Figures, effort: Effort) -> dict[str, object]:
    """The figures of one engine for `--json`."""
    return {
        "cycles": {
            name: {"per_second": rate.per_second, "per_cpu_second": rate.per_cpu_second}
            for name, rate in figures.cycles.items()
        },
        "claims": [
            {
                "sites": cost.scale.sites,
                "depth": cost.scale.depth,
                "due": cost.scale.due,
                "claim_wall_ms": cost.wall_ms,
                "claim_cpu_ms": cost.cpu_ms,
                "settle_wall_ms": cost.settle_ms,
            }
            for cost in figures.claims
        ],
        "bytes_per_waiting_url": figures.disk,
        "goals": [goal.as_json() for goal in goals(figures, effort)],
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", action="append", metavar="URL", help="engine to measure; may be repeated")
    parser.add_argument("--part", action="append", choices=PARTS, help="only this part; may be repeated")
    parser.add_argument("--quick", action="store_true", help="less of everything: to see that it works")
    parser.add_argument("--deep", action="store_true", help="also claims with 10,000,000 waiting tasks")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.add_argument("--save", action="store_true", help="write the figures to RESULTS.md")
    return parser.parse_args()


def main() -> None:
    """Measure each engine, print, and keep if asked."""
    arguments = _arguments()
    effort = QUICK if arguments.quick else FULL
    if arguments.deep:
        effort = Effort(effort.cycles, effort.rounds, (*effort.scales, DEEP), effort.urls)
    results: dict[str, object] = {}
    for engine in arguments.engine or [f"sqlite:///{WORKSHOP}/frontier.db"]:
        try:
            figures = uvloop.run(measure(engine, effort, arguments.part or list(PARTS)))
        except BenchmarkError as error:
            sys.exit(str(error))
        about = machine()
        if sync := sync_milliseconds(engine):
            about["disk sync of 4 KB"] = f"{sync:.2f} ms"
        body = f"{shown(figures, effort)}\n\n{facts(about)}"
        results[figures.kind] = as_json(figures, effort) | {"machine": about}
        if not arguments.json:
            print(f"{figures.kind}\n\n{body}\n")
        if arguments.save:
            save_section(f"frontier-{figures.kind}", f"## Frontier: {figures.kind}\n\n{body}")
    if arguments.json:
        print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
