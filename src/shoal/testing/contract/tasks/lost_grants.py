"""Grants that never reached their worker: it says what it holds, and the rest goes back at no cost (I1, I3, I4, I6)."""

from __future__ import annotations

import pytest

from shoal.core.task import LanePolicy
from shoal.frontier.contract.frontier import Renewal
from shoal.testing.contract.harness import Harness
from shoal.testing.contract.scene import Scene, done, names, pages, snoozed, worker


@pytest.mark.asyncio
class LostGrantContract:
    """`Ask.held`."""

    async def test_a_grant_that_was_lost_is_granted_anew_at_once(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=60_000)
        await scene.put(*pages("a.example", 3))
        lost = await scene.claim_one()
        granted = await scene.exchange(want=5, held=())
        [lease] = granted.leases
        assert (lease.task.id, lease.task.attempts, lease.task.crashes) == (lost.task.id, 0, 0)
        assert lease.token != lost.token
        assert (lease.start_at, granted.late) == (granted.now, [])
        counts = await scene.counters()
        assert (counts.leased, counts.waiting, counts.crashes, counts.retries, counts.snoozes) == (1, 2, 0, 0, 0)
        assert (await scene.settle(done(lost, b"{}"))).late == [lost.token]
        assert (await scene.settle(done(lease, b"{}"))).late == []
        await scene.check_books()

    async def test_what_is_held_or_settled_stays(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        await scene.put("a.example/1", "b.example/1", "c.example/1")
        kept, ended, lost = await scene.claim(3)
        granted = await scene.exchange(done(ended, b"{}"), want=5, held=(kept.token,))
        assert granted.late == []
        assert [lease.task.id for lease in granted.leases] == [lost.task.id]
        assert await scene.frontier.renew(worker(), [Renewal(kept.task.id, kept.token)]) == []
        counts = await scene.counters()
        assert (counts.done, counts.leased, counts.items) == (1, 2, 1)

    async def test_nothing_goes_back_unless_the_worker_says_what_it_holds(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        await scene.put("a.example/1")
        lease = await scene.claim_one()
        assert await scene.claim(5) == []
        assert (await scene.settle(done(lease))).late == []

    async def test_other_workers_keep_what_they_hold(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        await scene.put("a.example/1", "b.example/1")
        other = await scene.claim_one(by="other")
        lost = await scene.claim_one(by="w1")
        assert [lease.task.id for lease in await scene.claim(5, by="w1", held=())] == [lost.task.id]
        assert (await scene.settle(done(other))).late == []

    async def test_it_is_given_back_also_where_nothing_is_wanted(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        await scene.put("a.example/1", "b.example/1")
        await scene.claim(2)
        granted = await scene.exchange(want=0, held=())
        assert (granted.leases, granted.left) == ([], 2)
        assert (await scene.counters()).waiting == 2
        assert len(await scene.claim(5, by="another")) == 2

    async def test_lost_tasks_are_first_in_line_again(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0, concurrency=3)
        await scene.put(*pages("a.example", 6))
        assert names(await scene.claim(3)) == ["a.example/0", "a.example/1", "a.example/2"]
        assert names(await scene.claim(3, held=())) == ["a.example/0", "a.example/1", "a.example/2"]
        assert names(await scene.claim(3, held=())) == ["a.example/0", "a.example/1", "a.example/2"]

    async def test_the_clocks_are_put_back_to_the_last_real_request(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=1_000, site_delay=500, concurrency=2)
        await scene.put(*pages("a.example", 4))
        exits = ("one", "two")
        first = await scene.claim_one(exits=exits)
        await scene.settle(done(first))
        await scene.advance(500)
        lost = await scene.claim_one(exits=exits)
        assert lost.exit != first.exit
        await scene.advance(400)
        again = await scene.claim_one(exits=exits, held=())
        assert (again.exit, again.start_at) == (lost.exit, lost.claimed_at + 400)

    async def test_a_rate_limit_stands(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0, concurrency=2)
        await scene.put(*pages("a.example", 3))
        _, limited = await scene.claim(2)
        await scene.settle(snoozed(limited, 60_000))
        granted = await scene.exchange(want=5, held=())
        assert (granted.leases, granted.wake_at) == ([], granted.now + 60_000)
        assert (await scene.counters()).leased == 0

    async def test_lanes_that_acknowledge_at_the_claim_only_get_their_slot_back(self, harness: Harness) -> None:
        """At most once: what was claimed is settled, and is not handed out again, whoever heard of it."""
        scene = Scene(harness)
        await scene.open_run(delay=0, lanes={"priority": LanePolicy(auto_ack=True)})
        await scene.put(*pages("a.example", 2, lane="priority"))
        lost = await scene.claim_one()
        assert await scene.claim(5) == []
        again = await scene.claim_one(held=())
        assert again.task.id != lost.task.id
        counts = await scene.counters()
        assert (counts.done, counts.waiting, counts.leased) == (2, 0, 0)
        assert (await scene.settle(done(again, b"{}"))).left == 0

    async def test_a_cancelled_run_takes_nothing_back(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        await scene.put("a.example/1")
        await scene.claim_one()
        await scene.frontier.cancel_run("run")
        assert await scene.claim(5, held=()) == []
        counts = await scene.counters()
        assert (counts.cancelled, counts.remaining) == (1, 0)

    async def test_a_repeated_exchange_settles_once_and_loses_no_grant(self, harness: Harness) -> None:
        """What a worker does when it got no answer: the same again, with what it holds."""
        scene = Scene(harness)
        await scene.open_run()
        await scene.put("a.example/1", "b.example/1")
        lease = await scene.claim_one()
        ending = done(lease, b'{"n":1}', tasks=pages("c.example", 1))
        unheard = await scene.exchange(ending, want=1)
        again = await scene.exchange(ending, want=1, held=())
        assert (unheard.late, again.late) == ([], [lease.token])
        assert len(unheard.leases) == len(again.leases) == 1
        assert await scene.bodies() == [b'{"n":1}']
        counts = await scene.counters()
        assert (counts.done, counts.leased, counts.waiting, counts.items) == (1, 1, 1, 1)
        await scene.check_books()
