"""Kill anything at any moment: the set of items is exactly that of an undisturbed run."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from shoal.testing.access_log import AccessLog
from shoal.testing.hostile_site import site_item
from support.crawling import crawl_with_kills, items, site_process, stats, write_scraper


def test_six_kills_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    _crawl_and_kill(tmp_path, kills=6, pages=1500)


@pytest.mark.proof
@pytest.mark.timeout(3600)
def test_a_hundred_kills_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    _crawl_and_kill(tmp_path, kills=100, pages=25_000)


def _crawl_and_kill(tmp_path: Path, *, kills: int, pages: int) -> None:
    with site_process(tmp_path) as (port, log):
        scraper = write_scraper(tmp_path, [f"http://127.0.0.1:{port}/site/{pages}/"], delay=0, concurrency=8)
        struck = crawl_with_kills(tmp_path, scraper, log, kills=kills, pages=pages, seed=7)
        seen = AccessLog.read(log)
    found = Counter(str(item["title"]) for item in items(tmp_path))
    counters = stats(tmp_path)
    again = sum(count - 1 for path, count in seen.counts().items() if path != "/robots.txt")
    print(f"{struck} kills struck; {len(seen)} requests for {pages} pages ({again} made again); {counters}")
    assert struck >= kills // 2
    assert found == Counter({site_item(number).title: 1 for number in range(pages)})
    assert counters["completed"] == pages
    assert (counters["pending"], counters["claimed"], counters["failed"]) == (0, 0, 0)
