"""What is particular to Redis about exits, limits, notes and looking for a URL: partitions, overflow, renewals."""

from __future__ import annotations

from contextlib import AsyncExitStack

import pytest

from servers.redis import RedisServer
from servers.redis_stage import own_store, staged
from shoal.core.notes import Note
from shoal.core.politeness import QUARANTINE_AFTER, QUARANTINE_FIRST
from shoal.core.task import State
from shoal.frontier.contract.exits import NewExit
from shoal.frontier.contract.frontier import Renewal
from shoal.frontier.contract.reader import Whereabouts
from shoal.frontier.redis.exits import share
from shoal.testing.contract.scene import Scene, done, exit_failed, page, pages, retried, snoozed, worker


@pytest.mark.parametrize(("cap", "partitions"), [(7, 3), (3, 3), (100, 16), (16, 16)])
def test_shares_of_a_cap_add_up(cap: int, partitions: int) -> None:
    assert sum(share(cap, partition, partitions) for partition in range(partitions)) == cap


def test_every_partition_has_a_share_and_no_cap_is_no_limit() -> None:
    assert [share(1, partition, 3) for partition in range(3)] == [1, 1, 1]
    assert share(0, 2, 3) == 0


async def test_one_partition_tells_the_others_of_a_failing_exit(server: RedisServer, stack: AsyncExitStack) -> None:
    scene = await staged(stack, own_store(server, partitions=3))
    await scene.open_run(delay=0)
    await scene.put("0.example/0")
    for _ in range(QUARANTINE_AFTER):
        await scene.settle(exit_failed(await scene.claim_one(exits=("one",))))
    for number in range(30):
        await scene.put(f"{number}.example/1")
    assert await scene.claim(99, exits=("one",)) == []
    await scene.advance(QUARANTINE_FIRST)
    probes = await scene.claim(99, exits=("one",))
    assert 1 <= len(probes) <= 3, "one in each partition at most"


async def test_a_probe_that_is_renewed_stays_the_only_one(server: RedisServer, stack: AsyncExitStack) -> None:
    scene = await staged(stack, own_store(server))
    await scene.open_run(delay=0, concurrency=3, lease=20_000)
    await scene.put(*pages("a.example", 9))
    await scene.settle(snoozed(await scene.claim_one(), 1_000))
    await scene.advance(1_000)
    probe = await scene.claim_one()
    for _ in range(3):
        await scene.advance(15_000)
        assert await scene.frontier.renew(worker(), [Renewal(probe.task.id, probe.token)]) == []
        assert await scene.claim(9) == []
    await scene.settle(done(probe))
    assert len(await scene.claim(9)) == 3


async def test_a_trial_of_an_exit_that_is_renewed_stays_the_only_one(
    server: RedisServer, stack: AsyncExitStack
) -> None:
    scene = await staged(stack, own_store(server))
    await scene.open_run(delay=0, lease=20_000)
    await scene.put(*pages("a.example", 9), *pages("b.example", 9))
    for _ in range(QUARANTINE_AFTER):
        await scene.settle(exit_failed(await scene.claim_one(exits=("one",))))
    await scene.advance(QUARANTINE_FIRST)
    trial = await scene.claim_one(exits=("one",))
    for _ in range(3):
        await scene.advance(15_000)
        assert await scene.frontier.renew(worker(), [Renewal(trial.task.id, trial.token)]) == []
        assert await scene.claim(9, exits=("one",)) == []


async def test_release_does_not_forget_a_lost_lease(server: RedisServer, stack: AsyncExitStack) -> None:
    scene = await staged(stack, own_store(server))
    await scene.open_run(delay=0, lease=20_000, hard_timeout=60_000)
    await scene.put(*pages("a.example", 3))
    await scene.claim_one(exits=("one",))
    await scene.engine.exits.ban("one", 500_000, "a.example")
    await scene.advance(20_000)
    await scene.sweep_all()
    await scene.engine.exits.release("one")
    assert await scene.claim(9, exits=("one",)) == [], "its request may still be under way"
    await scene.advance(60_000)
    assert len(await scene.claim(9, exits=("one",))) == 1


async def test_exits_that_are_well_again_leave_no_trace(server: RedisServer, stack: AsyncExitStack) -> None:
    """So that claims have nothing to look at."""
    scene = await staged(stack, own_store(server))
    store = scene.engine._store  # type: ignore[attr-defined]
    await scene.engine.exits.put([NewExit("one", "http://one:1", ("default",), cap=2)])
    await scene.engine.exits.ban("two", 1_000)
    await scene.engine.exits.ban("three", 1_000)
    assert await store.command("HLEN", f"{store.tag(0)}:eh") == 3
    await scene.open_run(delay=0)
    await scene.put(*pages("a.example", 3))
    await scene.engine.exits.put([NewExit("one", "http://one:1", ("default",))])
    await scene.engine.exits.release("two")
    await scene.advance(1_000)
    assert len(await scene.claim(1, exits=("three",))) == 1
    assert await store.command("HLEN", f"{store.tag(0)}:eh") == 0


async def test_a_url_far_back_in_line_is_found(server: RedisServer, stack: AsyncExitStack) -> None:
    """Behind what is packed: in the list of its priority, and in the sorted set of what came back in between."""
    scene = await staged(stack, own_store(server))
    await scene.open_run(delay=0, concurrency=400)
    await scene.put(*pages("a.example", 5_000), *pages("a.example/high", 50, priority=5))
    for number in (7, 1_777, 1_900, 4_999):
        assert (await _find(scene, f"a.example/{number}")).ahead == 50 + number
    leases = await scene.claim(350)
    await scene.settle(*(retried(lease) for lease in leases if lease.task.id % 2))
    behind = [lease.task for lease in leases if lease.task.id % 2]
    behind.sort(key=lambda task: (-task.priority, task.id))
    for place in (0, 30, 100, len(behind) - 1):
        found = await _find(scene, behind[place].url.removeprefix("https://"))
        assert (found.state, found.ahead, found.attempts) == (State.WAITING, place, 1)
    assert (await _find(scene, "a.example/4999")).ahead == len(behind) + 5_050 - 350 - 1


async def test_a_url_that_another_only_mentions_is_not_found(server: RedisServer, stack: AsyncExitStack) -> None:
    scene = await staged(stack, own_store(server, partitions=3))
    await scene.open_run(delay=0)
    await scene.put("a.example/1", page("a.example/11"), page("a.example/x", key=None, wait=5_000))
    assert (await _find(scene, "a.example/1")).ahead == 0
    assert (await _find(scene, "a.example/11")).ahead == 1


async def test_many_notes_end_in_bounded_steps(server: RedisServer, stack: AsyncExitStack) -> None:
    scene = await staged(stack, own_store(server))
    for part in range(6):
        notes = [Note("a", b"%d" % (part * 1_000 + number), ttl=1_000 + part) for number in range(1_000)]
        await scene.exchange(want=0, notes=[*notes, Note("a", b"stays")])
    await scene.advance(1_004)
    assert (await scene.frontier.sweep()).more
    assert len((await scene.reader.notes("a", limit=9_999)).bodies) == 6_006 - 2_000, "not all at once"
    await scene.sweep_all()
    left = await scene.reader.notes("a", limit=5_000)
    assert [body for body in left.bodies if body != b"stays"] == [b"%d" % number for number in range(5_000, 6_000)]
    assert left.bodies.count(b"stays") == 6


async def test_notes_of_one_stream_keep_their_order_in_partitions(server: RedisServer, stack: AsyncExitStack) -> None:
    scene = await staged(stack, own_store(server, partitions=5))
    for number in range(20):
        await scene.exchange(want=0, notes=[Note(f"stream-{each}", b"%d" % number) for each in range(8)])
    for each in range(8):
        cursor, found = 0, list[bytes]()
        while bodies := (seen := await scene.reader.notes(f"stream-{each}", cursor, 7)).bodies:
            cursor = seen.cursor
            found += bodies
        assert found == [b"%d" % number for number in range(20)]


async def _find(scene: Scene, name: str) -> Whereabouts:
    task = page(name)
    assert task.key is not None
    [found] = await scene.reader.whereabouts(task.site, task.url, task.key)
    return found
