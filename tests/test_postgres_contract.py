"""PostgreSQL keeps the contract of the frontier, on a real server."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from typing import ClassVar

import pytest

from servers.postgres import shared_server
from shoal.clock import Millis
from shoal.frontier.postgres.engine import PostgresEngine, open_postgres
from shoal.testing.frontier_contract import Capability, FrontierContract, Harness
from shoal.testing.jump_clock import JumpClock


class PostgresHarness:
    """A schema of the test's own, on a jumping clock."""

    lacks: ClassVar[dict[Capability, str]] = {}

    def __init__(self, url: str) -> None:
        self.url = url
        self.clock = JumpClock()
        self.engine: PostgresEngine
        self.others: list[PostgresEngine] = []

    async def advance(self, ms: Millis) -> None:
        self.clock.advance(ms)

    async def another(self) -> PostgresEngine:
        self.others.append(await open_postgres(self.url, clock=self.clock))
        return self.others[-1]

    async def reopen(self) -> None:
        await self.engine.close()
        self.engine = await open_postgres(self.url, clock=self.clock)

    async def close(self) -> None:
        for engine in (self.engine, *self.others):
            await engine.close()


class TestPostgres(FrontierContract):
    @pytest.fixture
    async def harness(self) -> AsyncIterator[Harness]:
        schema = f"test_{secrets.token_hex(6)}"
        made = PostgresHarness(shared_server().url(schema=schema))
        made.engine = await open_postgres(made.url, clock=made.clock)
        yield made
        await made.close()
        shared_server().sql(f"DROP SCHEMA {schema} CASCADE", database="shoal")
