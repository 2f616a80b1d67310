"""A run that moves is open in one store at a time, whoever works on it, dies or comes in between."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from shoal.core.task import LanePolicy, RunState
from shoal.errors import BeingMoved, UnknownRun, UsageError
from shoal.frontier.contract.frontier import WorkerInfo
from shoal.frontier.postgres.claim import exchange_values
from shoal.frontier.postgres.engine import PostgresEngine
from shoal.frontier.shared.liveness import this_machine
from shoal.runs.relocate import Journey
from shoal.testing.contract.scene import (
    done,
    names,
    page,
)
from support.moving import (
    KINDS,
    PAIRS,
    Killed,
    Mortal,
    Stores,
    fill,
    handed_out,
    is_open,
    journey,
    move,
    opened_stores,
    same_but_for_clocks,
    seen_by_readers,
)
from support.waiting import until


@pytest.fixture
async def stores(tmp_path: Path) -> AsyncIterator[Stores]:
    async with opened_stores(tmp_path) as some:
        yield some


@pytest.mark.parametrize("answers", [True, False])
@pytest.mark.parametrize(("source_kind", "target_kind"), PAIRS)
async def test_killed_at_every_step_and_given_again(
    stores: Stores, source_kind: str, target_kind: str, answers: bool
) -> None:
    source, target, twin = [await stores.new(kind) for kind in (source_kind, target_kind, source_kind)]
    await fill(source)
    await fill(twin)
    before = await seen_by_readers(source)
    kills = 0
    for lives in itertools.count(1):
        process = Mortal(lives, answers=answers)
        places = (process.place(source, "old://store"), process.place(target, "new://store"))
        try:
            await Journey("run", *places, 0, lambda _: None).make()
            break
        except Killed:
            kills += 1
        assert not (await is_open(source) and await is_open(target)), f"open in both after {lives} calls"
        if lives % 5 == 0:
            await source.frontier.resume_run("run")
            left = (await source.reader.run("run")).state is RunState.CANCELLED
            assert await is_open(source) is not left, "the old store goes on, unless the switch was made"
    print(f"{source_kind} to {target_kind}: killed {kills} times")
    assert kills >= 12
    assert not await is_open(source)
    assert await seen_by_readers(target) == before
    same_but_for_clocks(await handed_out(target), await handed_out(twin))
    await target.check_books()


@pytest.mark.parametrize("kind", KINDS)
async def test_on_its_way_a_run_is_changed_in_neither_store(stores: Stores, kind: str) -> None:
    source, target = await stores.new(kind), await stores.new(kind)
    await fill(source)
    process = Mortal(7, answers=False)
    places = (process.place(source, "old://store"), process.place(target, "new://store"))
    with pytest.raises(Killed):
        await Journey("run", *places, 0, lambda _: None).make()
    leaving, arriving = [await scene.reader.run("run") for scene in (source, target)]
    assert (leaving.standing, arriving.standing) == ("being moved to new://store", "being moved here from old://store")
    for scene in (source, target):
        with pytest.raises(BeingMoved):
            await scene.put(page("z/1"))
        with pytest.raises(BeingMoved):
            await scene.frontier.requeue_dead("run")
    with pytest.raises(BeingMoved):
        await target.frontier.resume_run("run")
    await source.frontier.resume_run("run")
    assert await is_open(source)
    assert (await source.put(page("z/1"))).accepted == 1
    await move(source, target)
    assert (await source.reader.run("run")).standing == "moved to new://store"
    with pytest.raises(UsageError):
        await source.put(page("z/2"))
    with pytest.raises(UsageError, match="moved to new://store before; there is nothing left"):
        await journey(source, target).make()


@pytest.mark.parametrize("kind", KINDS)
async def test_workers_finish_what_they_have_and_nothing_new_is_begun(stores: Stores, kind: str) -> None:
    source, target = await stores.new(kind), await stores.new("sqlite")
    await source.open_run(lanes={"files": LanePolicy(auto_ack=True)})
    await source.put("a/0", "b/0", page("c/0", lane="files"), "a/1")
    leases = await source.claim(3)
    assert len(leases) == 3
    with pytest.raises(UsageError, match="Workers still hold 3 tasks of run after 0 s"):
        await journey(source, target, wait=0).make()
    with pytest.raises(UnknownRun):
        await target.reader.run("run")
    assert (await source.reader.run("run")).standing == "open", "given up: the old store goes on"
    moving = asyncio.create_task(journey(source, target, wait=60_000).make())

    async def paused() -> bool:
        return (await source.reader.run("run")).state is RunState.PAUSED

    await until(paused, "the run is being moved")
    with pytest.raises(BeingMoved):
        await source.frontier.seal_run("run")
    await source.advance(5000)
    for lease in leases:
        assert not await source.claim(5)
        await source.settle(done(lease, b"{}", tasks=[page(f"{lease.task.site}/found")]))
    moved = await moving
    assert moved is not None
    assert (moved.tasks, moved.items) == (4, 3)


@pytest.mark.parametrize("kind", KINDS)
async def test_what_the_dead_held_comes_back_first(stores: Stores, kind: str) -> None:
    source, target = await stores.new(kind), await stores.new("postgres")
    await source.open_run()
    await source.put("a/0")
    ask = source.ask(want=1)
    gone = WorkerInfo("gone", this_machine(), 2**22 + 1, 1)
    assert len((await source.frontier.exchange(msgspec.structs.replace(ask, worker=gone))).leases) == 1
    assert (await move(source, target)).tasks == 1
    assert (await target.counters()).crashes == 1
    await target.advance(5000)
    assert (await target.claim_one()).task.crashes == 1


async def test_where_another_run_has_that_id_nothing_changes(stores: Stores) -> None:
    source, target = await stores.new("sqlite"), await stores.new("postgres")
    await fill(source)
    await target.open_run()
    with pytest.raises(UsageError, match="already has a run 'run' of its own"):
        await journey(source, target).make()
    assert (await source.reader.run("run")).move is None
    assert await is_open(source)


@pytest.mark.parametrize("kind", KINDS)
async def test_the_same_store_is_noticed_however_it_is_written(stores: Stores, kind: str) -> None:
    source = await stores.new(kind)
    await fill(source)
    with pytest.raises(UsageError, match="are the same store"):
        await journey(source, source).make()
    assert await is_open(source)


@pytest.mark.parametrize("kind", KINDS)
async def test_what_a_killed_move_left_in_a_shared_queue_is_cleared_away(stores: Stores, kind: str) -> None:
    source, target = await stores.new("sqlite"), await stores.new(kind)
    await fill(source, queue="jobs")
    process = Mortal(11, answers=True)
    places = (process.place(source, "old://store"), process.place(target, "new://store"))
    with pytest.raises(Killed):
        await Journey("run", *places, 0, lambda _: None).make()
    assert (await target.counters()).waiting > 0
    before = await seen_by_readers(source)
    await move(source, target)
    assert await seen_by_readers(target) == before


@pytest.mark.parametrize("kind", KINDS)
async def test_in_the_midst_of_a_storm_of_claims(stores: Stores, kind: str) -> None:
    """Claims that are under way when the run is closed still count: what is handed out there is not handed out here."""
    source, target = await stores.new(kind), await stores.new("sqlite")
    await source.open_run(delay=0, concurrency=50)
    await source.put(*(page(f"{site}/{n}") for n in range(200) for site in "abcdefgh"))
    there: list[str] = []

    async def work(name: str) -> None:
        leases: Any = ()
        while True:
            settled = [done(lease) for lease in leases]
            there.extend(names(leases))
            leases = (await source.exchange(*settled, want=3, by=name)).leases
            if not leases and (await source.reader.run("run")).state is RunState.PAUSED:
                return

    workers = [asyncio.create_task(work(f"w{n}")) for n in range(6)]
    await until(lambda: len(there) >= 200, "the workers have done two hundred", again=0.001)
    await journey(source, target, wait=60_000).make()
    await asyncio.gather(*workers)
    here = names(await target.drain())
    print(f"{kind}: {len(there)} handed out in the old store, {len(here)} in the new one")
    assert len(here) > 0
    assert sorted(there + here) == sorted(f"{site}/{n}" for n in range(200) for site in "abcdefgh")
    assert (await target.counters()).done == 1600


async def test_a_claim_that_has_not_ended_when_a_run_is_closed_is_waited_for(stores: Stores) -> None:
    """PostgreSQL: its transaction began before the mark and commits after it."""
    source, target = await stores.new("postgres"), await stores.new("sqlite")
    await source.open_run()
    await source.put("a/0")
    connections = cast("PostgresEngine", source.engine)._connections
    connection = await connections.connect()
    try:
        values = exchange_values(source.ask(), (), patient=False)
        query, sent = connections.call("exchange", await source.now(), *values)
        claim = connection.transaction()
        await claim.start()
        rows = await connection.fetch(query, *sent)
        assert len(rows) == 2, "one lease, and the row that speaks for all"
        moving = asyncio.create_task(journey(source, target).make())

        async def waits() -> bool:
            return moving.done() or await _waits_for_a_lock(connection)

        await until(waits, "the move waits for the claim")
        await claim.commit()
    finally:
        await connection.close()
    with pytest.raises(UsageError, match="Workers still hold 1 task"):
        await moving


async def _waits_for_a_lock(connection: Any) -> bool:
    found = await connection.fetchval(
        "SELECT count(*) FROM pg_locks WHERE NOT granted AND mode = 'ShareRowExclusiveLock' AND database = "
        "(SELECT oid FROM pg_database WHERE datname = current_database())"
    )
    return bool(found)
