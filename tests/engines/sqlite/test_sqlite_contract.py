"""SQLite keeps the contract of the frontier."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from shoal.testing.frontier_contract import FrontierContract, Harness
from support.harnesses.sqlite import SqliteHarness


class TestSqlite(FrontierContract):
    @pytest.fixture
    async def harness(self, tmp_path: Path) -> AsyncIterator[Harness]:
        made = await SqliteHarness(tmp_path / "shoal.db").open()
        yield made
        await made.close()
