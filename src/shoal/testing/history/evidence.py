"""What is laid before the checker, and what it says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from shoal.core.clock import Millis, Moment
from shoal.frontier.contract.frontier import Run
from shoal.frontier.contract.reader import DeadLetter, Item
from shoal.testing.access_log import AccessLog
from shoal.testing.history.record import History


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is too much, where a rule leaves it open."""

    sweep: Millis = 2_400
    """The longest time between two sweeps of a worker."""
    slack: Millis = 10_000
    """How late a busy machine may be with what should happen at once."""
    hang_up: Millis = 100
    """How long a target may take to notice that whoever it answers has left."""
    overtakes: int = 10
    """How often one site may be visited while another, that is due, waits."""


@dataclass(frozen=True, slots=True)
class Rest:
    """A number that was read when all was over, and the most that it may be (I10)."""

    name: str
    found: int
    most: int


@dataclass(frozen=True, slots=True)
class Sighting:
    """How many items of the run could be read, asked between these two moments (I11).

    `swept_at`: when the last sweep before began, if one is known of; what was over by then must be gone.
    """

    since: Moment
    until: Moment
    items: int
    swept_at: Moment | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that is known about one run that has ended.

    `run`, `items`, `dead`: as the engine's reader gives them at rest. `target`: what the site saw; None = I4 is judged
    by the events alone. `expected`: the items of an undisturbed run, as JSON objects; None = not compared.
    """

    history: History
    run: Run
    items: Sequence[Item]
    dead: Sequence[DeadLetter]
    target: AccessLog | None = None
    expected: Sequence[bytes] | None = None
    rests: Sequence[Rest] = ()
    sightings: Sequence[Sighting] = ()
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class Breach:
    """A rule that was broken, and by what."""

    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.text}"


class Findings:
    """What one rule has found: breaches, and what it has counted on the way."""

    def __init__(self, rule: str) -> None:
        self.rule = rule
        self.breaches: list[Breach] = []
        self.counted: dict[str, float] = {}

    def breach(self, text: str) -> None:
        self.breaches.append(Breach(self.rule, text))

    def count(self, name: str, number: float) -> None:
        """Report a number."""
        self.counted[name] = number


class Verdict:
    """All findings. `breaches` is empty where every rule was kept."""

    MOST_SHOWN = 5
    """Breaches of one rule that are shown; the rest are only counted."""

    def __init__(self, findings: Sequence[Findings]) -> None:
        self.findings = findings

    @property
    def breaches(self) -> list[Breach]:
        return [breach for finding in self.findings for breach in finding.breaches]

    def counted(self, rule: str) -> dict[str, float]:
        """What was counted for a rule."""
        return {name: value for each in self.findings if each.rule == rule for name, value in each.counted.items()}

    def text(self) -> str:
        """One line per rule, and the breaches below it."""
        lines: list[str] = []
        for finding in self.findings:
            numbers = ", ".join(f"{name} {_shown(value)}" for name, value in finding.counted.items())
            mark = "broken" if finding.breaches else "kept"
            lines.append(f"{finding.rule:<7} {mark:<6} {numbers}")
            lines += [f"        {breach.text}" for breach in finding.breaches[: self.MOST_SHOWN]]
            if len(finding.breaches) > self.MOST_SHOWN:
                lines.append(f"        and {len(finding.breaches) - self.MOST_SHOWN} more")
        return "\n".join(lines)


def canonical(body: bytes) -> bytes:
    """A JSON object in the one form in which equal objects are equal."""
    return msgspec.json.encode(msgspec.json.decode(body), order="sorted")


def differences(found: Sequence[bytes], expected: Sequence[bytes]) -> tuple[Counter[bytes], Counter[bytes]]:
    """What is missing, and what is there too often."""
    have, want = Counter(map(canonical, found)), Counter(map(canonical, expected))
    return want - have, have - want


def _shown(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"
