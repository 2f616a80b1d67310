"""What is done to a fleet and its store, and when: from a seed and nothing else, so that it can be done again."""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What can be done. Those of the first group are done to one worker, the others to the store or the way to it."""

    KILL = "kill"
    STOP = "stop"
    END = "end"

    RESTART = "store restart"
    TERMINATE = "terminate backends"
    FLUSH = "script flush"
    CUT = "cut"
    REFUSE = "store refuses"
    STALL = "store stalls"
    HALF_OPEN = "store half-open"
    LOSE_ANSWER = "lose an answer"


WORKERS_ONLY = {Kind.KILL: 3, Kind.STOP: 2, Kind.END: 1}
ON_THE_WAY = {Kind.CUT: 2, Kind.REFUSE: 1, Kind.STALL: 1, Kind.LOSE_ANSWER: 2, Kind.HALF_OPEN: 1}
WEIGHTS: dict[str, dict[Kind, int]] = {
    "sqlite": WORKERS_ONLY,
    "postgres": {**WORKERS_ONLY, Kind.RESTART: 1, Kind.TERMINATE: 2, **ON_THE_WAY},
    "redis": {**WORKERS_ONLY, Kind.RESTART: 2, Kind.FLUSH: 1, **ON_THE_WAY},
    "redis-partitions": {**WORKERS_ONLY, Kind.RESTART: 2, Kind.FLUSH: 1, **ON_THE_WAY},
}
"""How often each kind is chosen, for each engine."""


TIME_FOR_HALF_OPEN = 30.0
"""Seconds that a plan must have for half-open connections: it takes 20 until a worker gives one up."""


@dataclass(frozen=True, slots=True)
class Strike:
    """One disturbance: so many seconds after the fleet has begun, for so many seconds. `worker`: None = the store."""

    at: float
    kind: Kind
    seconds: float
    worker: int | None = None

    def __str__(self) -> str:
        whom = "" if self.worker is None else f" worker {self.worker}"
        return f"{self.at:6.2f} s  {self.kind}{whom}" + (f", for {self.seconds:.2f} s" if self.seconds else "")


@dataclass(frozen=True, slots=True)
class Plan:
    """All strikes of one drill, by time."""

    seed: int
    engine: str
    strikes: tuple[Strike, ...]

    def __str__(self) -> str:
        head = f"plan of seed {self.seed} for {self.engine}: {len(self.strikes)} disturbances"
        return "\n".join([head, *(f"  {strike}" for strike in self.strikes)])


def make_plan(seed: int, engine: str, *, seconds: float, workers: int, lease: float) -> Plan:
    """Strikes for so many seconds; each kind that the engine knows comes at least once if there is time for it."""
    chance = random.Random(f"{seed} {engine}")
    weights = dict(WEIGHTS[engine])
    if Kind.HALF_OPEN in weights and seconds < TIME_FOR_HALF_OPEN:
        del weights[Kind.HALF_OPEN]
    kinds = list(weights)
    chance.shuffle(kinds)
    strikes: list[Strike] = []
    at = chance.uniform(0.5, 1.5)
    while at < seconds:
        kind = kinds.pop() if kinds else chance.choices(list(weights), list(weights.values()))[0]
        strikes.append(_strike(chance, at, kind, workers, lease))
        at += chance.uniform(0.3, 1.5)
    return Plan(seed, engine, tuple(strikes))


def _strike(chance: random.Random, at: float, kind: Kind, workers: int, lease: float) -> Strike:
    match kind:
        case Kind.KILL | Kind.END:
            return Strike(at, kind, chance.uniform(0.0, 1.0), chance.randrange(workers))
        case Kind.STOP:
            least, most = chance.choice(((0.1, lease), (lease + 0.5, lease + 3.0), (2 * lease + 1.0, 2 * lease + 6.0)))
            return Strike(at, kind, chance.uniform(least, most), chance.randrange(workers))
        case Kind.REFUSE | Kind.STALL | Kind.HALF_OPEN:
            return Strike(at, kind, chance.uniform(0.3, 2.5))
        case Kind.RESTART:
            return Strike(at, kind, chance.uniform(0.0, 1.0))
        case Kind.TERMINATE | Kind.FLUSH | Kind.CUT | Kind.LOSE_ANSWER:
            return Strike(at, kind, 0.0)
