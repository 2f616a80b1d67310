"""This tree beside another one: crawl and frontier of both, in turns, in one sitting.

python benchmarks/compare.py ../older                     # crawl, and cycles on all three engines
python benchmarks/compare.py ../older --rounds 7 --part crawl
python benchmarks/compare.py ../older --quick             # to see that it works

Each tree is measured by its own benchmarks, with its own code and the Python that runs this; so modules may have moved
and names may have changed between the two. The other tree is copied first, and nothing is written into it. Each round
begins with the other of the two. What counts is the median over rounds of the ratio within a round.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from parts.shared.report import (
    BenchmarkError,
    Goal,
    facts,
    goals_table,
    machine,
    number,
    progress,
    save_section,
    table,
)
from parts.shared.workshop import TREE, WORKSHOP

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

CRAWL = "crawl"
ENGINES = ("sqlite", "postgresql", "redis")
WITHIN = 0.95
"""The share of the other tree's figures that this one is to reach."""
BUILT_OF = ("src", "benchmarks", "tests/servers")

Figures = dict[str, float]
"""What was measured, by what it is; more is better."""


@dataclass(frozen=True)
class Compared:
    """One figure over all rounds: (here, there) of each."""

    what: str
    rounds: list[tuple[float, float]]

    @property
    def here(self) -> float:
        return median(here for here, _ in self.rounds)

    @property
    def there(self) -> float:
        return median(there for _, there in self.rounds)

    @property
    def ratios(self) -> list[float]:
        return sorted(here / there for here, there in self.rounds)

    @property
    def ratio(self) -> float:
        return median(self.ratios)


def compare(other: Path, parts: Sequence[str], options: argparse.Namespace) -> list[Compared]:
    """Measure both trees, part by part, so that what is compared was measured within minutes."""
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for part in parts:
        for turn in range(options.rounds):
            order = (TREE, other) if turn % 2 == 0 else (other, TREE)
            measured = {tree: measure(tree, part, options) for tree in order}
            for what, here in measured[TREE].items():
                if (there := measured[other].get(what)) is not None:
                    found[what].append((here, there))
                    progress(f"{part}: round {turn + 1}: {what}: {here:,.0f} to {there:,.0f} = {here / there:.3f}")
    return [Compared(what, rounds) for what, rounds in found.items()]


def measure(tree: Path, part: str, options: argparse.Namespace) -> Figures:
    """One part of one tree, once."""
    if part == CRAWL:
        words = ["crawl.py", "--only", "Shoal", "--pages", str(options.pages), "--rounds", "1"]
        shoal = _run(tree, words)["medians"]["Shoal"]
        return {"crawl: pages per CPU second": shoal["pages_per_cpu_second"]}
    words = ["frontier.py", "--part", "cycles", "--engine", part, *(["--quick"] if options.quick else [])]
    [figures] = _run(tree, words).values()
    return dict(_cycles(part, figures["cycles"]))


def _cycles(engine: str, cycles: dict[str, dict[str, float]]) -> Iterator[tuple[str, float]]:
    for shape, rate in cycles.items():
        yield f"{engine}, {shape}: tasks per CPU second", rate["per_cpu_second"]


def _run(tree: Path, words: list[str]) -> dict[str, Any]:
    environment = os.environ | {"PYTHONPATH": str(tree / "src")}
    command = [sys.executable, str(tree / "benchmarks" / words[0]), *words[1:], "--json"]
    with tempfile.TemporaryFile("w+") as errors:
        running = subprocess.Popen(
            command,
            cwd=tree,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        try:
            said, _ = running.communicate()
        except BaseException:
            running.terminate()  # and not kill: it ends the servers that it has started
            running.wait()
            raise
        if running.returncode != 0:
            errors.seek(0)
            raise BenchmarkError(f"{' '.join(command)} ended with {running.returncode}:\n{errors.read()[-2000:]}")
    answer: dict[str, Any] = json.loads(said)
    return answer


def copied(other: Path, folder: Path) -> Path:
    """What is needed of the other tree, in `folder`. Raises BenchmarkError if it is no tree of Shoal."""
    for part in BUILT_OF:
        if (other / part).is_dir():
            shutil.copytree(other / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    if not (folder / "benchmarks" / "frontier.py").exists():
        raise BenchmarkError(f"{other} has no benchmarks/frontier.py: name the folder of another version of Shoal.")
    return folder


def shown(compared: Sequence[Compared]) -> str:
    """Both trees side by side, and the goal."""
    rows = [
        [
            each.what,
            number(each.here),
            number(each.there),
            f"{each.ratio:.3f}",
            f"{each.ratios[0]:.3f} to {each.ratios[-1]:.3f}",
        ]
        for each in compared
    ]
    goals = [Goal(f"{each.what}, this tree to the other", WITHIN, each.ratio, unit="x") for each in compared]
    return f"{table(['median of', 'this tree', 'the other', 'ratio', 'rounds'], rows)}\n\n{goals_table(goals)}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path, help="the folder of the other version")
    parser.add_argument("--part", action="append", choices=[CRAWL, *ENGINES], help="only this; may be repeated")
    parser.add_argument("--rounds", type=int, default=5, help="how often each is measured (default 5)")
    parser.add_argument("--pages", type=int, default=3_000, help="pages of the site that is crawled (default 3000)")
    parser.add_argument("--quick", action="store_true", help="less of everything: to see that it works")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.add_argument("--save", action="store_true", help="write the figures to RESULTS.md")
    return parser.parse_args()


def main() -> None:
    """Compare, print, and keep if asked. Exit code 1 if a figure is below the goal."""
    options = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if options.quick:
        options.pages, options.rounds = min(options.pages, 300), min(options.rounds, 2)
    WORKSHOP.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="other-", dir=WORKSHOP) as folder:
        try:
            other = copied(options.other.resolve(), Path(folder))
            for tree in (TREE, other):
                compileall.compile_dir(tree / "src", quiet=1)
            compared = compare(other, options.part or [CRAWL, *ENGINES], options)
        except BenchmarkError as error:
            sys.exit(str(error))
    about = machine() | {"rounds": str(options.rounds), "site": f"{options.pages:,} pages"}
    if options.json:
        print(json.dumps({"figures": {each.what: each.rounds for each in compared}, "machine": about}, indent=2))
    else:
        print(f"{shown(compared)}\n\n{facts(about)}")
    if options.save:
        body = f"## Before and after\n\n{shown(compared)}\n\n{facts(about)}"
        save_section("compare", body)
    sys.exit(any(each.ratio < WITHIN for each in compared))


if __name__ == "__main__":
    main()
