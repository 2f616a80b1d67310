"""A shop, and gateways in front of it: started once, for all files of tests that need no others."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from shoal.frontier.sqlite.engine import SqliteEngine
from shoal.gateway.options import GatewayOptions
from shoal.gateway.service import GatewayService
from support.gateway_parts import Tap, shop_scraper
from support.gateway_process import Served, open_shop, served


@pytest.fixture(scope="session")
def shop() -> Iterator[str]:
    with open_shop() as url:
        yield url


@pytest.fixture(scope="session")
def gateway(shop: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A whole service: one gateway process, one worker."""
    with served(tmp_path_factory.mktemp("whole"), shop, "--with-workers", start_timeout="1") as running:
        yield running
        assert running.stop() == 0
        log = (running.folder / "serve.log").read_text()
        assert "gateway.failed" not in log
        assert "Traceback" not in log


@pytest.fixture(scope="session")
def idle(shop: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A gateway without workers, where jobs wait."""
    settings = {"cors": '["https://shop.example"]', "max_tasks": "100", "max_body": "10000"}
    with served(tmp_path_factory.mktemp("idle"), shop, **settings) as running:
        yield running


@pytest.fixture
def tap(engine: SqliteEngine) -> Tap:
    made = Tap(engine)
    engine.jobs = made  # type: ignore[assignment]
    return made


@pytest.fixture
async def service(engine: SqliteEngine, tap: Tap) -> AsyncIterator[GatewayService]:
    made = GatewayService(engine, [shop_scraper()], GatewayOptions(max_queue=500, store_patience=60))
    async with made.running():
        yield made
