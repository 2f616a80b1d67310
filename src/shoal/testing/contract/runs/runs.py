"""The life of a run: open, sealed, paused, resumed, cancelled, finished, and open again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from shoal.core.outcome import Done
from shoal.core.task import LanePolicy, Policy, RunState
from shoal.errors import UnknownRun
from shoal.frontier.contract.frontier import NewRun, Run
from shoal.testing.contract.harness import Capability, Harness, needs
from shoal.testing.contract.scene import Scene, done, names, page, pages, retried, settle, snoozed

CALLS: dict[str, Callable[[Scene], Awaitable[object]]] = {
    "seal_run": lambda scene: scene.frontier.seal_run("nobody"),
    "pause_run": lambda scene: scene.frontier.pause_run("nobody"),
    "resume_run": lambda scene: scene.frontier.resume_run("nobody"),
    "cancel_run": lambda scene: scene.frontier.cancel_run("nobody"),
    "requeue_dead": lambda scene: scene.frontier.requeue_dead("nobody"),
    "purge_dead": lambda scene: scene.frontier.purge_dead("nobody"),
    "run": lambda scene: scene.reader.run("nobody"),
    "items": lambda scene: scene.reader.items("nobody"),
    "dead": lambda scene: scene.reader.dead("nobody"),
}


@pytest.mark.asyncio
class RunContract:
    """States of runs, in a queue of their own and in a shared one."""

    async def test_a_run_is_stored_as_it_was_made(self, harness: Harness) -> None:
        scene = Scene(harness)
        policy = Policy(5, 6, 7, "tor", 8_000, 9, 10, 11, {"files": LanePolicy(12, auto_ack=True)})
        now = await scene.now()
        made = await scene.frontier.create_run(NewRun("run", "shop", policy, "distributed", "q", b'{"zip":"1"}'))
        assert (made.run_id, made.scraper, made.mode, made.queue) == ("run", "shop", "distributed", "q")
        assert (made.state, made.policy, made.input) == (RunState.OPEN, policy, b'{"zip":"1"}')
        assert (made.created_at, made.ended_at, made.lanes) == (now, None, {})
        assert await scene.reader.run("run") == made

    async def test_the_same_id_again_answers_the_run_that_exists(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run("run", delay=5)
        await scene.put("a.example/1")
        before = await scene.reader.run("run")
        again = await scene.frontier.create_run(NewRun("run", "other", Policy(delay=9), queue="q"))
        assert again == before == await scene.reader.run("run")

    async def test_runs_are_listed_newest_first(self, harness: Harness) -> None:
        scene = Scene(harness)
        for run_id in ("b", "c", "a"):
            await scene.open_run(run_id)
        assert [run.run_id for run in await scene.reader.runs()] == ["a", "c", "b"]

    @pytest.mark.parametrize("verb", CALLS)
    async def test_an_unknown_run_is_named_by_every_verb(self, harness: Harness, verb: str) -> None:
        with pytest.raises(UnknownRun, match="nobody"):
            await CALLS[verb](Scene(harness))

    async def test_a_run_ends_only_when_sealed_and_empty(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        await scene.put("a.example/1")
        await scene.drain()
        assert (await scene.reader.run("run")).state is RunState.OPEN, "more may be seeded"
        await scene.put("a.example/2")
        await scene.frontier.seal_run("run")
        assert (await scene.reader.run("run")).state is RunState.RUNNING
        await scene.advance(1_000)
        lease = await scene.claim_one()
        assert (await scene.reader.run("run")).state is RunState.RUNNING, "a leased task is not done"
        granted = await scene.settle(done(lease))
        run = await scene.reader.run("run")
        assert (run.state, run.ended_at) == (RunState.FINISHED, granted.now)

    async def test_links_keep_a_run_going(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0)
        await scene.put("a.example/1")
        await scene.frontier.seal_run("run")
        await scene.settle(done(await scene.claim_one(), tasks=[page("a.example/2")]))
        assert (await scene.reader.run("run")).state is RunState.RUNNING

    async def test_sealing_an_empty_run_ends_it_and_the_second_time_nothing(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        await scene.frontier.seal_run("run")
        before = await scene.reader.run("run")
        assert before.state is RunState.FINISHED
        await scene.advance(5)
        await scene.frontier.seal_run("run")
        assert await scene.reader.run("run") == before

    @pytest.mark.parametrize("how", ["expired", "dropped", "buried"])
    async def test_a_run_ends_however_its_last_task_ended(self, harness: Harness, how: str) -> None:
        scene = Scene(harness)
        await scene.open_run(crashes=1, lease=10_000)
        await scene.put(page("a.example/1", ttl=20_000))
        await scene.frontier.seal_run("run")
        if how == "buried":
            await scene.claim_one()
        await scene.advance(20_000)
        if how == "dropped":
            assert await scene.claim() == []
        await scene.sweep_all()
        assert (await scene.reader.run("run")).state is RunState.FINISHED

    @pytest.mark.parametrize("queue", [None, "shared"])
    async def test_nothing_of_a_paused_run_is_claimed(self, harness: Harness, queue: str | None) -> None:
        scene = Scene(harness)
        await scene.open_run("run", queue=queue)
        await scene.open_run("other", queue=queue)
        await scene.put(*pages("a.example", 3), page("b.example/1", lane="files"), page("c.example/1", wait=500))
        await scene.put("a.example/other", run="other")
        await scene.frontier.pause_run("run")
        assert (await scene.reader.run("run")).state is RunState.PAUSED
        await scene.put("d.example/1", page("d.example/2", lane="priority"))
        await scene.advance(500)
        assert names(await scene.drain()) == ["a.example/other"]
        counts = await scene.counters()
        assert (counts.waiting, counts.accepted) == (7, 7)
        assert (await scene.exchange()).wake_at is None, "nothing can be due before it is resumed"
        await scene.frontier.resume_run("run")
        assert len(await scene.drain()) == 7
        await scene.check_books()

    @pytest.mark.parametrize("queue", [None, "shared"])
    async def test_a_resumed_run_has_its_old_order(self, harness: Harness, queue: str | None) -> None:
        scene = Scene(harness)
        await scene.open_run(queue=queue)
        await scene.put(*pages("a.example", 5), page("a.example/high", priority=1))
        await scene.frontier.pause_run("run")
        assert await scene.claim(9) == []
        await scene.frontier.resume_run("run")
        assert names(await scene.drain()) == ["a.example/high", *(f"a.example/{n}" for n in range(5))]

    @pytest.mark.parametrize("queue", [None, "shared"])
    async def test_live_leases_of_a_paused_run_go_on(self, harness: Harness, queue: str | None) -> None:
        scene = Scene(harness)
        await scene.open_run(queue=queue, delay=0, concurrency=9)
        await scene.put(*pages("a.example", 3))
        a, b, c = await scene.claim(3)
        await scene.frontier.pause_run("run")
        granted = await scene.settle(done(a, b"{}", tasks=[page("a.example/new")]), retried(b), snoozed(c, 10))
        assert granted.late == []
        counts = await scene.counters()
        assert (counts.done, counts.items, counts.waiting) == (1, 1, 3)
        await scene.advance(10)
        assert await scene.claim(9) == []
        await scene.frontier.resume_run("run")
        assert len(await scene.drain()) == 3

    async def test_pause_and_resume_lead_back_to_where_it_was(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        await scene.frontier.resume_run("run")
        assert (await scene.reader.run("run")).state is RunState.OPEN, "it was not paused"
        for _ in range(2):
            await scene.frontier.pause_run("run")
        await scene.frontier.resume_run("run")
        assert (await scene.reader.run("run")).state is RunState.OPEN, "it is still being seeded"
        await scene.put("a.example/1")
        await scene.frontier.pause_run("run")
        await scene.frontier.seal_run("run")
        assert (await scene.reader.run("run")).state is RunState.PAUSED
        await scene.frontier.resume_run("run")
        assert (await scene.reader.run("run")).state is RunState.RUNNING

    async def test_a_paused_run_that_became_empty_ends_when_resumed(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        await scene.put("a.example/1")
        await scene.frontier.seal_run("run")
        lease = await scene.claim_one()
        await scene.frontier.pause_run("run")
        await scene.settle(done(lease))
        assert (await scene.reader.run("run")).state is RunState.PAUSED
        await scene.frontier.resume_run("run")
        assert (await scene.reader.run("run")).state is RunState.FINISHED

    async def test_an_ended_run_cannot_be_paused_resumed_or_cancelled(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run("finished")
        await scene.frontier.seal_run("finished")
        await scene.open_run("cancelled")
        await scene.frontier.cancel_run("cancelled")
        before: dict[str, Run] = {}
        for run_id in ("finished", "cancelled"):
            before[run_id] = await scene.reader.run(run_id)
            await scene.advance(5)
            await scene.frontier.pause_run(run_id)
            await scene.frontier.resume_run(run_id)
            await scene.frontier.cancel_run(run_id)
            await scene.frontier.seal_run(run_id)
            assert await scene.reader.run(run_id) == before[run_id]
        assert [before[name].state for name in before] == [RunState.FINISHED, RunState.CANCELLED]

    @pytest.mark.parametrize("paused", [False, True])
    @pytest.mark.parametrize("queue", [None, "shared"])
    async def test_cancel_ends_what_waits(self, harness: Harness, queue: str | None, paused: bool) -> None:
        scene = Scene(harness)
        await scene.open_run("run", queue=queue)
        await scene.open_run("other", queue=queue)
        await scene.put(*pages("a.example", 3), page("b.example/1", lane="files"), page("c.example/1", wait=500))
        await scene.put("a.example/other", "e.example/other", run="other")
        await scene.put("e.example/1")
        if paused:
            await scene.frontier.pause_run("run")
            await scene.claim(1, lanes=("files",))
        now = await scene.now()
        await scene.frontier.cancel_run("run")
        run = await scene.reader.run("run")
        assert (run.state, run.ended_at) == (RunState.CANCELLED, now)
        await scene.sweep_all()
        assert sorted(names(await scene.drain())) == ["a.example/other", "e.example/other"]
        await scene.sweep_all()
        counts = await scene.counters()
        assert (counts.cancelled, counts.remaining, counts.accepted) == (6, 0, 6)
        assert (await scene.counters("other")).done == 2
        assert (await scene.exchange(want=0)).left == 0
        await scene.check_books()

    async def test_a_sweep_ends_what_waited_in_a_queue_of_its_own(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        await scene.put(*pages("a.example", 3), page("c.example/1", wait=500))
        await scene.frontier.cancel_run("run")
        assert (await scene.frontier.sweep()).cancelled == 4
        counts = await scene.counters()
        assert (counts.cancelled, counts.waiting) == (4, 0)
        assert await scene.reader.sites() == []

    @pytest.mark.parametrize("queue", [None, "shared"])
    async def test_results_of_live_leases_of_a_cancelled_run_are_refused(
        self, harness: Harness, queue: str | None
    ) -> None:
        scene = Scene(harness)
        await scene.open_run(queue=queue, delay=0, concurrency=9)
        await scene.put(*pages("a.example", 3))
        a, b, c = await scene.claim(3)
        await scene.frontier.cancel_run("run")
        await scene.settle(done(a, b"{}", tasks=[page("b.example/1")]), retried(b), snoozed(c, 10))
        counts = await scene.counters()
        assert (counts.cancelled, counts.done, counts.items, counts.accepted) == (3, 0, 0, 3)
        assert (counts.retries, counts.snoozes, counts.remaining) == (0, 0, 0)
        await scene.check_books()

    async def test_the_clock_still_counts_a_request_of_a_cancelled_run(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run("run")
        await scene.open_run("other")
        await scene.put("a.example/1")
        await scene.put("a.example/other", run="other")
        lease = await scene.claim_one(queues=("run",))
        await scene.frontier.cancel_run("run")
        await scene.advance(600)
        await scene.settle(settle(lease, Done(), started=lease.claimed_at + 500))
        await scene.advance(899)
        assert await scene.claim() == []
        await scene.advance(1)
        assert names(await scene.claim()) == ["a.example/other"]

    async def test_a_lost_lease_of_a_cancelled_run_ends_as_cancelled(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(lease=10_000)
        await scene.put("a.example/1")
        await scene.claim_one()
        await scene.frontier.cancel_run("run")
        await scene.advance(10_000)
        swept = await scene.frontier.sweep()
        assert (swept.returned, swept.cancelled) == (0, 1)
        counts = await scene.counters()
        assert (counts.cancelled, counts.remaining) == (1, 0)

    async def test_a_queue_is_shared_in_order_of_arrival(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run("one", queue="q")
        await scene.open_run("two", queue="q")
        for number in range(3):
            await scene.put(f"a.example/{number}-one", run="one")
            await scene.put(f"a.example/{number}-two", run="two")
        got = names(await scene.drain(queues=("q",)))
        assert got == [f"a.example/{number}-{run}" for number in range(3) for run in ("one", "two")]

    async def test_lanes_of_a_run_count_what_has_not_ended(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        await scene.put(*pages("a.example", 2), page("b.example/1", lane="files"), page("c.example/w", wait=9_000))
        lease = await scene.claim_one(lanes=("bulk",))
        assert (await scene.reader.run("run")).lanes == {"bulk": 3, "files": 1}
        await scene.settle(done(lease))
        await scene.drain(lanes=("files",))
        assert (await scene.reader.run("run")).lanes == {"bulk": 2}

    async def test_lanes_of_a_run_in_a_shared_queue_are_its_own(self, harness: Harness) -> None:
        needs(harness, Capability.LANES_OF_SHARED_QUEUES)
        scene = Scene(harness)
        await scene.open_run("one", queue="q")
        await scene.open_run("two", queue="q")
        await scene.put(*pages("a.example", 2), run="one")
        await scene.put("a.example/1", page("b.example/1", lane="files"), run="two")
        assert (await scene.reader.run("one")).lanes == {"bulk": 2}
        assert (await scene.reader.run("two")).lanes == {"bulk": 1, "files": 1}
