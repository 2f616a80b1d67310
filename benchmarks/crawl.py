"""Shoal beside Scrapy, Crawlee and the bare aiohttp loop, on the same site, in one run.

Each crawls the whole site in a process of its own, in rounds, so that a noisy minute of the machine hits all of them.
What counts is pages per second of CPU time, and only ratios from one run.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from statistics import median
from typing import TYPE_CHECKING

from parts.crawl.crawlers import (
    PEERS,
    SHOAL,
    Crawl,
    crawl_with_peer,
    crawl_with_shoal,
    peer_versions,
    prepare_peers,
)
from parts.crawl.site_maker import PRODUCTS, START, make_site
from parts.crawl.static_server import serve
from parts.shared.report import BenchmarkError, Goal, facts, goals_table, machine, number, progress, save_section, table
from parts.shared.workshop import WORKSHOP

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

GOALS = {"Scrapy": 10.0, "Crawlee": 5.0, "bare loop": 0.7}
RSS_PAGES = 10_000
RSS_GOAL_MB = 120.0


def compare(pages: int, rounds: int, names: list[str], timeout: float) -> list[Crawl]:
    """All crawls of all rounds. Each round begins with another crawler."""
    crawls: list[Crawl] = []
    with serve(_site(pages)) as base:
        for turn in range(rounds):
            shift = turn % len(names)
            for name in names[shift:] + names[:shift]:
                crawls.append(_crawl(name, base + START, pages, timeout))
                cost = crawls[-1].cost
                progress(f"round {turn + 1}: {name}: {cost.seconds:.1f} s, {cost.cpu_seconds:.1f} s of CPU")
    return crawls


def measure_memory(timeout: float) -> Crawl:
    """One crawl of 10,000 pages by Shoal alone."""
    with serve(_site(RSS_PAGES)) as base:
        return _crawl(SHOAL, base + START, RSS_PAGES, timeout)


def medians(crawls: list[Crawl], name: str) -> dict[str, float] | None:
    """The median of each figure over a crawler's rounds; None if it did not take part."""
    own = [crawl for crawl in crawls if crawl.crawler == name]
    if not own:
        return None
    return {
        "pages": own[0].pages,
        "items": own[0].items,
        "seconds": median(crawl.cost.seconds for crawl in own),
        "cpu_seconds": median(crawl.cost.cpu_seconds for crawl in own),
        "pages_per_second": median(crawl.pages / crawl.cost.seconds for crawl in own),
        "pages_per_cpu_second": median(crawl.pages_per_cpu_second for crawl in own),
        "peak_mb": median(crawl.cost.peak_mb for crawl in own),
    }


def crawl_goals(figures: dict[str, dict[str, float] | None]) -> list[Goal]:
    """Shoal's ratio to each peer, where both were measured."""
    shoal = figures[SHOAL]
    goals = []
    for name, limit in GOALS.items():
        peer = figures[name]
        ratio = shoal["pages_per_cpu_second"] / peer["pages_per_cpu_second"] if shoal and peer else None
        goals.append(Goal(f"pages per CPU second: Shoal to {name}", limit, ratio, unit="x"))
    return goals


def crawl_table(figures: dict[str, dict[str, float] | None]) -> str:
    """One row a crawler; empty where it was not measured."""
    columns = {
        "pages": "pages",
        "items": "items",
        "seconds": "wall s",
        "pages_per_second": "pages/s",
        "cpu_seconds": "CPU s",
        "pages_per_cpu_second": "pages/CPU s",
        "peak_mb": "peak MB",
    }
    rows = [[name, *(number(values[key]) if values else "" for key in columns)] for name, values in figures.items()]
    return table(["crawler", *columns.values()], rows)


def _crawl(name: str, start: str, pages: int, timeout: float) -> Crawl:
    crawl = crawl_with_shoal(start, timeout) if name == SHOAL else crawl_with_peer(name, start, timeout)
    if (crawl.pages, crawl.items) != (pages, pages * PRODUCTS):
        raise BenchmarkError(
            f"{name} saw {crawl.pages} pages and {crawl.items} items; the site has {pages} and {pages * PRODUCTS}."
        )
    return crawl


def _site(pages: int) -> Path:
    root = WORKSHOP / f"site-{pages}"
    if not root.exists():
        progress(f"making a site of {pages} pages …")
    make_site(root, pages)
    return root


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=10_000, help="pages of the site (default 10000)")
    parser.add_argument("--rounds", type=int, default=2, help="crawls by each crawler (default 2)")
    parser.add_argument("--only", action="append", choices=[SHOAL, *PEERS], help="only this crawler; may be repeated")
    parser.add_argument("--rss", action="store_true", help="measure instead Shoal's memory over 10,000 pages")
    parser.add_argument("--timeout", type=float, default=900, help="seconds that one crawl may take (default 900)")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.add_argument("--save", action="store_true", help="write the figures to RESULTS.md")
    return parser.parse_args()


def main() -> None:
    """Measure, print, and keep if asked."""
    arguments = _arguments()
    # So that nginx and the crawl under way end with this process also when it is told to stop.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        if arguments.rss:
            _memory(arguments)
        else:
            _comparison(arguments)
    except BenchmarkError as error:
        sys.exit(str(error))


def _memory(arguments: argparse.Namespace) -> None:
    crawl = measure_memory(arguments.timeout)
    goal = Goal(f"peak memory of Shoal over {RSS_PAGES:,} pages", RSS_GOAL_MB, crawl.cost.peak_mb, "MB", at_least=False)
    _show(arguments, "memory", goals_table([goal]), {"goals": [goal.as_json()]}, machine())


def _comparison(arguments: argparse.Namespace) -> None:
    names = arguments.only or [SHOAL, *PEERS]
    peers = [name for name in names if name in PEERS]
    if peers:
        prepare_peers()
    crawls = compare(arguments.pages, arguments.rounds, names, arguments.timeout)
    figures = {name: medians(crawls, name) for name in [SHOAL, *PEERS]}
    goals = crawl_goals(figures)
    about = machine() | {"site": f"{arguments.pages:,} pages", "rounds": str(arguments.rounds)}
    if peers:
        about |= peer_versions()
    data = {
        "medians": figures,
        "goals": [goal.as_json() for goal in goals],
        "rounds": [
            {"crawler": crawl.crawler, "seconds": crawl.cost.seconds, "cpu_seconds": crawl.cost.cpu_seconds}
            for crawl in crawls
        ],
    }
    body = f"{crawl_table(figures)}\n\n{goals_table(goals)}"
    _show(arguments, "crawl", body, data, about)


def _show(
    arguments: argparse.Namespace, name: str, body: str, data: Mapping[str, object], about: dict[str, str]
) -> None:
    if arguments.json:
        print(json.dumps({**data, "machine": about}, indent=2))
    else:
        print(f"{body}\n\n{facts(about)}")
    if arguments.save:
        titles = {"crawl": "Crawl of one site, one process", "memory": "Memory of one worker"}
        save_section(name, f"## {titles[name]}\n\n{body}\n\n{facts(about)}")


if __name__ == "__main__":
    main()
