"""The figures of the frontier as tables, as goals and as JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from parts.frontier.cycles import FOUR, POLITE, STRICT, Rate
from parts.frontier.load import BATCH
from parts.frontier.peers import SHOAL, Contest, ratio
from parts.shared.report import Goal, goals_table, number, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from parts.frontier.claims import ClaimCost
    from parts.frontier.pinned import Pinned
    from parts.frontier.size import Size

CYCLE_GOALS = {"sqlite": 15_000.0, "redis": 25_000.0, "postgresql": 7_000.0}
SIZE_GOALS = {"sqlite": 250.0, "redis": 300.0}
KEPT_GOAL = 0.5
NAMES = {SHOAL: "Shoal", "saq": "SAQ"}


@dataclass
class Figures:
    """What was measured of one engine. None and empty = that part was left out."""

    kind: str
    cycles: dict[str, Rate] = field(default_factory=dict)
    claims: list[ClaimCost] = field(default_factory=list)
    sizes: list[Size] = field(default_factory=list)
    pinned: Pinned | None = None

    @property
    def growth(self) -> float:
        """How many times dearer a claim is at the worst scale than at the first: wall or CPU, whichever is worse."""
        first = self.claims[0]
        return max(max(cost.wall_ms / first.wall_ms, cost.cpu_ms / first.cpu_ms) for cost in self.claims)


def goals(figures: Figures) -> list[Goal]:
    """DESIGN.md's goals for this kind of engine, of the parts that were measured."""
    found = []
    if figures.cycles:
        limit = CYCLE_GOALS[figures.kind]
        found += [
            Goal(f"cycle: {shape.name}", limit, figures.cycles[shape.name].per_second, "/s")
            for shape in (STRICT, FOUR, POLITE)
        ]
    if figures.claims:
        sites = max(cost.scale.sites for cost in figures.claims)
        tasks = max(cost.scale.tasks for cost in figures.claims)
        what = f"claim: dearest, up to {sites:,} sites and {tasks:,} waiting tasks, to that with 100"
        found.append(Goal(what, 2.0, figures.growth, "x", at_least=False))
    for size in figures.sizes if figures.kind in SIZE_GOALS else ():
        what = f"size: each of {size.urls:,} waiting URLs of {size.sites:,} sites"
        found.append(Goal(what, SIZE_GOALS[figures.kind], size.each, "B", at_least=False))
    if figures.pinned:
        what = f"share of the rate that is left when a snapshot has been open for {figures.pinned.seconds:.0f} s"
        found.append(Goal(what, KEPT_GOAL, figures.pinned.kept))
    return found


def shown(figures: Figures) -> str:
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
        parts.append(table(head, [_claim_row(cost) for cost in figures.claims]))
    if figures.sizes:
        rows = [[f"{size.urls:,}", f"{size.sites:,}", number(size.each)] for size in figures.sizes]
        parts.append(table(["waiting URLs", "sites", "bytes each"], rows))
    if figures.pinned:
        pinned = figures.pinned
        rows = [
            ["before", number(pinned.before), number(pinned.cpu_before)],
            [f"{pinned.seconds:.0f} s old", number(pinned.after), number(pinned.cpu_after)],
        ]
        parts.append(table(["open snapshot", "tasks/s", "tasks/CPU s"], rows))
    parts.append(goals_table(goals(figures)))
    return "\n\n".join(parts)


def as_json(figures: Figures) -> dict[str, object]:
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
        "bytes_per_waiting_url": {size.sites: size.each for size in figures.sizes},
        "pinned": None if figures.pinned is None else {"before": figures.pinned.before, "after": figures.pinned.after},
        "goals": [goal.as_json() for goal in goals(figures)],
    }


def peers_shown(contests: Sequence[Contest]) -> str:
    """The contest as tables."""
    rows = [
        [_name(contest), contest.contestant.server, number(contest.per_second), number(contest.per_cpu_second)]
        for contest in contests
    ]
    head = ["queue", "server", "jobs/s", "jobs/CPU s"]
    return f"{table(head, rows)}\n\n{goals_table(_peer_goals(contests))}"


def peers_as_json(contests: Sequence[Contest]) -> dict[str, object]:
    """The contest for `--json`."""
    return {
        "contests": [
            {
                "queue": contest.contestant.name,
                "server": contest.contestant.server,
                "per_second": contest.per_second,
                "per_cpu_second": contest.per_cpu_second,
            }
            for contest in contests
        ],
        "goals": [goal.as_json() for goal in _peer_goals(contests)],
    }


def _peer_goals(contests: Sequence[Contest]) -> list[Goal]:
    return [
        Goal(f"jobs per second: Shoal to {_name(contest)}", contest.contestant.share, ratio(contests, contest), "x")
        for contest in contests
        if contest.contestant.share is not None
    ]


def _name(contest: Contest) -> str:
    return NAMES.get(contest.contestant.name, contest.contestant.name)


def _claim_row(cost: ClaimCost) -> list[str]:
    return [
        f"{cost.scale.sites:,}",
        f"{cost.scale.tasks:,}",
        f"{cost.scale.due:,}",
        f"{cost.wall_ms:.2f}",
        f"{cost.cpu_ms:.2f}",
        f"{cost.settle_ms:.2f}",
    ]
