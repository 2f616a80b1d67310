"""SQLite for the contract and the model: a file of the test's own."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from shoal.frontier.sqlite.engine import SqliteEngine, open_sqlite
from shoal.testing.contract.harness import Capability
from support.harnesses.jumping import JumpingHarness


class SqliteHarness(JumpingHarness[SqliteEngine]):
    """A file in a folder of the test's own, on a jumping clock."""

    lacks: ClassVar = {Capability.LANES_OF_SHARED_QUEUES: "lines are counted per queue"}

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path

    async def handle(self) -> SqliteEngine:
        return await open_sqlite(self.path, clock=self.clock)
