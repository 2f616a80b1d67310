"""SQLite keeps the contract of the frontier."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import ClassVar

import pytest

from shoal.clock import Millis
from shoal.frontier.sqlite.engine import SqliteEngine, open_sqlite
from shoal.testing.frontier_contract import Capability, FrontierContract, Harness
from shoal.testing.jump_clock import JumpClock


class SqliteHarness:
    """A file in a folder of the test's own, on a jumping clock."""

    lacks: ClassVar = {
        Capability.LANES_OF_SHARED_QUEUES: "lines are counted per queue",
    }

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = JumpClock()
        self.engine: SqliteEngine
        self.others: list[SqliteEngine] = []

    async def advance(self, ms: Millis) -> None:
        self.clock.advance(ms)

    async def another(self) -> SqliteEngine:
        self.others.append(await open_sqlite(self.path, clock=self.clock))
        return self.others[-1]

    async def reopen(self) -> None:
        await self.engine.close()
        self.engine = await open_sqlite(self.path, clock=self.clock)

    async def close(self) -> None:
        for engine in (self.engine, *self.others):
            await engine.close()


class TestSqlite(FrontierContract):
    @pytest.fixture
    async def harness(self, tmp_path: Path) -> AsyncIterator[Harness]:
        made = SqliteHarness(tmp_path / "shoal.db")
        made.engine = await open_sqlite(made.path, clock=made.clock)
        yield made
        await made.close()
