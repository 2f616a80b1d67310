"""What the tests of PostgreSQL stand on: a schema of their own in the server that all share, and an engine on it."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator

import pytest

from servers.postgres import shared_server
from shoal.frontier.postgres.engine import PostgresEngine, open_postgres


@pytest.fixture
async def schema() -> AsyncIterator[str]:
    name = f"test_{secrets.token_hex(6)}"
    yield name
    shared_server().sql(f"DROP SCHEMA IF EXISTS {name} CASCADE", database="shoal")


@pytest.fixture
async def engine(schema: str) -> AsyncIterator[PostgresEngine]:
    made = await open_postgres(shared_server().url(schema=schema))
    yield made
    await made.close()
