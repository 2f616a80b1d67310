"""A store on each engine, for crawls that must come to the same on all of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from shoal.frontier.contract.engine import Engine
from shoal.frontier.open import open_engine
from support.engine_urls import ENGINES, emptied


@pytest.fixture(params=[*ENGINES, "redis in partitions"])
async def any_engine(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Engine]:
    kind, _, apart = request.param.partition(" in ")
    async with emptied(kind, tmp_path) as url:
        engine = await open_engine(f"{url}?partitions=4" if apart else url)
        yield engine
        await engine.close()
