"""SQLite for the contract and the model: a file of the test's own."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import ClassVar

from shoal.frontier.sqlite.engine import SqliteEngine, open_sqlite
from shoal.frontier.sqlite.store.connection import connect
from shoal.testing.contract.harness import Capability
from support.harnesses.jumping import JumpingHarness


class SqliteHarness(JumpingHarness[SqliteEngine]):
    """A file in a folder of the test's own, on a jumping clock."""

    lacks: ClassVar = {Capability.LANES_OF_SHARED_QUEUES: "lines are counted per queue"}

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        path.write_bytes(_new_file())

    async def handle(self) -> SqliteEngine:
        return await open_sqlite(self.path, clock=self.clock)


@cache
def _new_file() -> bytes:
    """Made once: to copy it saves most of the cost of creating one."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "template.db"
        connect(path, create=True).close()
        return path.read_bytes()
