"""What is kept in order beside the tasks, and where a URL is."""

from __future__ import annotations

import pytest

from shoal.core.notes import Note
from shoal.core.task import NewTask, RunState, State
from shoal.frontier.contract.reader import Whereabouts
from shoal.testing.contract.harness import Capability, Harness, needs
from shoal.testing.contract.scene import REASON, Scene, dead, done, page, pages, retried


@pytest.mark.asyncio
class NoteContract:
    """Streams of notes, kept with the settlements."""

    async def test_notes_come_back_in_order(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.exchange(want=0, notes=[Note("a", b"1"), Note("b", b"x"), Note("a", b"2")])
        await scene.exchange(want=0, notes=[Note("a", b"\x00\xff3")])
        first = await scene.reader.notes("a", 0, 2)
        assert list(first.bodies) == [b"1", b"2"]
        second = await scene.reader.notes("a", first.cursor)
        assert list(second.bodies) == [b"\x00\xff3"]
        nothing = await scene.reader.notes("a", second.cursor)
        assert (list(nothing.bodies), nothing.cursor) == ([], second.cursor)
        assert list((await scene.reader.notes("unknown")).bodies) == []

    async def test_notes_of_a_late_settlement_are_kept(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0, lease=20_000)
        await scene.put("a.example/0")
        lease = await scene.claim_one()
        await scene.settle(done(lease))
        granted = await scene.exchange(done(lease), want=0, notes=[Note("requests/run", b"made")])
        assert list(granted.late) == [lease.token]
        assert list((await scene.reader.notes("requests/run")).bodies) == [b"made"]

    async def test_notes_are_gone_after_their_time_and_not_before(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.exchange(want=0, notes=[Note("a", b"short", ttl=10_000), Note("a", b"long")])
        await scene.advance(9_999)
        await scene.sweep_all()
        assert list((await scene.reader.notes("a")).bodies) == [b"short", b"long"]
        await scene.advance(1)
        await scene.sweep_all()
        assert list((await scene.reader.notes("a")).bodies) == [b"long"]

    async def test_a_stream_can_be_forgotten(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.exchange(want=0, notes=[Note("a", b"1"), Note("b", b"2")])
        await scene.frontier.forget_notes("a")
        await scene.frontier.forget_notes("unknown")
        assert list((await scene.reader.notes("a")).bodies) == []
        assert list((await scene.reader.notes("b")).bodies) == [b"2"]

    async def test_notes_survive(self, harness: Harness) -> None:
        needs(harness, Capability.REOPENING)
        scene = Scene(harness)
        await scene.exchange(want=0, notes=[Note("a", b"1")])
        await harness.reopen()
        await scene.exchange(want=0, notes=[Note("a", b"2")])
        assert list((await scene.reader.notes("a")).bodies) == [b"1", b"2"]


@pytest.mark.asyncio
class WhereaboutsContract:
    """Where is this URL?"""

    async def test_waiting_behind_others(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=1_000)
        await scene.put(*pages("a.example", 5), page("a.example/first", priority=9), *pages("b.example", 3))
        found = await _find(scene, page("a.example/3"))
        assert (found.state, found.ahead, found.run_id, found.lane) == (State.WAITING, 4, "run", "bulk")
        assert (found.run_state, found.held, found.attempts) == (RunState.OPEN, False, 0)
        assert (await _find(scene, page("a.example/first"))).ahead == 0

    async def test_leased_delayed_dead_and_ended(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0, concurrency=9)
        await scene.put(*pages("a.example", 4), page("a.example/later", priority=-1, ttl=500_000))
        first, second, third, fourth = await scene.claim(4, exits=("one",), by="w7")
        granted = await scene.settle(done(first), dead(second), retried(third, 60_000))
        assert (await _find(scene, page("a.example/0"))).state is State.DONE
        gone = await _find(scene, page("a.example/1"))
        assert (gone.state, gone.reason, gone.attempts) == (State.DEAD, REASON, 1)
        later = await _find(scene, page("a.example/2"))
        assert (later.state, later.not_before, later.attempts) == (State.WAITING, granted.now + 60_000, 1)
        held = await _find(scene, page("a.example/3"))
        assert (held.state, held.worker, held.exit, held.task) == (State.LEASED, "w7", "one", fourth.task.id)
        assert held.lease_until == fourth.expires_at
        expiring = await _find(scene, page("a.example/later"))
        assert expiring.expires_at is not None
        assert expiring.expires_at > granted.now

    async def test_held_back_by_a_pause(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        await scene.put("a.example/0")
        await scene.frontier.pause_run("run")
        found = await _find(scene, page("a.example/0"))
        assert (found.state, found.run_state) == (State.WAITING, RunState.PAUSED)

    async def test_in_several_runs_newest_first(self, harness: Harness) -> None:
        scene = Scene(harness)
        for run in ("older", "newer", "other"):
            await scene.open_run(run)
            await scene.advance(5)
        for run in ("older", "newer"):
            await scene.put("a.example/0", run=run)
        task = page("a.example/0")
        assert task.key is not None
        found = await scene.reader.whereabouts(task.site, task.url, task.key)
        assert [each.run_id for each in found] == ["newer", "older"]
        found = await scene.reader.whereabouts(task.site, task.url, task.key, "older")
        assert [each.run_id for each in found] == ["older"]

    async def test_never_seen(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        await scene.put("a.example/0")
        task = page("a.example/unknown")
        assert task.key is not None
        assert list(await scene.reader.whereabouts(task.site, task.url, task.key)) == []

    async def test_the_clock_can_be_read(self, harness: Harness) -> None:
        scene = Scene(harness)
        before = await scene.reader.now()
        await scene.advance(5_000)
        assert 5_000 <= await scene.reader.now() - before < 65_000


async def _find(scene: Scene, task: NewTask) -> Whereabouts:
    assert task.key is not None
    [found] = await scene.reader.whereabouts(task.site, task.url, task.key)
    return found
