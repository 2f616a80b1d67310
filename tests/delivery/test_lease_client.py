"""Leases are got and ended as promised, on every engine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from shoal.testing.lease_client_contract import LeaseClientContract
from support.engine_urls import emptied

pytestmark = pytest.mark.usefixtures("own_temporary_files")


class TestOnSqlite(LeaseClientContract):
    @pytest.fixture
    async def store_url(self, tmp_path: Path) -> AsyncIterator[str]:
        async with emptied("sqlite", tmp_path) as url:
            yield url


class TestOnPostgres(LeaseClientContract):
    @pytest.fixture
    async def store_url(self, tmp_path: Path) -> AsyncIterator[str]:
        async with emptied("postgresql", tmp_path) as url:
            yield url


class TestOnRedis(LeaseClientContract):
    @pytest.fixture
    async def store_url(self, tmp_path: Path) -> AsyncIterator[str]:
        async with emptied("redis", tmp_path) as url:
            yield url
