"""A crawl by several exits, some of them broken, as the target saw it; and what Shoal says about it afterwards."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from servers.proxies import free_port, http_proxy, socks_proxy
from shoal.testing.access_log import AccessLog
from shoal.testing.hostile.ordinary import site_links
from support.command_line import shoal
from support.crawling import items, kill_all, said, site_process, start, stats, wait_for, write_scraper
from support.engine_urls import empty_store, mainly_on
from support.waiting import wait_until

DELAY = 0.3
PAGES = 40
MANY = 400
"""More than can be crawled while commands are given, however slow the machine."""


@pytest.fixture(params=mainly_on("postgresql"))
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with empty_store(request.param, tmp_path) as url:
        yield url


def test_each_exit_keeps_its_own_pace_and_broken_ones_cost_no_page(
    tmp_path: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOAL_ENGINE", engine)
    with ExitStack() as stack:
        port, log = stack.enter_context(site_process(tmp_path))
        http, socks = stack.enter_context(http_proxy("127.0.0.4")), stack.enter_context(socks_proxy("127.0.0.5"))
        ways = [
            "source://127.0.0.2",
            "source://127.0.0.3",
            f"http://127.0.0.1:{http}",
            f"socks5://127.0.0.1:{socks}",
            f"http://127.0.0.1:{free_port()}",
            f"socks5://127.0.0.1:{free_port()}",
        ]
        (tmp_path / "shoal.toml").write_text(f"[exits.default]\nways = {json.dumps(ways)}\n")
        scraper = write_scraper(tmp_path, [f"http://127.0.0.1:{port}/site/{PAGES}/"], delay=DELAY)
        crawl = start(tmp_path, "run", scraper, "--workers", "2", "--quiet")
        wait_for(log, 8)
        other = start(tmp_path, "worker", scraper, "--run-id", "last", "--quiet")
        wait_for(log, 20)
        kill_all(other)
        assert crawl.wait(120) == 0, (tmp_path / "command.log").read_text()
        seen = AccessLog.read(log)
    found = Counter(str(item["url"]) for item in items(tmp_path))
    peers = {entry.peer for entry in seen}
    print(f"{len(seen)} requests by {sorted(peers)}, smallest gap {seen.smallest_gap():.4f} s")
    assert len(found) == PAGES
    assert set(found.values()) == {1}
    assert peers == {"127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5"}
    assert seen.smallest_gap() >= DELAY
    assert stats(tmp_path)["failed"] == 0
    told = {exit_["name"]: exit_ for exit_ in said(tmp_path, "exits", "list", "--json")}
    broken = [exit_ for exit_ in told.values() if exit_["failures"]]
    assert {exit_["name"] for exit_ in broken} == {way.partition("://")[2] for way in ways[4:]}
    proof = said(tmp_path, "audit", "last", "--json")
    assert proof["clean"], proof
    assert proof["smallest_gap_ms"] >= DELAY * 1000
    assert proof["requests"] >= PAGES


def test_an_exit_that_is_added_is_used_and_a_banned_one_is_not(
    tmp_path: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOAL_ENGINE", engine)
    monkeypatch.chdir(tmp_path)
    with site_process(tmp_path) as (port, log):
        (tmp_path / "shoal.toml").write_text('[exits.default]\nways = ["source://127.0.0.2"]\n')
        url = f"http://127.0.0.1:{port}/site/{MANY}/"
        scraper = write_scraper(tmp_path, [url], delay=0.5)
        crawl = start(tmp_path, "run", scraper, "--quiet")

        def by(peer: str) -> int:
            return len(AccessLog.read(log).filter(peer=peer))

        wait_for(log, 2)
        assert shoal("exits", "add", "source://127.0.0.6", "source://127.0.0.7").returncode == 0
        assert shoal("exits", "ban", "127.0.0.7", "--site", f"127.0.0.1:{port}").returncode == 0
        before, others = by("127.0.0.7"), by("127.0.0.6")
        wait_until(lambda: by("127.0.0.6") >= others + 6, "the other new exit is used again and again")
        kill_all(crawl)
        seen = AccessLog.read(log)
    peers = Counter(entry.peer for entry in seen)
    print(f"{dict(peers)}; by the banned one {before} before it was banned")
    assert peers.keys() - {"127.0.0.7"} == {"127.0.0.2", "127.0.0.6"}
    assert peers["127.0.0.7"] <= before + 1, "the one that it had in hand"


def test_a_page_is_explained_while_its_crawl_runs(tmp_path: Path, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOAL_ENGINE", engine)
    with site_process(tmp_path) as (port, log):
        scraper = write_scraper(tmp_path, [f"http://127.0.0.1:{port}/site/{MANY}/"], delay=1.0)
        crawl = start(tmp_path, "run", scraper, "--quiet")
        wait_for(log, 2)
        last = f"http://127.0.0.1:{port}/site/{MANY}/p/{site_links(MANY, 0)[-2]}"
        [place] = wait_until(lambda: said(tmp_path, "explain", last, "--json"), "the first page has been read")
        kill_all(crawl)
    assert place["state"] == "waiting"
    assert place["ahead"] > 0
