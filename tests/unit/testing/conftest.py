"""A hostile site, and a client that decodes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import aiohttp
import pytest

from shoal.testing.hostile_site import (
    HostileSite,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
async def site() -> AsyncIterator[HostileSite]:
    async with HostileSite() as hostile:
        yield hostile


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=20), auto_decompress=False) as session:
        yield session
