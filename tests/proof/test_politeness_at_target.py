"""The target's own access log is the judge of politeness."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.testing.access_log import AccessLog
from support.crawling import crawl_with_kills, items, kill_all, site_process, start, wait_for, write_scraper

DELAY = 0.2
PAGES = 25
SITES = 4
CRAWLS = 3


def _starts(port: int) -> list[str]:
    return [f"http://127.0.0.{number}:{port}/site/{PAGES}/" for number in range(1, SITES + 1)]


def test_four_processes_keep_the_delay_and_use_the_rate(tmp_path: Path) -> None:
    """The delay holds in every crawl. How much of the rate is used depends on the machine: a busy one shows little."""
    assert _rate_of_a_polite_crawl(tmp_path) >= 0.5


@pytest.mark.proof
def test_four_processes_use_all_of_the_rate(tmp_path: Path) -> None:
    """One crawl shows that the rate can be used: a stalled machine shows nothing."""
    rates: list[float] = []
    while len(rates) < CRAWLS and max(rates, default=0) < 0.95:
        folder = tmp_path / str(len(rates))
        folder.mkdir()
        rates.append(_rate_of_a_polite_crawl(folder))
    assert max(rates) >= 0.95


def _rate_of_a_polite_crawl(folder: Path) -> float:
    """What part of the possible rate the slowest slot used, from its first request to its last."""
    with site_process(folder) as (port, log):
        scraper = write_scraper(folder, _starts(port), delay=DELAY)
        crawl = start(folder, "run", scraper, "--workers", "4", "--quiet")
        assert crawl.wait(120) == 0
        seen = AccessLog.read(log)
    gaps = seen.gaps()
    used = min(len(of_slot) * DELAY / sum(of_slot) for of_slot in gaps.values())
    print(f"{len(seen)} requests, smallest gap {seen.smallest_gap():.4f} s, {used:.1%} of the rate is used")
    assert len(gaps) == SITES
    assert seen.smallest_gap() >= DELAY
    assert seen.most_at_once() == 1
    assert len(items(folder)) == SITES * PAGES
    return used


def test_the_delay_holds_across_kills_and_restarts(tmp_path: Path) -> None:
    with site_process(tmp_path) as (port, log):
        scraper = write_scraper(tmp_path, _starts(port), delay=DELAY)
        struck = crawl_with_kills(tmp_path, scraper, log, "--workers", "2", kills=4, pages=SITES * PAGES, seed=3)
        seen = AccessLog.read(log)
    print(f"{struck} kills struck; {len(seen)} requests, smallest gap {seen.smallest_gap():.4f} s")
    assert struck >= 2
    assert seen.smallest_gap() >= DELAY
    assert len(items(tmp_path)) == SITES * PAGES


def test_a_killed_process_is_replaced_and_its_tasks_come_back(tmp_path: Path) -> None:
    """The parent goes on when one of its processes is killed; the delay holds all the same."""
    with site_process(tmp_path) as (port, log):
        scraper = write_scraper(tmp_path, _starts(port), delay=DELAY)
        crawl = start(tmp_path, "run", scraper, "--quiet")
        wait_for(log, SITES * 4)
        helper = start(tmp_path, "worker", scraper, "--run-id", "last", "--quiet")
        wait_for(log, SITES * 12)
        kill_all(helper)
        assert crawl.wait(120) == 0
        seen = AccessLog.read(log)
    print(f"{len(seen)} requests, smallest gap {seen.smallest_gap():.4f} s")
    assert seen.smallest_gap() >= DELAY
    assert len(items(tmp_path)) == SITES * PAGES
