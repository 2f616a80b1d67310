"""Links to sites in other partitions leave with their settlement, and arrive once, whoever dies on the way."""

from __future__ import annotations

from contextlib import AsyncExitStack
from itertools import count

import pytest

from servers.redis import RedisServer
from servers.redis_stage import own_store, staged
from shoal.core.task import DEFAULT_POOL, DIRECT
from shoal.frontier.contract.frontier import Ask
from shoal.frontier.redis.engine import RedisFrontier
from shoal.testing.contract.scene import SHOP, Scene, done, names, page, worker


@pytest.fixture
async def scene(server: RedisServer, stack: AsyncExitStack) -> Scene:
    return await staged(stack, own_store(server, partitions=3))


def _of(scene: Scene) -> RedisFrontier:
    assert isinstance(scene.frontier, RedisFrontier)
    return scene.frontier


async def _settle_and_die(scene: Scene) -> int:
    """A page is settled with a link to another partition, by somebody who dies before the link is carried there.

    The link has no key, so that it would be let in as often as it arrives. Answers the partition of the page.
    """
    frontier = _of(scene)
    home = frontier._store.partition_of("a.example")
    there = next(site for n in count() if frontier._store.partition_of(site := f"{n}.example") != home)
    await scene.open_run(delay=0)
    await scene.put("a.example/1")
    await scene.frontier.seal_run("run")
    lease = await scene.claim_one()
    ask = Ask(worker(), (SHOP,), ("bulk",), {DEFAULT_POOL: (DIRECT,)}, 0)
    end = done(lease, b"{}", tasks=[page(f"{there}/linked", key=None)])
    answer = await frontier._claims.exchange_with(home, ask, frontier._settling.rows([end], home), 0)
    assert answer.late == []
    assert len(answer.outbox) == 1
    return home


async def _linked(scene: Scene) -> list[str]:
    """The pages that are handed out, without their sites."""
    return [name.partition("/")[2] for name in names(await scene.drain())]


async def test_a_link_whose_carrier_died_arrives_with_the_next_sweep(scene: Scene) -> None:
    await _settle_and_die(scene)
    await _of(scene)._partitions.finish(["run"])
    assert (await scene.reader.run("run")).ended_at is None, "it has not ended while a link is on its way"
    await scene.sweep_all()
    assert await _linked(scene) == ["linked"]
    assert (await scene.counters()).done == 2


async def test_a_link_that_arrives_twice_is_let_in_once(scene: Scene) -> None:
    """Whoever carried it died before it could be forgotten where it came from."""
    home = await _settle_and_die(scene)
    frontier = _of(scene)
    [(serial, parcel)] = await frontier._store.call("read_outbox", home, {"most": 10})
    for _ in range(2):
        await frontier._partitions.deliver(home, int(serial), parcel)
    assert await _linked(scene) == ["linked"]
    assert (await scene.counters()).done == 2


async def test_what_has_arrived_is_forgotten_where_it_came_from(scene: Scene) -> None:
    home = await _settle_and_die(scene)
    await scene.sweep_all()
    frontier = _of(scene)
    assert await frontier._store.call("read_outbox", home, {"most": 10}) == []
    await scene.drain()
    assert (await scene.reader.run("run")).counters.remaining == 0
