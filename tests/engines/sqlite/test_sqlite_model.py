"""SQLite against the reference model. A long run: HYPOTHESIS_EXAMPLES=2000 pytest -k sqlite_model"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings

from shoal.testing.contract.harness import Harness
from shoal.testing.model.machine import FrontierMachine
from support.harnesses.sqlite import SqliteHarness

MEMORY = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - durability is not the question here


class SqliteMachine(FrontierMachine):
    async def open_harness(self) -> Harness:
        folder = Path(tempfile.mkdtemp(prefix="shoal-model-", dir=MEMORY))
        return await SqliteHarness(folder / "shoal.db").open()

    async def close_harness(self, harness: Harness) -> None:
        assert isinstance(harness, SqliteHarness)
        await harness.close()
        shutil.rmtree(harness.path.parent)


TestSqliteModel = SqliteMachine.TestCase
TestSqliteModel.settings = settings(
    max_examples=int(os.environ.get("HYPOTHESIS_EXAMPLES", "80")),
    stateful_step_count=40,
    deadline=None,
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
