"""The frontier alone, without fetching: cycles per second, what a claim costs as sites grow, bytes per waiting URL.

Measures Shoal's engines, on servers that it starts for itself, beside other queues on the same servers. Parts:

  cycles   tasks that are enqueued, claimed and settled, per second
  peers    the same work by Shoal, pgqueuer, procrastinate, SAQ and arq
  claims   what a claim costs from 100 to 1,000,000 sites, and with millions of tasks waiting
  size     bytes per waiting URL
  pinned   the rate of PostgreSQL while somebody keeps a snapshot open for five minutes
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import uvloop
from parts.frontier.claims import ClaimCost, Scale, measure_claims, prepare_scale
from parts.frontier.cycles import SHAPES, measure_cycles
from parts.frontier.peers import CONTESTANTS, compare, versions
from parts.frontier.pinned import measure_pinned
from parts.frontier.report import Figures, as_json, peers_as_json, peers_shown, shown
from parts.frontier.size import bytes_per_waiting_url
from parts.shared.private_servers import DURABILITY, POSTGRESQL, REDIS, PrivateServers
from parts.shared.report import BenchmarkError, facts, machine, progress, save_section
from parts.shared.stores import delete_store, empty_store, kind_of, sync_milliseconds
from parts.shared.workshop import WORKSHOP

if TYPE_CHECKING:
    from collections.abc import Callable

PARTS = ("cycles", "peers", "claims", "size", "pinned")
SQLITE = "sqlite"
ENGINES = (SQLITE, POSTGRESQL, REDIS)


@dataclass(frozen=True)
class Effort:
    """How long to measure. `deep`: the same sites with this many tasks waiting on each, by kind of engine."""

    cycles: int
    rounds: int
    scales: tuple[Scale, ...]
    deep: dict[str, Scale]
    urls: int
    contest: float
    pinned: float


FULL = Effort(
    cycles=30_000,
    rounds=5,
    scales=tuple(Scale(10**power) for power in range(2, 7)),
    deep={SQLITE: Scale(100_000, 100), POSTGRESQL: Scale(100_000, 100), REDIS: Scale(100_000, 20)},
    urls=1_000_000,
    contest=1.0,
    pinned=300.0,
)
QUICK = Effort(
    cycles=5_000,
    rounds=3,
    scales=tuple(Scale(10**power) for power in range(2, 5)),
    deep=dict.fromkeys(ENGINES, Scale(1_000, 20)),
    urls=100_000,
    contest=0.1,
    pinned=10.0,
)


async def measure(engine: str, effort: Effort, parts: list[str], server_cpu: Callable[[str], float]) -> Figures:
    """All that was asked for, of one engine. Stores are removed when they are no longer needed."""
    figures = Figures(kind_of(engine))

    def cpu() -> float:
        return time.process_time() + server_cpu(engine)

    if "cycles" in parts:
        for shape in SHAPES:
            progress(f"{figures.kind}: cycles: {shape.name} …")
            store = await empty_store(engine, "cycles")
            figures.cycles[shape.name] = await measure_cycles(store, shape, effort.cycles, effort.rounds, cpu)
            await delete_store(store)
    if "claims" in parts:
        figures.claims = await _claims(engine, (*effort.scales, effort.deep[figures.kind]), cpu)
    if "size" in parts:
        figures.sizes = [await bytes_per_waiting_url(engine, effort.urls, sites) for sites in (1000, effort.urls)]
    if "pinned" in parts and figures.kind == POSTGRESQL:
        figures.pinned = await measure_pinned(engine, effort.pinned, cpu)
    return figures


async def _claims(engine: str, scales: tuple[Scale, ...], cpu: Callable[[], float]) -> list[ClaimCost]:
    stores = [(await empty_store(engine, f"claims-{scale.sites}-{scale.depth}"), scale) for scale in scales]
    for store, scale in stores:
        await prepare_scale(store, scale)
    progress("measuring claims …")
    costs = await measure_claims(stores, cpu)
    for store, _ in stores:
        await delete_store(store)
    return costs


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--engine",
        action="append",
        metavar="KIND|URL",
        help=f"{', '.join(ENGINES)} (on a server of the benchmark's own), or the URL of one; may be repeated",
    )
    parser.add_argument("--part", action="append", choices=PARTS, help="only this part; may be repeated")
    parser.add_argument("--quick", action="store_true", help="less of everything: to see that it works")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.add_argument("--save", action="store_true", help="write the figures to RESULTS.md")
    return parser.parse_args()


def main() -> None:
    """Measure each engine, print, and keep if asked."""
    arguments = _arguments()
    # So that the servers end with this process also when it is told to stop.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        _run(arguments)
    except BenchmarkError as error:
        sys.exit(str(error))


def _run(arguments: argparse.Namespace) -> None:
    effort = QUICK if arguments.quick else FULL
    parts = arguments.part or list(PARTS)
    engines = arguments.engine or list(ENGINES)
    results: dict[str, object] = {}

    def show(name: str, title: str, body: str, data: dict[str, object], about: dict[str, str]) -> None:
        results[name] = data | {"machine": about}
        if not arguments.json:
            print(f"{title}\n\n{body}\n\n{facts(about)}\n", flush=True)
        if arguments.save:
            save_section(f"frontier-{name}", f"## Frontier: {title}\n\n{body}\n\n{facts(about)}")

    WORKSHOP.mkdir(exist_ok=True)
    with PrivateServers([kind for kind in (POSTGRESQL, REDIS) if kind in engines]) as servers:
        for engine in engines if set(parts) - {"peers"} else ():
            if engine == SQLITE:
                url = f"sqlite:///{WORKSHOP}/frontier.db"
            else:
                url = servers.url(engine) if engine in ENGINES else engine
            figures = uvloop.run(measure(url, effort, parts, servers.cpu_seconds))
            show(figures.kind, figures.kind, shown(figures), as_json(figures), _about(servers, engine))
        contestants = [contestant for contestant in CONTESTANTS if contestant.server in engines]
        if "peers" in parts and contestants:
            contests = compare(servers, contestants, effort.rounds, effort.contest)
            about = _about(servers, *(kind for kind in (POSTGRESQL, REDIS) if kind in engines)) | versions()
            show("peers", "beside other queues", peers_shown(contests), peers_as_json(contests), about)
    if arguments.json:
        print(json.dumps(results, indent=2))


def _about(servers: PrivateServers, *engines: str) -> dict[str, str]:
    about = machine()
    for engine in engines:
        if engine in DURABILITY:
            about[engine] = f"{servers.version(engine)}, {DURABILITY[engine]}"
    if not any("://" in engine for engine in engines):
        about["disk sync of 4 KB"] = f"{sync_milliseconds(WORKSHOP):.2f} ms"
    return about


if __name__ == "__main__":
    main()
