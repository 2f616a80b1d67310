"""Stores in private Redis servers, and scenes on them, for tests."""

from __future__ import annotations

import itertools
from contextlib import AsyncExitStack
from typing import Any, ClassVar

from servers.redis import RedisServer
from shoal.frontier.redis.engine import RedisEngine, open_redis
from shoal.testing.contract.scene import Scene
from shoal.testing.jump_clock import JumpClock

prefixes = itertools.count()


async def opened(stack: AsyncExitStack, url: str, **options: Any) -> RedisEngine:
    """An engine that the stack closes."""
    engine = await open_redis(url, **options)
    stack.push_async_callback(engine.close)
    return engine


def own_store(server: RedisServer, partitions: int = 1) -> str:
    """A store of the test's own in a shared server."""
    return f"{server.url}?prefix=own-{next(prefixes)}&partitions={partitions}"


class Stage:
    """The little that `Scene` needs of a harness: an engine, and a clock that can be moved if the engine is on it."""

    lacks: ClassVar[dict[Any, str]] = {}

    def __init__(self, engine: Any, clock: JumpClock | None = None) -> None:
        self.engine = engine
        self.clock = clock or JumpClock()

    async def advance(self, ms: int) -> None:
        self.clock.advance(ms)

    async def another(self) -> Any:
        raise NotImplementedError

    async def reopen(self) -> None:
        raise NotImplementedError


async def staged(stack: AsyncExitStack, url: str, **options: Any) -> Scene:
    """A scene on a jumping clock. `options`: of the engine."""
    clock = JumpClock()
    return Scene(Stage(await opened(stack, url, clock=clock, **options), clock))
