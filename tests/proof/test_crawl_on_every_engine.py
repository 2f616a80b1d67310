"""The same scraper, the same command and the same proof, on the engines of the fleet: several processes, one killed."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from servers.postgres import shared_server
from servers.redis import running_redis
from shoal.testing.access_log import AccessLog
from support.crawling import items, kill_all, killed_in_the_middle, site_process, start, stats, wait_for, write_scraper
from support.engine_urls import mainly_on

DELAY = 0.2
PAGES = 25
SITES = 4


@pytest.fixture(params=mainly_on("postgresql", "redis in partitions", others=["redis"]))
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "postgresql":
        yield shared_server().url(schema=f"crawl_{secrets.token_hex(4)}")
        return
    with running_redis() as server:
        yield f"{server.url}?partitions={1 if request.param == 'redis' else 4}"


def test_several_processes_crawl_politely_and_lose_nothing_when_one_is_killed(
    tmp_path: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOAL_ENGINE", engine)
    with site_process(tmp_path) as (port, log):
        starts = [f"http://127.0.0.{number}:{port}/site/{PAGES}/" for number in range(1, SITES + 1)]
        scraper = write_scraper(tmp_path, starts, delay=DELAY)
        crawl = start(tmp_path, "run", scraper, "--workers", "2", "--quiet")
        wait_for(log, SITES * 3)
        other = start(tmp_path, "worker", scraper, "--run-id", "last", "--quiet")
        wait_for(log, SITES * 12)
        kill_all(other)
        assert crawl.wait(120) == 0, (tmp_path / "command.log").read_text()
        seen = AccessLog.read(log)
    found = Counter(str(item["url"]) for item in items(tmp_path))
    counters = stats(tmp_path)
    print(f"{len(seen)} requests, smallest gap {seen.smallest_gap():.4f} s; {counters}")
    assert len(found) == SITES * PAGES
    assert set(found.values()) == {1}
    assert seen.smallest_gap() >= DELAY
    assert seen.most_at_once() == 1
    assert (counters["completed"], counters["remaining"], counters["failed"]) == (SITES * PAGES, 0, 0)


def test_a_sitemap_is_read_to_its_end_whoever_dies_over_it(
    tmp_path: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOAL_ENGINE", engine)
    killed_in_the_middle(tmp_path)
