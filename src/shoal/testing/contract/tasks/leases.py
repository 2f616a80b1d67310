"""Leases that nobody ends: they run out, come back, and are charged to whoever is to blame (I3, I4, I5)."""

from __future__ import annotations

import msgspec
import pytest

from shoal.core.outcome import Blame, Done
from shoal.core.politeness import transit_allowance
from shoal.frontier.contract.frontier import Renewal
from shoal.frontier.shared.liveness import this_machine
from shoal.testing.contract.harness import Harness
from shoal.testing.contract.scene import Scene, done, given_back, names, pages, settle, snoozed, worker


@pytest.mark.asyncio
class LeaseContract:
    """Expiry, renewal, crashes, and what a sweep does."""

    async def test_a_lost_lease_comes_back_after_its_time_and_one_sweep(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(lease=10_000, hard_timeout=2_000, delay=1_000)
        await scene.put(*pages("a.example", 2))
        lease = await scene.claim_one()
        await scene.advance(9_999)
        assert (await scene.frontier.sweep()).returned == 0
        assert (await scene.counters()).leased == 1
        await scene.advance(1)
        swept = await scene.frontier.sweep()
        assert (swept.returned, swept.buried, swept.more) == (1, 0, False)
        counts = await scene.counters()
        assert (counts.leased, counts.waiting, counts.crashes) == (0, 2, 1)
        assert await scene.claim() == []
        await scene.advance(3_000)
        again = await scene.claim_one(by="w2")
        assert (again.task.id, again.task.crashes, again.task.attempts) == (lease.task.id, 1, 0)

    async def test_the_slot_of_a_lost_lease_is_free_after_hard_timeout_and_delay(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(lease=10_000, hard_timeout=7_000, delay=1_000)
        await scene.put(*pages("a.example", 2))
        lease = await scene.claim_one()
        await scene.advance_to(lease.expires_at)
        await scene.sweep_all()
        granted = await scene.exchange()
        assert (granted.leases, granted.wake_at) == ([], lease.expires_at + 8_000)
        await scene.advance(7_999)
        assert await scene.claim() == []
        await scene.advance(1)
        assert len(await scene.claim()) == 1

    async def test_the_slot_of_a_dead_worker_waits_for_what_it_may_have_sent_last(self, harness: Harness) -> None:
        """A process of this machine that is gone: its last request may still be on its way to the target."""
        scene = Scene(harness)
        await scene.open_run(delay=2_000)
        await scene.open_run("hasty", delay=0)
        await scene.put("a.example/1")
        await scene.put("b.example/1", run="hasty")
        ask = scene.ask(want=2)
        gone = msgspec.structs.replace(ask.worker, worker_id="gone", machine=this_machine(), pid=2**22 + 1)
        assert len((await scene.frontier.exchange(msgspec.structs.replace(ask, worker=gone))).leases) == 2
        assert (await scene.frontier.sweep()).returned == 2
        assert names(await scene.claim(2)) == ["b.example/1"]
        await scene.advance(2_000 + transit_allowance(2_000) - 1)
        assert await scene.claim() == []
        await scene.advance(1)
        assert names(await scene.claim()) == ["a.example/1"]

    async def test_the_guard_over_a_lost_lease_outlasts_its_neighbours(self, harness: Harness) -> None:
        """Several leases in a slot: that another one ends well does not prove that the lost one's request has ended."""
        scene = Scene(harness)
        await scene.open_run(lease=10_000, hard_timeout=60_000, delay=100, concurrency=2)
        await scene.put(*pages("a.example", 4))
        lost = await scene.claim_one(by="w1")
        await scene.advance(5_000)
        alive = await scene.claim_one(by="w2")
        await scene.advance_to(lost.expires_at)
        await scene.sweep_all()
        await scene.settle(done(alive))
        await scene.advance(60_099)
        assert await scene.claim(9) == []
        await scene.advance(1)
        assert len(await scene.claim(9)) == 1

    async def test_other_exits_are_not_held_up_by_a_lost_lease(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(lease=10_000, hard_timeout=60_000)
        await scene.put(*pages("a.example", 2))
        exits = ("one", "two")
        lease = await scene.claim_one(exits=exits)
        await scene.advance_to(lease.expires_at)
        await scene.sweep_all()
        [again] = await scene.claim(9, exits=exits)
        assert again.exit != lease.exit

    async def test_renewal_keeps_a_lease(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(lease=10_000)
        await scene.put("a.example/1")
        lease = await scene.claim_one()
        for _ in range(3):
            await scene.advance(9_000)
            assert await scene.frontier.renew(worker(), [Renewal(lease.task.id, lease.token)]) == []
            assert (await scene.frontier.sweep()).returned == 0
        await scene.advance(9_999)
        assert (await scene.frontier.sweep()).returned == 0
        await scene.advance(1)
        assert (await scene.frontier.sweep()).returned == 1

    async def test_renewal_tells_which_leases_are_lost(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(lease=10_000)
        await scene.open_run("gone", lease=10_000)
        await scene.put("a.example/1", "b.example/1", "c.example/1")
        await scene.put("d.example/1", run="gone")
        ended, lost, alive = await scene.claim(3, queues=("run",))
        cancelled = await scene.claim_one(queues=("gone",))
        await scene.settle(done(ended))
        await scene.advance(5_000)
        kept = [Renewal(lease.task.id, lease.token) for lease in (alive, cancelled)]
        assert await scene.frontier.renew(worker(), kept) == []
        await scene.advance(5_000)
        await scene.sweep_all()
        await scene.frontier.cancel_run("gone")
        leases = (ended, lost, alive, cancelled)
        renewals = [Renewal(lease.task.id, lease.token) for lease in leases]
        wrong = Renewal(alive.task.id, alive.token ^ 1)
        answer = await scene.frontier.renew(worker(), [*renewals, wrong])
        assert sorted(answer) == sorted([ended.token, lost.token, cancelled.token, wrong.token])
        assert await scene.frontier.renew(worker(), []) == []

    async def test_a_lease_of_a_cancelled_run_is_not_renewed(self, harness: Harness) -> None:
        """Whoever cannot be told that its run is cancelled does not keep the slot for ever."""
        scene = Scene(harness)
        await scene.open_run(lease=10_000)
        await scene.put("a.example/1")
        lease = await scene.claim_one()
        await scene.frontier.cancel_run("run")
        await scene.advance(9_000)
        assert await scene.frontier.renew(worker(), [Renewal(lease.task.id, lease.token)]) == [lease.token]
        await scene.advance(1_000)
        assert (await scene.frontier.sweep()).cancelled == 1
        counts = await scene.counters()
        assert (counts.leased, counts.cancelled) == (0, 1)

    async def test_the_third_crash_makes_a_dead_letter(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(lease=10_000, hard_timeout=0, delay=0, crashes=3)
        await scene.put("a.example/1")
        for crashes in (0, 1, 2):
            lease = await scene.claim_one()
            assert lease.task.crashes == crashes
            await scene.advance(10_000)
            swept = await scene.frontier.sweep()
            assert (swept.returned, swept.buried) == ((1, 0) if crashes < 2 else (0, 1))
        assert await scene.claim() == []
        [letter] = await scene.reader.dead("run")
        assert (letter.crashes, letter.attempts, letter.reason.blame) == (3, 0, Blame.WORKER)
        counts = await scene.counters()
        assert (counts.dead, counts.crashes, counts.remaining) == (1, 3, 0)
        await scene.check_books()

    async def test_crashes_and_attempts_are_counted_apart(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(lease=10_000, hard_timeout=0, delay=0)
        await scene.put("a.example/1")
        await scene.claim_one()
        await scene.advance(10_000)
        await scene.sweep_all()
        lease = await scene.claim_one()
        await scene.settle(given_back(lease))
        lease = await scene.claim_one()
        assert (lease.task.crashes, lease.task.attempts) == (1, 0)
        assert (await scene.counters()).retries == 0

    async def test_a_lost_task_keeps_its_place(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(lease=10_000, hard_timeout=0, delay=0)
        await scene.put(*pages("a.example", 3))
        await scene.claim_one()
        await scene.advance(10_000)
        await scene.sweep_all()
        assert names(await scene.drain()) == ["a.example/0", "a.example/1", "a.example/2"]

    async def test_a_lost_lease_does_not_shorten_a_rate_limit(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(lease=10_000, hard_timeout=0, delay=0, concurrency=2)
        await scene.put(*pages("a.example", 3))
        _, limited = await scene.claim(2)
        await scene.settle(snoozed(limited, 60_000, penalty=3))
        await scene.advance(10_000)
        await scene.sweep_all()
        await scene.advance(49_999)
        assert await scene.claim() == []
        await scene.advance(1)
        assert (await scene.claim_one()).penalty == 3

    async def test_a_sweep_is_bounded_and_says_if_there_is_more(self, harness: Harness) -> None:
        """I10, where it shows: thousands of expired tasks end in steps, and none is forgotten or counted twice."""
        scene = Scene(harness)
        await scene.open_run(lanes={}, delay=0)
        number = 5_000
        short = [task for n in range(10) for task in pages(f"{n}.example", number // 10, ttl=1_000)]
        await scene.put(*short)
        await scene.advance(1_000)
        first = await scene.frontier.sweep()
        assert first.more
        assert 0 < first.expired < number
        total = first.expired
        for _ in range(100):
            swept = await scene.frontier.sweep()
            total += swept.expired
            if not swept.more:
                break
        assert total == number
        counts = await scene.counters()
        assert (counts.expired, counts.waiting) == (number, 0)

    async def test_a_sweep_of_nothing_does_nothing(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        await scene.put("a.example/1", "b.example/1")
        await scene.settle(done((await scene.claim_one()), b"{}"))
        before = await scene.counters()
        swept = await scene.frontier.sweep()
        assert not any((swept.returned, swept.buried, swept.expired, swept.cancelled, swept.items_deleted, swept.more))
        assert await scene.counters() == before

    async def test_workers_are_known_while_they_hold_or_were_seen(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(lease=10_000_000)
        await scene.put("a.example/1", "b.example/1")
        lease = await scene.claim_one(by="holder")
        other = await scene.claim_one(by="other")
        await scene.advance(1_000)
        await scene.exchange(settle(other, Done()), want=0, by="other")
        now = await scene.now()
        found = {record.info.worker_id: record for record in await scene.reader.workers()}
        assert (found["holder"].leases, found["other"].leases) == (1, 0)
        assert (found["holder"].seen_at, found["other"].seen_at) == (now - 1_000, now)
        assert found["holder"].info == worker("holder")
        await scene.advance(3_600_001)
        await scene.sweep_all()
        assert [record.info.worker_id for record in await scene.reader.workers()] == ["holder"]
        assert lease.token not in await scene.frontier.renew(worker("w3"), [])
