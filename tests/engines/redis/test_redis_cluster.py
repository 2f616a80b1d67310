"""Several Redis servers: a cluster of three, and a pair that Sentinel watches."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, suppress
from typing import ClassVar

import pytest

from servers.redis import RedisServer, running_cluster, running_sentinel
from servers.redis_stage import Stage
from shoal.core.outcome import Settlement
from shoal.core.task import DEFAULT_POOL, DIRECT, NewTask, Policy, RunState
from shoal.errors import EngineRefused, EngineUnavailable
from shoal.frontier.contract.frontier import Ask, NewRun, WorkerInfo
from shoal.frontier.redis.engine import RedisEngine, open_redis
from shoal.testing.contract.runs.job_ends import JobEndContract
from shoal.testing.contract.scene import Scene, done, page, pages
from shoal.testing.contract.tasks.settlements import SettlementContract
from shoal.testing.frontier_contract import Capability, Harness
from support.harnesses.jumping import JumpingHarness
from support.waiting import until

prefixes = itertools.count()


@pytest.fixture(scope="module")
def cluster() -> Iterator[list[RedisServer]]:
    with running_cluster() as servers:
        yield servers


def cluster_url(servers: list[RedisServer], partitions: int = 16) -> str:
    hosts = ",".join(f"127.0.0.1:{server.port}" for server in servers)
    return f"redis+cluster://{hosts}?prefix=c{next(prefixes)}&partitions={partitions}"


class ClusterHarness(JumpingHarness[RedisEngine]):
    lacks: ClassVar = {Capability.PRIVATE_EXITS: "a site waits once per line, for the exits of whoever met it last"}

    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url

    async def handle(self) -> RedisEngine:
        return await open_redis(self.url, clock=self.clock)


class InACluster:
    """Groups of the contract, over the wire of a real cluster (all of it runs in partitions of one server)."""

    @pytest.fixture
    async def harness(self, cluster: list[RedisServer]) -> AsyncIterator[Harness]:
        made = await ClusterHarness(cluster_url(cluster, 5)).open()
        yield made
        await made.close()


class TestSettlementsInACluster(InACluster, SettlementContract): ...


class TestEndsOfJobsInACluster(InACluster, JobEndContract):
    @pytest.mark.skip("about the number of steps, which is the same in partitions of one server")
    async def test_many_jobs_expire_in_steps(self, harness: Harness) -> None: ...


async def crawl(engine: RedisEngine, name: str, links: dict[str, list[str]], seen: list[str]) -> None:
    """A worker that finds on each page the links that the map says, until the run is over."""
    settlements: list[Settlement] = []
    who = WorkerInfo(name, "elsewhere", 1, 1)
    while True:
        ask = Ask(who, ("shop",), ("bulk",), {DEFAULT_POOL: (DIRECT,)}, 7, None, settlements)
        granted = await engine.frontier.exchange(ask)
        assert granted.late == []
        settlements = []
        for lease in granted.leases:
            url = lease.task.url.removeprefix("https://")
            seen.append(url)
            found: list[NewTask] = [page(link) for link in links.get(url, [])]
            settlements.append(done(lease, b'{"u":"%s"}' % url.encode(), tasks=found))
        if not granted.leases:
            if (await engine.reader.run("run")).state is RunState.FINISHED:
                return
            await asyncio.sleep(0.005)


async def test_a_crawl_across_all_partitions_of_a_cluster(cluster: list[RedisServer]) -> None:
    """300 pages of 30 sites, found from one another across partitions by four workers: each is served once, it ends."""
    url = cluster_url(cluster)
    names = [f"{n % 30}.example/{n}" for n in range(300)]
    links = {name: [names[(2 * n + k) % 300] for k in (1, 2)] for n, name in enumerate(names)}
    seen: list[str] = []
    async with AsyncExitStack() as stack:
        engines = [await open_redis(url) for _ in range(4)]
        for engine in engines:
            stack.push_async_callback(engine.close)
        first = engines[0]
        await first.frontier.create_run(NewRun("run", "shop", Policy(delay=0, concurrency=4)))
        await first.frontier.enqueue("run", [page(names[0])])
        await first.frontier.seal_run("run")
        async with asyncio.timeout(60):
            await asyncio.gather(*(crawl(engine, f"w{n}", links, seen) for n, engine in enumerate(engines)))
        run = await first.reader.run("run")
        assert sorted(seen) == sorted(names)
        assert (run.counters.done, run.counters.items, run.counters.remaining) == (300, 300, 0)
        assert run.counters.duplicates == 600 + 1 - 300
        found: list[bytes] = []
        cursor: int | None = 0
        while cursor is not None:
            part = await first.reader.items("run", cursor, 50)
            found += [bytes(item.body) for item in part.items]
            cursor = part.cursor
        assert len(found) == len(set(found)) == 300
        keys = [int(server.ask("DBSIZE").strip()[1:]) for server in cluster]
        print(f"300 pages over {first._store.partitions} partitions; keys on the three nodes: {keys}")
        assert all(keys), "every node holds some of it"


async def test_a_node_that_dies_and_comes_back(cluster: list[RedisServer]) -> None:
    engine = await open_redis(cluster_url(cluster))
    try:
        scene = Scene(Stage(engine))
        await scene.open_run(delay=0, concurrency=50)
        await scene.put(*(f"{n}.example/1" for n in range(50)))
        cluster[1].kill()
        with pytest.raises(EngineUnavailable):
            await scene.sweep_all()
        cluster[1].start()

        async def swept() -> bool:
            with suppress(EngineUnavailable):
                await scene.sweep_all()
                return True
            return False

        await until(swept, "the partition is back")
        counts = await scene.counters()
        assert (counts.accepted, counts.remaining) == (50, 50)
    finally:
        await engine.close()


async def test_a_plain_url_to_a_cluster_is_explained(cluster: list[RedisServer]) -> None:
    with pytest.raises(EngineRefused, match=r"redis\+cluster"):
        await (await open_redis(f"redis://127.0.0.1:{cluster[0].port}/0?prefix=plain&partitions=3")).close()


def _written(server: RedisServer) -> int:
    found = re.search(rb"master_repl_offset:(\d+)", server.ask("INFO", "replication"))
    assert found
    return int(found[1])


async def test_sentinel_leads_to_the_master_and_after_its_death_to_the_next() -> None:
    with running_sentinel("main") as (master, replica, watcher):
        engine = await open_redis(f"redis+sentinel://127.0.0.1:{watcher.port}/main/0")
        try:
            scene = Scene(Stage(engine))
            await scene.open_run(delay=0, concurrency=9)
            await scene.put(*pages("a.example", 5))
            assert len(await scene.claim(2)) == 2
            await until(lambda: _written(replica) >= _written(master), "the replica has what the master has")
            master.kill()

            async def seen() -> bool:  # only looks: what is granted while a server dies may be granted unheard
                with suppress(EngineUnavailable):
                    return (await scene.counters()).leased == 2
                return False

            await until(seen, "the replica has taken over")
            assert len(await scene.claim(9)) == 3
            assert (await scene.counters()).leased == 5
        finally:
            await engine.close()
