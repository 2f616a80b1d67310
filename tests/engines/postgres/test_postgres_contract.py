"""PostgreSQL keeps the contract of the frontier, on a real server."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from shoal.testing.frontier_contract import FrontierContract, Harness
from support.harnesses.postgres import PostgresHarness


class TestPostgres(FrontierContract):
    @pytest.fixture
    async def harness(self) -> AsyncIterator[Harness]:
        made = await PostgresHarness().open()
        yield made
        await made.close()
