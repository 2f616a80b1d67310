"""A run moves between stores of every kind, with all that belongs to it."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.outcome import Blame, Dropped, Reason
from shoal.core.task import NewTask, RunState, State
from shoal.frontier.contract.mover import MoveState
from shoal.frontier.shared.clock_shift import shift_between
from shoal.testing.contract.scene import (
    Scene,
    dead,
    done,
    given_back,
    names,
    page,
    pages,
    settle,
)
from shoal.testing.contract.tasks.endings import find
from support.moving import (
    HOURS,
    KINDS,
    PAIRS,
    TOLERANCE,
    Stores,
    fill,
    handed_out,
    is_open,
    meanwhile,
    move,
    opened_stores,
    same_but_for_clocks,
    seen_by_readers,
)


@pytest.fixture
async def stores(tmp_path: Path) -> AsyncIterator[Stores]:
    async with opened_stores(tmp_path) as some:
        yield some


@pytest.mark.parametrize("target_kind", KINDS)
@pytest.mark.parametrize("source_kind", KINDS)
async def test_everything_that_belongs_to_a_run_comes_along(stores: Stores, source_kind: str, target_kind: str) -> None:
    source, target, twin = [await stores.new(kind) for kind in (source_kind, target_kind, source_kind)]
    await fill(source)
    await fill(twin)
    before = await seen_by_readers(source)
    moved = await move(source, target)
    assert (moved.tasks, moved.items, moved.dead) == (before["run"].counters.waiting, 3, 1)
    assert await seen_by_readers(target) == before
    again = await target.put(page("a/5"), page("e/0"), page("k/0"), page("h/0"), page("z/9"))
    await twin.put(page("a/5"), page("e/0"), page("k/0"), page("h/0"), page("z/9"))
    assert (again.accepted, again.duplicates) == (2, 3), "what the run has seen, it has seen"
    assert await target.frontier.requeue_dead("run") == await twin.frontier.requeue_dead("run") == 1
    same_but_for_clocks(await handed_out(target), await handed_out(twin))
    await target.check_books()
    assert (await target.reader.run("run")).state is RunState.FINISHED


@pytest.mark.parametrize("target_kind", KINDS)
@pytest.mark.parametrize("source_kind", KINDS)
async def test_how_pages_ended_comes_along(stores: Stores, source_kind: str, target_kind: str) -> None:
    """And is forgotten there, too, when such a page is let in again; whichever store has written it."""
    source, target, last = [await stores.new(kind) for kind in (source_kind, target_kind, source_kind)]
    await source.open_run(delay=0, concurrency=9)
    secret = NewTask("https://me:secret@a/2", "a", page("a/2").key)
    await source.put(page("a/0"), page("a/1"), secret, page("a/3"), page("c/0", wait=HOURS))
    leases = {lease.task.url[-3:]: lease for lease in await source.claim(9)}
    await source.put(page("b/0", ttl=500))
    sold = [Dropped(Reason(Blame.HANDLER, f"sold out {number}")) for number in range(3)]
    await source.settle(
        *(settle(leases[f"a/{number}"], outcome) for number, outcome in enumerate(sold)), done(leases["a/3"])
    )
    await source.advance(500)
    await source.sweep_all()
    ended = ("a/0", "a/1", "a/2", "a/3", "b/0")
    before = [await _end(source, name) for name in ended]
    assert [each[0] for each in before] == [State.DROPPED] * 3 + [State.DONE, State.EXPIRED]
    for start, end in itertools.pairwise((source, target, last)):
        await move(start, end)
        assert [await _end(end, name) for name in ended] == before
        await start.sweep_all()
        assert (await find(start, "c/0")).state is State.CANCELLED, "it went elsewhere"
        for name in ("a/0", "b/0") if end is target else ():
            await end.put(page(name, key=None))
            lease = await end.claim_one()
            assert (await find(end, name)).state is State.LEASED
            await end.settle(done(lease))
            before[ended.index(name)] = (State.DONE, None, None)
            assert await _end(end, name) == (State.DONE, None, None)


async def _end(scene: Scene, name: str) -> tuple[State, Reason | None, str | None]:
    found = await find(scene, name)
    return found.state, found.reason, found.url


async def test_round_and_round_back_to_the_first_store(stores: Stores) -> None:
    kinds = ("redis", "postgres", "sqlite", "redis in partitions")
    first, *others = [await stores.new(kind) for kind in kinds]
    twin = await stores.new("redis")
    await fill(first)
    await fill(twin)
    before = await seen_by_readers(first)
    for source, target in itertools.pairwise([first, *others, first]):
        await move(source, target)
        assert not await is_open(source)
        assert await seen_by_readers(target) == before
    same_but_for_clocks(await handed_out(first), await handed_out(twin))
    await first.check_books()


@pytest.mark.parametrize("kind", KINDS)
async def test_paused_by_hand_stays_paused(stores: Stores, kind: str) -> None:
    source, target = await stores.new("sqlite"), await stores.new(kind)
    await source.open_run()
    await source.put("a/0")
    await source.frontier.pause_run("run")
    await move(source, target)
    run = await target.reader.run("run")
    assert (run.state, run.move and run.move.state) == (RunState.PAUSED, MoveState.ARRIVED)
    assert not await is_open(target)
    await target.frontier.resume_run("run")
    assert await is_open(target)
    assert (await target.reader.run("run")).state is RunState.OPEN, "it was not sealed, and is not"


@pytest.mark.parametrize(("source_kind", "target_kind"), PAIRS)
async def test_a_pool_of_its_own_comes_along(stores: Stores, source_kind: str, target_kind: str) -> None:
    source, target = await stores.new(source_kind), await stores.new(target_kind)
    await source.open_run(delay=0, concurrency=9)
    tasks = [page(f"a/{number}", pool="tor", wait=5_000 * (number == 2)) for number in range(3)]
    await source.put("b/0", *tasks)
    only = {"tor": ["t1"]}
    await source.settle(dead(await source.claim_one(exits=only)))
    await move(source, target)
    await target.advance(5_000 + TOLERANCE)
    await target.frontier.requeue_dead("run")
    assert sorted(names(await target.claim(9))) == ["b/0"]
    assert sorted(names(await target.claim(9, exits=only))) == ["a/0", "a/1", "a/2"]


@pytest.mark.parametrize("target_kind", KINDS)
@pytest.mark.parametrize("source_kind", KINDS)
async def test_one_of_several_runs_in_a_queue(stores: Stores, source_kind: str, target_kind: str) -> None:
    source, target = await stores.new(source_kind), await stores.new(target_kind)
    for scene, runs in ((source, ("run", "other")), (target, ("third",))):
        for run in runs:
            await scene.open_run(run, queue="jobs")
        for number in range(9):
            for run in runs:
                await scene.put(page(f"a/{run}{number}"), page(f"b/{run}{number}", wait=5000), run=run)

    async def others_pass_by() -> None:
        await source.advance(6000)
        leases = await source.claim(3, queues=["jobs"])
        assert {lease.task.run_id for lease in leases} <= {"other"}
        await source.settle(*(given_back(lease) for lease in leases))

    meanwhile(target, others_pass_by)
    moved = await move(source, target)
    assert moved.tasks == 18
    assert (await target.reader.run("run")).queue == "jobs"
    left, came = [names(await scene.drain(queues=["jobs"])) for scene in (source, target)]
    assert {name.split("/")[1][:-1] for name in left} == {"other"}
    assert len(came) == 36
    for site in "ab":
        assert [name for name in came if name.startswith(f"{site}/run")] == [f"{site}/run{n}" for n in range(9)]
    for scene in (source, target):
        await scene.sweep_all()
    assert (await target.counters()).done == 18
    assert (await source.counters()).cancelled == 18


@pytest.mark.parametrize(("source_kind", "target_kind"), PAIRS)
async def test_long_lists_and_what_expires_on_the_way(stores: Stores, source_kind: str, target_kind: str) -> None:
    source, target = await stores.new(source_kind), await stores.new(target_kind)
    await source.open_run(delay=0, concurrency=100)
    await source.put(
        *(page(f"a/{n}", ttl=700 if n < 500 else None) for n in range(2300)),
        *pages("b", 40, priority=3, ttl=1000),
        *pages("c", 40, ttl=2000, wait=500),
    )
    late = source.claim(100, exits=("direct",))
    await source.settle(*(given_back(lease) for lease in reversed(await late)))

    async def time_passes() -> None:
        await source.advance(200)
        await source.frontier.sweep()

    meanwhile(target, time_passes)
    await move(source, target)
    await target.sweep_all()
    counters = await target.counters()
    assert (counters.accepted, counters.leased, counters.done) == (2380, 0, 0)
    came = names(await target.drain())
    assert [name for name in came if name.startswith("a/")][-1800:] == [f"a/{n}" for n in range(500, 2300)]
    counters = await target.counters()
    assert counters.done == len(came) == 2380 - counters.expired
    await target.check_books()


@given(
    ahead=st.floats(-1e7, 1e7),
    at=st.floats(0, 1e6),
    first=st.floats(0, 500),
    second=st.floats(0, 500),
    part=st.floats(0, 1),
)
def test_clocks_are_taken_for_later_and_lives_for_shorter(
    ahead: float, at: float, first: float, second: float, part: float
) -> None:
    """Each clock is read at some moment of its call, and answers whole milliseconds."""
    source = int(1e12 + at + first * part)
    target = int(1e12 + at + first + second * part + ahead)
    shift = shift_between(source, target, first + second)
    assert shift.least <= ahead <= shift.most + first * (1 - part) + second * part
    assert shift.most >= ahead, "never too early"
    assert shift.most - shift.least <= first + second + 3
