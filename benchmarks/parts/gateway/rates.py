"""What a submission and a look cost, in CPU seconds of the gateway and of its store, beside the peer on Redis."""

from __future__ import annotations

import statistics
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from parts.gateway.stage import Gateway, empty_store, run_load, start_seed, start_shoal
from parts.shared.private_servers import REDIS, PrivateServers
from parts.shared.report import BenchmarkError, Goal, number, progress, table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PROCESSES = 1
ITEMS = 1
SUBMISSIONS_GOAL = 1.0
READS_GOAL = 2.0


@dataclass(frozen=True)
class Rate:
    """What one kind of request took. `cpu`: seconds of the gateway for 1,000 of them; `store_cpu`: of the store."""

    per_second: float
    cpu: float
    store_cpu: float
    p50: float
    p99: float


@dataclass(frozen=True)
class Rates:
    """Shoal on one engine, beside the peer, from the same run: the medians of the rounds."""

    engine: str
    shoal: dict[str, Rate]
    seed: dict[str, Rate]

    def ratio(self, what: str, *, with_store: bool) -> float:
        """Requests per CPU second, Shoal's to the peer's."""
        ours, theirs = self.shoal[what], self.seed[what]
        if with_store:
            return (theirs.cpu + theirs.store_cpu) / (ours.cpu + ours.store_cpu)
        return theirs.cpu / ours.cpu


def measure_rates(servers: PrivateServers, engine: str, seconds: float, rounds: int, connections: int) -> list[Rates]:
    """The two take turns. Each round begins with empty stores."""
    found: dict[tuple[str, str], list[Rate]] = {}
    for nth in range(rounds):
        for side in ("seed", "shoal") if nth % 2 else ("shoal", "seed"):
            progress(f"{engine}: rates of {side}, round {nth + 1} of {rounds} …")
            for what, rate in _one_side(servers, side, engine, seconds, connections).items():
                found.setdefault((side, what), []).append(rate)
    sides = {side: {what: _median(found[side, what]) for what in ("submit", "read")} for side in ("shoal", "seed")}
    return [Rates(engine, sides["shoal"], sides["seed"])]


def _one_side(servers: PrivateServers, side: str, engine: str, seconds: float, connections: int) -> dict[str, Rate]:
    kind = REDIS if side == "seed" else engine
    with tempfile.TemporaryDirectory(prefix="shoal-gateway-") as folder, ExitStack() as stack:
        store = empty_store(stack, servers, kind)
        gateway = start_seed(stack, store, PROCESSES) if side == "seed" else start_shoal(stack, store, PROCESSES, "9")
        measure = _meter(servers, gateway, kind)
        plan = (str(connections), str(ITEMS), str(Path(folder) / "ids"))
        run_load("submit", gateway, plan, min(1.0, seconds), measure)  # so that everything has been loaded
        return {what: _rate(what, run_load(what, gateway, plan, seconds, measure)) for what in ("submit", "read")}


def _meter(servers: PrivateServers, gateway: Gateway, kind: str) -> Callable[[], tuple[float, float]]:
    return lambda: (gateway.cpu_seconds(), servers.cpu_seconds_of_kind(kind))


def _rate(what: str, said: dict[str, float]) -> Rate:
    if said["refused"]:
        raise BenchmarkError(f"{said['refused']:,.0f} requests ({what}) were refused; nothing can be compared.")
    done = said["done"]
    return Rate(
        done / said["seconds"],
        1000 * said["gateway_cpu"] / done,
        1000 * said["store_cpu"] / done,
        said["p50"],
        said["p99"],
    )


def _median(rates: Sequence[Rate]) -> Rate:
    return Rate(*(statistics.median(getattr(rate, name) for rate in rates) for name in Rate.__dataclass_fields__))


def rates_table(rates: Sequence[Rates]) -> str:
    """Both sides, request by request."""
    rows = [
        [
            {"submit": "submit", "read": "look"}[what],
            f"Shoal on {each.engine}" if side == "shoal" else f"bare FastAPI + Redis (beside {each.engine})",
            number(rate.per_second),
            number(rate.cpu),
            number(rate.store_cpu),
            number(1000 / (rate.cpu + rate.store_cpu)),
            number(1000 * rate.p50),
            number(1000 * rate.p99),
        ]
        for each in rates
        for what in ("submit", "read")
        for side, rate in (("shoal", each.shoal[what]), ("seed", each.seed[what]))
    ]
    head = ["request", "gateway", "per s", "CPU ms", "store CPU ms", "per CPU s", "p50 ms", "p99 ms"]
    return table(head, rows)


def rates_goals(rates: Sequence[Rates]) -> list[Goal]:
    """As the design has them, of the gateway alone and with its store."""
    return [
        Goal(f"{name} per CPU second{more}, Shoal on {each.engine} to bare FastAPI + Redis", limit, ratio, "x")
        for each in rates
        for what, name, limit in (("submit", "submissions", SUBMISSIONS_GOAL), ("read", "looks", READS_GOAL))
        for more, ratio in (
            (" of the gateway", each.ratio(what, with_store=False)),
            (" of gateway and store", each.ratio(what, with_store=True)),
        )
    ]
