"""Redis against the reference model. A long run: HYPOTHESIS_EXAMPLES=2000 pytest -k redis_model"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from servers.redis import RedisServer, running_redis
from shoal.testing.contract.harness import Harness
from shoal.testing.model.machine import FrontierMachine
from support.harnesses.redis import RedisHarness


class RedisMachine(FrontierMachine):
    server: RedisServer

    async def open_harness(self) -> Harness:
        return await RedisHarness(self.server, 1).open()

    async def close_harness(self, harness: Harness) -> None:
        assert isinstance(harness, RedisHarness)
        await harness.close()


@pytest.fixture(scope="module", autouse=True)
def _server() -> Iterator[None]:
    with running_redis("--appendfsync", "everysec") as RedisMachine.server:
        yield


TestRedisModel = RedisMachine.TestCase
TestRedisModel.settings = settings(
    max_examples=int(os.environ.get("HYPOTHESIS_EXAMPLES", "40")),
    stateful_step_count=40,
    deadline=None,
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
