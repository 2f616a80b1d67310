"""Two gateways for strangers: one that asks for keys, and one that does not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.gateway_process import Served, served
from support.guarded_gateway import Guarded
from support.waiting import wait_until


@pytest.fixture(scope="package")
def open_gateway(shop: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Without keys, with a page of its own."""
    static = tmp_path_factory.mktemp("page")
    (static / "index.html").write_text("<h1>search</h1>")
    settings = {"static": str(static), "cors": '["https://shop.example"]', "hosts": '["gate.example"]'}
    with served(tmp_path_factory.mktemp("open"), shop, **settings) as running:
        yield running
        _check(running)


@pytest.fixture(scope="package")
def guarded(shop: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    with served(folder, shop) as running:
        key = Guarded(running, "").make_key("ada")
        wait_until(lambda: running.ask("/jobs").status == 401, "the gateway has heard that there are keys")
        yield Guarded(running, key)
        _check(running)


def _check(running: Served) -> None:
    assert running.process.poll() is None, "it still runs"
    log = (running.folder / "serve.log").read_text()
    assert "Traceback" not in log, log[-5000:]
    assert "gateway.failed" not in log
