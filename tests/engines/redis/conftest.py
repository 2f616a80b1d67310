"""What the tests of Redis stand on: a server for each module, and what is closed at the end of a test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack

import pytest

from servers.redis import RedisServer, running_redis
from servers.redis_stage import own_store, staged
from shoal.testing.contract.scene import Scene


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    """A server that the tests of a module share. Each has a store of its own there: see `own_store`."""
    with running_redis("--appendfsync", "everysec") as running:
        yield running


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    """What a test opens, closed in turn when it is over."""
    async with AsyncExitStack() as made:
        yield made


@pytest.fixture
async def scene(server: RedisServer, stack: AsyncExitStack) -> Scene:
    """A store of one partition, on a jumping clock."""
    return await staged(stack, own_store(server))
