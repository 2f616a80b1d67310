"""PostgreSQL against the reference model. A long run: HYPOTHESIS_EXAMPLES=2000 pytest -k postgres_model"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

from shoal.testing.contract.harness import Harness
from shoal.testing.model.machine import FrontierMachine
from support.harnesses.postgres import PostgresHarness


class PostgresMachine(FrontierMachine):
    async def open_harness(self) -> Harness:
        return await PostgresHarness().open()

    async def close_harness(self, harness: Harness) -> None:
        assert isinstance(harness, PostgresHarness)
        await harness.close()


TestPostgresModel = PostgresMachine.TestCase
TestPostgresModel.settings = settings(
    max_examples=int(os.environ.get("HYPOTHESIS_EXAMPLES", "40")),
    stateful_step_count=40,
    deadline=None,
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
