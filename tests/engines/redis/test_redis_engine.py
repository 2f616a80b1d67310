"""What is particular to Redis: its scripts, its crashes, many workers at once, and what a claim costs."""

from __future__ import annotations

import asyncio
import itertools
import random
import subprocess
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import uvloop

from servers.proxy import Proxy, running_proxy
from servers.redis import RedisServer, running_redis
from servers.redis_stage import Stage, opened, own_store, staged
from shoal.core.outcome import Done, Settlement
from shoal.core.politeness import transit_allowance
from shoal.core.task import DEFAULT_POOL, DIRECT, Lease, Policy
from shoal.errors import EngineFull, EngineRefused, EngineUnavailable
from shoal.frontier.contract.frontier import Ask, NewRun, Swept, WorkerInfo
from shoal.frontier.contract.timeouts import StoreTimeouts
from shoal.frontier.redis.codec.tasks import SEEN_BUCKETS
from shoal.frontier.redis.engine import RedisFrontier, open_redis
from shoal.frontier.shared.liveness import Notebook, started, this_machine
from shoal.testing.contract.scene import Scene, done, names, page, pages, settle

# Crashes, restarts and full memory


async def test_scripts_are_brought_again_when_the_server_forgot_them(
    server: RedisServer, stack: AsyncExitStack
) -> None:
    scene = await staged(stack, own_store(server))
    await scene.open_run()
    await scene.put(*pages("a.example", 2))
    lease = await scene.claim_one()
    server.ask("SCRIPT", "FLUSH")
    assert (await scene.settle(done(lease, b"{}"))).late == []
    server.ask("SCRIPT", "FLUSH")
    await scene.sweep_all()
    assert await scene.bodies() == [b"{}"]


async def test_a_killed_server_has_what_it_acknowledged(stack: AsyncExitStack) -> None:
    """appendfsync always, kill -9 in the middle of work: every acknowledged task and settlement is there."""
    with running_redis() as mortal:
        engine = await opened(stack, mortal.url)
        scene = Scene(Stage(engine))
        await scene.open_run(delay=0, concurrency=1000)
        accepted = 0
        settled: list[Lease] = []
        unsure = 0

        async def work() -> None:
            nonlocal accepted, unsure
            for number in itertools.count():
                unsure = 10
                accepted += (await scene.put(*pages(f"{number % 7}.example/{number}", 10))).accepted
                leases = await scene.claim(5)
                await scene.settle(*(done(lease, b"{}") for lease in leases))
                settled.extend(leases)
                if len(settled) > 500:
                    enough.set()

        enough = asyncio.Event()
        task = asyncio.create_task(work())
        await enough.wait()
        mortal.kill()
        with pytest.raises(EngineUnavailable):
            await task
        with pytest.raises(EngineUnavailable):
            await scene.counters()
        mortal.start()
        counts = await scene.counters()
        assert accepted <= counts.accepted <= accepted + unsure
        assert len(settled) <= counts.done <= len(settled) + 5
        assert counts.items == counts.done
        late = await scene.settle(*(done(lease, b"{}") for lease in settled[-20:]))
        assert len(late.late) == 20, "what was settled stays settled"
        print(f"killed after {len(settled)} settlements and {accepted} tasks; none was lost")


async def test_a_full_server_says_so_and_loses_nothing(stack: AsyncExitStack) -> None:
    with running_redis("--maxmemory", "12mb") as small:
        scene = await staged(stack, small.url)
        await scene.open_run(delay=0, concurrency=100)
        accepted = 0

        async def fill() -> None:
            nonlocal accepted
            for number in itertools.count():
                accepted += (await scene.put(*pages(f"{number}.example", 500))).accepted

        with pytest.raises(EngineFull, match="no memory left"):
            await fill()
        assert (await scene.counters()).accepted == accepted
        small.ask("CONFIG", "SET", "maxmemory", "0")
        lease = await scene.claim_one()
        assert (await scene.settle(done(lease))).late == []
        assert (await scene.counters()).done == 1


async def test_a_stalled_server_is_waited_for_and_then_given_up(stack: AsyncExitStack) -> None:
    with running_redis() as slow:
        scene = await staged(stack, slow.url, timeouts=StoreTimeouts(connect=60, call=1))
        await scene.open_run()
        slow.pause()
        with pytest.raises(EngineUnavailable, match="in time"):
            await scene.put("a.example/1")
        slow.resume()
        assert (await scene.put("a.example/1", "a.example/2")).accepted in (1, 2), "nobody knows if the first one ran"
        assert (await scene.counters()).accepted == 2


async def test_an_answer_that_was_lost_does_no_harm(server: RedisServer, stack: AsyncExitStack) -> None:
    """Settlements of an exchange whose answer never came are late the second time, and their results are kept once."""
    scene = await staged(stack, own_store(server))
    await scene.open_run(delay=0, lease=10_000, hard_timeout=0)
    await scene.put(*pages("a.example", 3))
    lease = await scene.claim_one()
    ask = scene.ask(done(lease, b"{}"), want=1)
    await scene.frontier.exchange(ask)  # the answer is lost, and with it the lease of page 1
    again = await scene.frontier.exchange(ask)
    assert (again.late, again.leases) == ([lease.token], [])
    assert await scene.bodies() == [b"{}"]
    await scene.advance(10_000)
    await scene.sweep_all()
    assert names(await scene.drain()) == ["a.example/1", "a.example/2"]


def test_connections_that_were_cut_are_a_store_that_is_away_in_the_loop_of_workers_too(server: RedisServer) -> None:
    """uvloop complains in its own way when somebody writes to a connection that is closed."""

    async def cut_and_call(proxy: Proxy) -> None:
        engine = await open_redis(f"redis://127.0.0.1:{proxy.port}/0?prefix=cut")
        answers: list[Swept | BaseException] = []
        for _ in range(5):
            proxy.cut()
            calls = (engine.frontier.sweep() for _ in range(3))
            answers += await asyncio.gather(*calls, return_exceptions=True)
        await engine.close()
        assert all(isinstance(answer, Swept | EngineUnavailable) for answer in answers), answers

    with running_proxy(server.port) as proxy, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(cut_and_call(proxy))


async def test_a_closed_engine_says_so(server: RedisServer) -> None:
    engine = await open_redis(own_store(server))
    await engine.close()
    with pytest.raises(EngineRefused, match="closed"):
        await engine.reader.runs()


# Many at once, and the dead


async def test_eight_workers_on_few_sites_while_tasks_come_in(server: RedisServer, stack: AsyncExitStack) -> None:
    """I3 and I4 by the server's own clock, with one connection for each worker and tasks coming in all the time."""
    url = own_store(server)
    engine = await opened(stack, url)
    rules = Policy(delay=20, concurrency=2, lease=60_000)
    await engine.frontier.create_run(NewRun("run", "shop", rules))
    live: dict[tuple[str, str], int] = {}
    starts: dict[tuple[str, str], list[tuple[int, int]]] = {}
    served: list[int] = []
    total = 400

    async def feed() -> None:
        for number in range(0, total, 20):
            await engine.frontier.enqueue("run", [page(f"{n % 4}.example/{n}") for n in range(number, number + 20)])
            await asyncio.sleep(0.01)

    async def work(name: str) -> None:
        own = await opened(stack, url)
        settlements: list[Settlement] = []
        chance = random.Random(name)
        while len(served) < total:
            exits = {DEFAULT_POOL: ("one", "two")}
            who = WorkerInfo(name, "elsewhere", 1, 1)
            granted = await own.frontier.exchange(Ask(who, ("shop",), ("bulk",), exits, 3, None, settlements))
            assert granted.late == []
            for lease in granted.leases:
                slot = (lease.task.site, lease.exit)
                live[slot] = live.get(slot, 0) + 1
                assert live[slot] <= 2, "more live leases than the slot may have"
                starts.setdefault(slot, []).append((lease.start_at, lease.start_by))
            await asyncio.sleep(chance.uniform(0, 0.01))
            settlements = []
            for lease in granted.leases:
                live[lease.task.site, lease.exit] -= 1
                settlements.append(settle(lease, Done(), started=lease.start_by))
                served.append(lease.task.id)

    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(feed())
        for number in range(8):
            group.create_task(work(f"w{number}"))
    assert len(served) == len(set(served)) == total
    for windows in starts.values():
        for (_, latest), (earliest, _) in itertools.pairwise(sorted(windows)):
            assert earliest - latest >= 20, "a start could follow too soon"


async def test_leases_of_dead_processes_come_back_at_once(
    server: RedisServer, stack: AsyncExitStack, tmp_path: Path
) -> None:
    """Only the task that its notebook shows in hand is charged with the crash."""
    scene = await staged(stack, own_store(server))
    await scene.open_run(delay=1_000)
    await scene.put("a.example/1", "b.example/1", "c.example/1")
    process = subprocess.Popen(  # noqa: ASYNC220 - it is to die, not to be talked to
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE
    )
    notebook = Notebook(tmp_path / "hand")
    who = WorkerInfo("mortal", this_machine(), process.pid, started(process.pid) or 0, str(notebook.path))
    ask = Ask(who, ("shop",), ("bulk",), {DEFAULT_POOL: (DIRECT,)}, 3)
    one, *_ = (await scene.frontier.exchange(ask)).leases
    with notebook.holding(one.task.id):
        assert (await scene.frontier.sweep()).returned == 0, "it lives"
        process.kill()
        process.wait()
        process.stdin.close()  # type: ignore[union-attr]
        assert (await scene.frontier.sweep()).returned == 3
    assert (await scene.frontier.sweep()).returned == 0
    counts = await scene.counters()
    assert (counts.crashes, counts.waiting, counts.leased) == (1, 3, 0)
    assert await scene.claim(9) == [], "its last request may have been a moment ago"
    await scene.advance(1_000 + transit_allowance(1_000))
    charged = {lease.task.id: lease.task.crashes for lease in await scene.claim(9)}
    assert charged.pop(one.task.id) == 1
    assert set(charged.values()) == {0}


async def test_what_was_held_by_the_dead_and_is_held_by_the_living_stays_theirs(
    server: RedisServer, stack: AsyncExitStack
) -> None:
    """A sweep asks what the dead held, and then brings it back. In between another sweep may have done so, and a worker
    that lives may have the task now."""
    scene = await staged(stack, own_store(server))
    await scene.open_run(delay=1_000, hard_timeout=0)
    await scene.put(*pages("a.example", 2))
    lease = await scene.claim_one(by="alive")
    frontier = scene.frontier
    assert isinstance(frontier, RedisFrontier)
    swept = await frontier._sweeps.sweep_once(0, [("dead", [str(lease.task.id)], [])])
    assert swept.returned == 0
    await scene.advance(500)
    assert await scene.claim(9) == []
    assert (await scene.settle(done(lease, b"{}"))).late == []
    assert (await scene.counters()).crashes == 0


# Cost


async def commands_of_a_claim(server: RedisServer, stack: AsyncExitStack, sites: int) -> dict[str, int]:
    """How often each command ran inside one exchange that settles and claims 20, with so many blocked sites."""
    engine = await opened(stack, own_store(server))
    scene = Scene(Stage(engine))
    await scene.open_run("blocked", queue="q", delay=36_000_000)
    for first in range(0, sites, 5_000):
        await scene.put(*(page(f"{n}.example/{m}") for n in range(first, first + 5_000) for m in (1, 2)), run="blocked")
    leases: list[Lease] = []
    while part := await scene.claim(5_000):
        leases += part
    for first in range(0, sites, 5_000):
        await scene.settle(*(done(lease) for lease in leases[first : first + 5_000]))
    await scene.open_run("due", queue="q", delay=0)
    await scene.put(*(f"due-{n}.example/{m}" for n in range(60) for m in (1, 2)), run="due")
    leases = list(await scene.claim(20))
    await engine._store.command("CONFIG", "RESETSTAT")
    # By one who is new: those who are known are noted down twice a second at most, whatever they do.
    granted = await scene.exchange(*(done(lease) for lease in leases), want=20, by="new")
    assert len(granted.leases) == 20
    stats = await engine._store.command("INFO", "commandstats")
    return {name.removeprefix("cmdstat_"): int(row["calls"]) for name, row in stats.items()}


async def test_a_claim_costs_the_same_with_few_and_many_sites(server: RedisServer, stack: AsyncExitStack) -> None:
    few = await commands_of_a_claim(server, stack, 100)
    many = await commands_of_a_claim(server, stack, 50_000)
    del few["config|resetstat"], many["config|resetstat"]
    print("commands of one exchange of 20:", few)
    assert few == many
    assert sum(many.values()) < 60
    assert not {"keys", "scan", "hscan", "hgetall", "smembers", "hkeys", "hvals"} & set(many)


def test_seen_keys_are_spread_over_their_sets() -> None:
    assert SEEN_BUCKETS == 2**14, "the collision odds in codec/tasks.py are computed for this"
