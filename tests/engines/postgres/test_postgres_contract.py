"""PostgreSQL keeps the contract of the frontier, on a real server."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator

import pytest

from servers.postgres import shared_server
from shoal.testing.frontier_contract import FrontierContract, Harness
from support.harnesses.postgres import PostgresHarness


class TestPostgres(FrontierContract):
    @pytest.fixture
    async def harness(self) -> AsyncIterator[Harness]:
        schema = f"test_{secrets.token_hex(6)}"
        made = await PostgresHarness(shared_server().url(schema=schema)).open()
        yield made
        await made.close()
        shared_server().sql(f"DROP SCHEMA {schema} CASCADE", database="shoal")
