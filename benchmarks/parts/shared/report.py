"""How figures are shown and kept: the machine, tables, goals, and the sections of RESULTS.md."""

from __future__ import annotations

import os
import platform
import re
import sqlite3
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from parts.shared.workshop import BENCHMARKS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

RESULTS = BENCHMARKS / "RESULTS.md"


class BenchmarkError(Exception):
    """A figure cannot be measured: one sentence that says why and what to do."""


@dataclass(frozen=True)
class Goal:
    """A figure of DESIGN.md beside what was measured. `measured` None = not measured in this run."""

    what: str
    limit: float
    measured: float | None
    unit: str = ""
    at_least: bool = True

    @property
    def met(self) -> bool | None:
        """Whether the goal is reached; None where nothing was measured."""
        if self.measured is None:
            return None
        return self.measured >= self.limit if self.at_least else self.measured <= self.limit

    def as_json(self) -> dict[str, object]:
        """The goal for `--json`."""
        return {
            "what": self.what,
            "measured": self.measured,
            "sign": ">=" if self.at_least else "<=",
            "goal": self.limit,
            "unit": self.unit,
            "met": self.met,
        }


def machine() -> dict[str, str]:
    """What the figures were measured on."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "CPU": f"{_cpu_model()}, {len(os.sched_getaffinity(0))} cores",
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "system": f"Linux {platform.release()}",
        "Python": platform.python_version(),
        "SQLite": sqlite3.sqlite_version,
        "load at the end": " ".join(f"{load:.2f}" for load in os.getloadavg()),
    }


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def number(value: float | None) -> str:
    """A figure with about three digits that mean something; empty where there is none."""
    if value is None:
        return ""
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table whose columns also line up in a terminal: figures to the right, but never the first column."""
    columns = list(zip(head, *rows, strict=True))
    widths = [max(3, *map(len, column)) for column in columns]
    right = [
        place > 0 and all(not cell or cell[0].isdigit() for cell in column[1:]) for place, column in enumerate(columns)
    ]

    def line(cells: Sequence[str]) -> str:
        shown = (c.rjust(w) if r else c.ljust(w) for c, w, r in zip(cells, widths, right, strict=True))
        return f"| {' | '.join(shown)} |"

    rule = (f"{'-' * (w - 1)}:" if r else "-" * w for w, r in zip(widths, right, strict=True))
    return "\n".join([line(head), f"| {' | '.join(rule)} |", *map(line, rows)])


def goals_table(goals: Sequence[Goal]) -> str:
    """Goals beside what was measured."""
    verdict = {True: "yes", False: "NO", None: "not measured"}
    rows = [
        [
            goal.what,
            f"{number(goal.measured)} {goal.unit}".strip() if goal.measured is not None else "",
            f"{'≥' if goal.at_least else '≤'} {number(goal.limit)} {goal.unit}".strip(),
            verdict[goal.met],
        ]
        for goal in goals
    ]
    return table(["what", "measured", "goal", "met"], rows)


def facts(values: Mapping[str, str]) -> str:
    """A description as one line of Markdown."""
    return "; ".join(f"{name}: {value}" for name, value in values.items())


def save_section(name: str, body: str, results: Path = RESULTS) -> None:
    """Put `body` into RESULTS.md as the section `name`, in place of what that section held."""
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    section = f"{begin}\n{body.strip()}\n{end}"
    text = results.read_text() if results.exists() else "# Results\n"
    held = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    changed, times = held.subn(lambda _: section, text)
    results.write_text(changed if times else f"{text.rstrip()}\n\n{section}\n")


def progress(words: str) -> None:
    """Say on stderr what is being done."""
    print(words, file=sys.stderr, flush=True)
