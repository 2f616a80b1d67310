"""Redis for the contract and the model: a prefix of the test's own, on a real server."""

from __future__ import annotations

import itertools
from typing import ClassVar

from servers.redis import RedisServer
from shoal.frontier.redis.engine import RedisEngine, open_redis
from shoal.testing.contract.harness import Capability
from support.harnesses.jumping import JumpingHarness

_names = itertools.count()


class RedisHarness(JumpingHarness[RedisEngine]):
    """A store with a prefix of the test's own, on a jumping clock."""

    def __init__(self, server: RedisServer, partitions: int) -> None:
        super().__init__()
        self.url = f"{server.url}?prefix=test-{next(_names)}&partitions={partitions}"

    async def handle(self) -> RedisEngine:
        return await open_redis(self.url, clock=self.clock)


class PartitionedHarness(RedisHarness):
    """Spread over three partitions."""

    lacks: ClassVar = {Capability.EXACT_CAPS: "each partition keeps its share of a cap"}
