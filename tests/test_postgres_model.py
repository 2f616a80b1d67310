"""PostgreSQL against the reference model. A long run: HYPOTHESIS_EXAMPLES=2000 pytest tests/test_postgres_model.py"""

from __future__ import annotations

import os

import asyncpg  # type: ignore[import-untyped]
from hypothesis import HealthCheck, settings

from servers.postgres import shared_server
from shoal.frontier.postgres.engine import open_postgres
from shoal.testing.contract.harness import Harness
from shoal.testing.frontier_machine import FrontierMachine
from test_postgres_contract import PostgresHarness

TABLES = "run, line, site, slot, visit, task, worker, seen, item, dead, cache, tally, tally_change, exit_book, note"


class PostgresMachine(FrontierMachine):
    async def open_harness(self) -> Harness:
        harness = PostgresHarness(shared_server().url(schema="model"))
        harness.engine = await open_postgres(harness.url, clock=harness.clock)
        connection = await asyncpg.connect(shared_server().url())
        await connection.execute(f"SET search_path TO model; TRUNCATE {TABLES}")
        await connection.close()
        return harness

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
