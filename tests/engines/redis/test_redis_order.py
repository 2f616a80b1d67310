"""Redis hands out tasks in the order that SQLite does, and its partitions come together as one frontier."""

from __future__ import annotations

import itertools
import random
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec
import pytest

from servers.redis import RedisServer
from servers.redis_stage import Stage, opened, own_store, staged
from shoal.core.notes import Entry, Note
from shoal.core.task import LanePolicy, Lease, Policy, RunState
from shoal.frontier.contract.frontier import NewRun
from shoal.frontier.redis.codec.leases import decode_exchanged, exchange_question
from shoal.frontier.redis.codec.runs import run_question
from shoal.frontier.sqlite.engine import open_sqlite
from shoal.testing.contract.scene import Scene, dead, done, given_back, names, page, pages, retried, snoozed
from shoal.testing.jump_clock import JumpClock

# Order, against the first engine


@pytest.mark.parametrize("seed", range(6))
async def test_the_same_order_as_sqlite(server: RedisServer, stack: AsyncExitStack, tmp_path: Path, seed: int) -> None:
    """One site, long lists, all that can happen to a task: both engines hand out the same tasks in the same order."""
    clock = JumpClock()
    chance = random.Random(seed)
    sqlite = await open_sqlite(tmp_path / "twin.db", clock=clock)
    stack.push_async_callback(sqlite.close)
    scenes = [Scene(Stage(e, clock)) for e in (sqlite, await opened(stack, own_store(server), clock=clock))]
    for scene in scenes:
        await scene.open_run("run", queue="q", delay=0, concurrency=8, lease=50_000, hard_timeout=0, crashes=2)
        await scene.open_run("other", queue="q", delay=0, concurrency=8, lanes={"bulk": LanePolicy(ttl=9_000)})
    serial = itertools.count()
    held: list[tuple[Lease, Lease]] = []

    async def put() -> None:
        tasks = [
            page(
                f"a.example/{next(serial) if chance.random() < 0.9 else chance.randrange(50)}",
                priority=chance.choice((0, 0, 0, 0, 1, -1, 5)),
                wait=chance.choice((0, 0, 0, 0, 0, 3_000)),
                ttl=chance.choice((None, None, None, 7_000, 20_000)),
            )
            for _ in range(chance.randrange(1, 40))
        ]
        run = chance.choice(("run", "run", "other"))
        one, two = [await scene.put(*tasks, run=run) for scene in scenes]
        assert one == two

    async def claim() -> None:
        want = chance.randrange(1, 8)
        one, two = [await scene.exchange(want=want) for scene in scenes]
        assert names(one.leases) == names(two.leases)
        assert [(le.task.attempts, le.task.crashes, le.task.run_id) for le in one.leases] == [
            (le.task.attempts, le.task.crashes, le.task.run_id) for le in two.leases
        ]
        assert one.left == two.left
        assert (one.wake_at is None) == (two.wake_at is None)
        held.extend(zip(one.leases, two.leases, strict=True))

    async def end() -> None:
        chance.shuffle(held)
        ending = [held.pop() for _ in range(min(len(held), chance.randrange(1, 6)))]
        outcomes = [
            chance.choice(
                (done, done, dead, given_back, retried, lambda le: retried(le, 2_000), lambda le: snoozed(le, 500))
            )
            for _ in ending
        ]
        for index, scene in enumerate(scenes):
            late = await scene.settle(*(how(pair[index]) for how, pair in zip(outcomes, ending, strict=True)))
            assert late.late == []

    async def wait() -> None:
        clock.advance(chance.choice((1, 100, 2_000)))

    async def sweep() -> None:
        for scene in scenes:
            await scene.sweep_all()

    for _ in range(250):
        await chance.choice((put, claim, claim, end, end, wait, sweep))()
        for run in ("run", "other"):
            one, two = [await scene.counters(run) for scene in scenes]
            assert one == two
    clock.advance(60_000)
    for scene in scenes:
        await scene.sweep_all()
        await scene.check_books()
    rest, same = [names(await scene.drain()) for scene in scenes]
    assert rest == same
    print(f"seed {seed}: {next(serial)} tasks, the last {len(rest)} in the same order")


async def test_what_comes_back_in_between_does_not_pile_up(server: RedisServer, stack: AsyncExitStack) -> None:
    """Delayed tasks that take their places inside a long list: in order, and the site's packed record stays small."""
    scene = await staged(stack, own_store(server))
    await scene.open_run(delay=0, concurrency=9_000)
    tasks = [page(f"a.example/{n}", wait=(n * 7919) % 3_000 if n % 2 else 0) for n in range(3_000)]
    await scene.put(*tasks)
    served = names(await scene.claim(3))
    store = scene.engine._store  # type: ignore[attr-defined]
    for _ in range(3):
        await scene.advance(1_000)
        served += names(await scene.claim(2))
        assert int(await store.command("HSTRLEN", f"{store.tag(0)}:q:1", "a.example")) < 2_000
    while part := await scene.claim(500):
        served += names(part)
    assert sorted(served) == sorted(f"a.example/{n}" for n in range(3_000))
    rest = [int(name.partition("/")[2]) for name in served[12:]]
    assert rest == sorted(rest)


async def test_links_of_several_settlements_keep_their_lanes_priorities_and_times(
    server: RedisServer, stack: AsyncExitStack
) -> None:
    """They are admitted together; those that differ in anything are not taken for alike."""
    scene = await staged(stack, own_store(server))
    await scene.open_run(delay=0, concurrency=99)
    await scene.put(*pages("a.example", 4))
    links = [
        [page("b.example/bulk"), page("b.example/file", lane="files")],
        [
            page("b.example/next"),
            page("b.example/other", lane="files"),
            page("b.example/late", lane="files", wait=5_000),
        ],
        [page("b.example/first", priority=1), page("b.example/short", ttl=2_000)],
        [page("b.example/last", ttl=None), page("b.example/bulk")],
    ]
    leases = await scene.claim(4)
    await scene.settle(*(done(lease, tasks=tasks) for lease, tasks in zip(leases, links, strict=True)))
    assert names(await scene.claim(9, lanes=["files"])) == ["b.example/file", "b.example/other"]
    await scene.advance(2_000)
    bulk = names(await scene.claim(9, lanes=["bulk"]))
    assert bulk == ["b.example/first", "b.example/bulk", "b.example/next", "b.example/last"]
    await scene.advance(3_000)
    assert names(await scene.claim(9, lanes=["files"])) == ["b.example/late"]
    counts = await scene.counters()
    assert (counts.expired, counts.duplicates, counts.waiting) == (1, 1, 0)


async def test_mass_ripening_keeps_order(server: RedisServer, stack: AsyncExitStack) -> None:
    scene = await staged(stack, own_store(server))
    await scene.open_run(delay=0, concurrency=3_000)
    await scene.put(*pages("a.example/late", 2_500, wait=1_000), *pages("a.example/now", 500))
    assert len(await scene.claim(500)) == 500
    await scene.advance(1_000)
    leases: list[Lease] = []
    while part := await scene.claim(700):
        leases += part
    assert names(leases) == [f"a.example/late/{n}" for n in range(2_500)]


async def test_a_cancelled_run_ends_in_bounded_steps(server: RedisServer, stack: AsyncExitStack) -> None:
    """More than a sweep may touch, in lists, sets aside and packed records: all of it ends, and is counted once."""
    scene = await staged(stack, own_store(server))
    await scene.open_run(delay=0)
    await scene.put(*pages("a.example", 2_500), *(f"{n}.example/1" for n in range(1_500)))
    await scene.put(*pages("late.example", 900, wait=60_000), *pages("b.example", 100, lane="files", ttl=9_000))
    await scene.frontier.cancel_run("run")
    steps = []
    while (swept := await scene.frontier.sweep()).cancelled:
        steps.append(swept.cancelled)
    assert sum(steps) == 5_000
    assert max(steps) <= 2_000
    counts = await scene.counters()
    assert (counts.cancelled, counts.remaining) == (5_000, 0)
    assert (await scene.reader.sites(), (await scene.exchange()).left) == ([], 0)
    store = scene.engine._store  # type: ignore[attr-defined]
    left = {key.partition(b"}:")[2].partition(b":")[0] for key in await store.command("KEYS", f"{store.tag(0)}:*")}
    assert not left & {b"d", b"f", b"q", b"o", b"z", b"w", b"x", b"a", b"h", b"aside"}, "nothing is left in memory"


# Partitions


async def test_links_survive_a_crash_between_settlement_and_delivery(
    server: RedisServer, stack: AsyncExitStack
) -> None:
    """The worker dies after its settlement was stored: a sweep delivers its links, each once, and only then it ends."""
    scene = await staged(stack, own_store(server, partitions=3))
    store = scene.engine._store  # type: ignore[attr-defined]
    sites = [next(f"{n}.example" for n in range(100) if store.partition_of(f"{n}.example") == p) for p in range(3)]
    await scene.open_run(delay=0)
    await scene.put(page(f"{sites[0]}/start"))
    await scene.frontier.seal_run("run")
    lease = await scene.claim_one()
    links = [page(f"{sites[1]}/keyed"), page(f"{sites[1]}/free", key=None), page(f"{sites[2]}/x", key=None)]
    ended = done(lease, b"{}", tasks=[*links, page(f"{sites[0]}/here")])
    rows = scene.frontier._settling.rows([ended], 0)  # type: ignore[attr-defined]
    answer = decode_exchanged(await store.call("exchange", 0, exchange_question(scene.ask(), rows, 0)))
    assert len(answer.outbox) == 2
    assert (await scene.counters()).waiting == 1, "only the link of its own partition"
    await scene.settle(*(done(le) for le in await scene.claim(9)))
    assert (await scene.reader.run("run")).state is RunState.RUNNING, "links are on their way"
    parcels = await store.call("read_outbox", 0, {"most": 10})
    for _ in range(2):  # whoever delivers may die as well, before or after it is noted
        for serial, parcel in parcels:
            await scene.frontier._partitions.deliver(0, int(serial), parcel)  # type: ignore[attr-defined]
            await store.command("HSET", f"{store.tag(0)}:out", serial, parcel)
            await store.command("ZADD", f"{store.tag(0)}:outz", 0, serial)
            await store.command("HINCRBY", f"{store.tag(0)}:c:1", "outbox", 1)
    await scene.sweep_all()
    assert not await store.call("read_outbox", 0, {"most": 10})
    assert sorted(names(await scene.drain())) == sorted(link.url.removeprefix("https://") for link in links)
    run = await scene.reader.run("run")
    assert (run.state, run.counters.done, run.counters.duplicates) == (RunState.FINISHED, 5, 0)


async def test_what_is_left_behind_elsewhere_survives_a_crash_and_comes_once(
    server: RedisServer, stack: AsyncExitStack
) -> None:
    """What lies beside the site is there with the settlement; notes and entries of other partitions follow, once."""
    scene = await staged(stack, own_store(server, partitions=3))
    store = scene.engine._store  # type: ignore[attr-defined]
    site, other = (
        next(f"{n}.example" for n in range(100) if store.partition_of(f"{n}.example") == place) for place in (0, 1)
    )
    stream = next(f"changes/{n}" for n in range(100) if store.partition_of(f"changes/{n}") == 2)
    await scene.open_run(delay=0)
    await scene.put(page(f"{site}/start"))
    await scene.frontier.seal_run("run")
    beside, away = Entry(f"{site} seen", b"here", 60_000), Entry(f"{other} seen", b"there", 60_000)
    ended = msgspec.structs.replace(done(await scene.claim_one()), entries=(beside, away), notes=(Note(stream, b"x"),))
    rows = scene.frontier._settling.rows([ended], 0)  # type: ignore[attr-defined]
    await store.call("exchange", 0, exchange_question(scene.ask(), rows, 0))  # and then the worker died
    assert await scene.engine.cache.get([beside.key, away.key]) == {beside.key: b"here"}
    assert (await scene.reader.run("run")).state is RunState.RUNNING, "something is on its way"
    parcels = await store.call("read_outbox", 0, {"most": 10})
    assert len(parcels) == 2
    for serial, parcel in parcels:  # whoever delivers may die before it is noted
        await scene.frontier._partitions.deliver(0, int(serial), parcel)  # type: ignore[attr-defined]
        await store.command("HSET", f"{store.tag(0)}:out", serial, parcel)
        await store.command("ZADD", f"{store.tag(0)}:outz", 0, serial)
        await store.command("HINCRBY", f"{store.tag(0)}:c:1", "outbox", 1)
    await scene.sweep_all()
    assert await scene.engine.cache.get([beside.key, away.key]) == {beside.key: b"here", away.key: b"there"}
    assert list((await scene.reader.notes(stream)).bodies) == [b"x"]
    assert (await scene.reader.run("run")).state is RunState.FINISHED


async def test_a_state_that_did_not_reach_all_partitions_is_spread_by_a_sweep(
    server: RedisServer, stack: AsyncExitStack
) -> None:
    scene = await staged(stack, own_store(server, partitions=4))
    await scene.open_run(delay=0, concurrency=99)
    await scene.put(*(f"{n}.example/1" for n in range(40)))
    store = scene.engine._store  # type: ignore[attr-defined]
    await store.call("change_run", 0, {"verb": "pause", "run": "run"})  # and then the caller died
    assert len(await scene.claim(99)) > 0
    await scene.sweep_all()
    assert await scene.claim(99) == []


async def test_a_run_whose_creator_died_half_way_is_known_everywhere(
    server: RedisServer, stack: AsyncExitStack
) -> None:
    scene = await staged(stack, own_store(server, partitions=4))
    store = scene.engine._store  # type: ignore[attr-defined]
    await store.call("create_run", 0, run_question(NewRun("run", "shop", Policy(delay=0))))
    assert (await scene.put(*(f"{n}.example/1" for n in range(40)))).accepted == 40
    await scene.frontier.seal_run("run")
    assert len(await scene.drain()) == 40
    assert (await scene.reader.run("run")).state is RunState.FINISHED
