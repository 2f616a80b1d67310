"""Proxies that die, hang, want a password or lie: charged to the exit, and every page is had all the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from servers.lying_proxies import Lie, LyingProxies
from servers.proxies import free_port
from shoal.core.exit_address import parse_exit
from shoal.core.task import Policy
from shoal.testing.hostile_site import HostileSite
from support.engine_urls import ENGINES, empty_store
from support.fleet import ways, work_together
from support.working import reader

PAGES = 60
GOOD = ["source://127.0.0.2", "source://127.0.0.3", "source://127.0.0.4"]
DELAY = 100
SCHEMES = {Lie.NO_SOCKS: "socks5"}


@pytest.fixture(params=ENGINES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with empty_store(request.param, tmp_path) as url:
        yield url


async def test_every_page_is_had_although_most_exits_lie(store: str) -> None:
    async with HostileSite(host="0.0.0.0") as site, LyingProxies().running() as liars:  # noqa: S104 - loopback only
        bad = {lie.value: f"{SCHEMES.get(lie, 'http')}://127.0.0.1:{port}" for lie, port in liars.ports.items()}
        bad["is dead"] = f"http://127.0.0.1:{free_port()}"
        exits = ways(*GOOD, *bad.values())
        urls = [site.url(f"/site/{PAGES}/p/{page}") for page in range(PAGES)]
        scraper = reader(delay=DELAY / 1000, timeout=1)
        worked = await work_together(store, scraper, urls, exits, workers=2, policy=Policy(delay=DELAY))
        log = site.log
    charged = {name: record.failures for name, record in worked.exits.items() if record.failures}
    print({lie: charged.get(parse_exit(way).name) for lie, way in bad.items()}, worked.counters)
    assert Counter(str(item["url"]) for item in worked.items) == Counter(urls)
    assert (worked.counters.dead, worked.counters.retries) == (0, 0)
    assert {entry.peer for entry in log} == {"127.0.0.2", "127.0.0.3", "127.0.0.4"}
    assert log.smallest_gap() >= DELAY / 1000
    assert charged.keys() == {parse_exit(way).name for way in bad.values()}
