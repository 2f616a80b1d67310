"""What slows a site down beyond the delay of its runs: robots.txt, rate limits, and what is not one of them."""

from __future__ import annotations

import pytest

from shoal.core.clock import Millis
from shoal.core.outcome import Done
from shoal.core.task import Lease
from shoal.testing.contract.harness import Harness
from shoal.testing.contract.scene import Scene, done, names, page, pages, retried, settle, snoozed


@pytest.mark.asyncio
class LimitContract:
    """Crawl delay, rate limits and their penalty, retries."""

    async def test_crawl_delay_raises_the_delay(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=1_000)
        await scene.put(*pages("a.example", 4))
        lease = await scene.claim_one()
        await scene.settle(settle(lease, Done(), started=lease.claimed_at, crawl_delay=5_000))
        for _ in range(2):
            await scene.advance(4_999)
            assert await scene.claim() == []
            await scene.advance(1)
            lease = await scene.claim_one()
            assert lease.delay == 5_000
            await scene.settle(done(lease))

    async def test_crawl_delay_below_the_delay_changes_nothing(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=1_000)
        await scene.put(*pages("a.example", 2))
        lease = await scene.claim_one()
        await scene.settle(settle(lease, Done(), started=lease.claimed_at, crawl_delay=100))
        await scene.advance(999)
        assert await scene.claim() == []
        await scene.advance(1)
        assert (await scene.claim_one()).delay == 1_000

    async def test_crawl_delay_reaches_the_other_exits(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=1_000)
        await scene.put(*pages("a.example", 6))
        one, two = await scene.claim(2, exits=("one", "two"))
        await scene.settle(done(one))
        await scene.settle(settle(two, Done(), started=two.claimed_at, crawl_delay=5_000))
        await scene.advance(4_999)
        assert await scene.claim(9, exits=("one", "two")) == []
        await scene.advance(1)
        assert len(await scene.claim(9, exits=("one", "two"))) == 2

    async def test_a_lower_crawl_delay_is_seen_at_once(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=100)
        await scene.put(*pages("a.example", 6))
        exits = ("one", "two")
        one, two = await scene.claim(2, exits=exits)
        await scene.settle(settle(one, Done(), started=one.claimed_at, crawl_delay=60_000))
        await scene.advance(1_000)
        granted = await scene.exchange(settle(two, Done(), started=two.claimed_at + 950, crawl_delay=200), exits=exits)
        assert [lease.exit for lease in granted.leases] == ["one"]

    @pytest.mark.parametrize("exits", [("one", "two", "three"), ("one",)])
    @pytest.mark.parametrize(
        ("known", "told", "holds"),
        [
            (None, (5_000, 0, None), 1_000),
            (None, (0, 5_000, None), 5_000),
            (5_000, (8_000, 5_000, None), 5_000),
            (5_000, (8_000, None, 3_000), 3_000),
            (5_000, (0, 5_000, None), 5_000),
            (5_000, (None, None, None), 5_000),
        ],
    )
    async def test_of_several_crawl_delays_in_one_batch_the_last_one_holds(
        self,
        harness: Harness,
        known: Millis | None,
        told: tuple[Millis | None, ...],
        holds: Millis,
        exits: tuple[str, ...],
    ) -> None:
        """Also where it is the one that was known before, and whether or not the leases are of one slot."""
        scene = Scene(harness)
        await scene.open_run(delay=1_000, concurrency=3)
        await scene.put(*pages("a.example", 9))
        if known is not None:
            lease = await scene.claim_one(exits=exits)
            await scene.settle(settle(lease, Done(), started=lease.claimed_at, crawl_delay=known))
        leases: list[Lease] = []
        while len(leases) < 3:
            leases += await scene.claim(3 - len(leases), exits=exits)
            await scene.advance(1_000)
        last = max(lease.claimed_at for lease in leases)
        ends = [
            settle(lease, Done(), started=lease.claimed_at, crawl_delay=delay)
            for lease, delay in zip(leases, told, strict=True)
        ]
        await scene.settle(*ends)
        site = await scene.reader.site("a.example")
        assert site is not None
        assert site.delay == holds
        await scene.advance_to(last + holds)
        assert [lease.delay for lease in await scene.claim(1, exits=exits)] == [holds]

    async def test_a_retry_waits_on_the_task_and_not_on_the_slot(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=1_000)
        await scene.put(*pages("a.example", 2))
        await scene.settle(retried(await scene.claim_one(), 60_000))
        await scene.advance(1_000)
        second = await scene.claim_one()
        assert names([second]) == ["a.example/1"]
        await scene.settle(done(second))
        await scene.advance(58_999)
        assert await scene.claim() == []
        await scene.advance(1)
        again = await scene.claim_one()
        assert (names([again]), again.task.attempts) == (["a.example/0"], 1)

    async def test_a_rate_limit_waits_on_the_slot_and_not_on_the_task(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=1_000)
        exits = ("one", "two")
        await scene.put("a.example/0")
        lease = await scene.claim_one(exits=exits)
        await scene.settle(snoozed(lease, 60_000, penalty=2))
        other = await scene.claim_one(exits=exits)
        assert other.exit != lease.exit
        assert (other.task.id, other.task.attempts, other.penalty) == (lease.task.id, 0, 0), "the task is free at once"
        await scene.settle(done(other))
        await scene.put("a.example/1", "a.example/2", "b.example/0")
        assert names(await scene.claim(9, exits=(lease.exit,))) == ["b.example/0"], "the slot is not"
        await scene.advance(59_999)
        assert await scene.claim(9, exits=(lease.exit,)) == []
        await scene.advance(1)
        again = await scene.claim_one(exits=(lease.exit,))
        assert (again.exit, again.penalty) == (lease.exit, 2)
        counts = await scene.counters()
        assert (counts.snoozes, counts.retries) == (1, 0)

    async def test_a_rate_limit_is_seen_by_every_run_and_worker(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run("one")
        await scene.open_run("two")
        await scene.put("a.example/1", run="one")
        await scene.settle(snoozed(await scene.claim_one(by="w1"), 60_000))
        await scene.put(page("a.example/2", lane="priority"), run="two")
        granted = await scene.exchange(want=9, by="w2")
        assert (granted.leases, granted.wake_at) == ([], granted.now + 60_000)

    async def test_a_shorter_rate_limit_does_not_end_a_longer_one(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0, concurrency=2)
        await scene.put(*pages("a.example", 3))
        first, second = await scene.claim(2)
        await scene.settle(snoozed(first, 60_000))
        await scene.settle(snoozed(second, 1_000))
        await scene.advance(59_999)
        assert await scene.claim() == []
        await scene.advance(1)
        assert len(await scene.claim()) == 1
