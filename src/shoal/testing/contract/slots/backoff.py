"""Rate limits that all workers see: of a slot, of a whole site, and the one request that goes first afterwards."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.core.outcome import Blame, Done, Reason, Retried, Snoozed
from shoal.core.politeness import QUIET
from shoal.core.task import Extra, Lease
from shoal.testing.contract.harness import Harness
from shoal.testing.contract.scene import LIMITED, Scene, done, given_back, names, page, pages, settle, snoozed

FIVE = ("one", "two", "three", "four", "five")


@pytest.mark.asyncio
class BackoffContract:
    """From a slot to its site, and back to work by a probe."""

    async def test_penalty_is_kept_while_requests_go_well_and_forgiven_in_quiet(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0)
        await scene.put(*pages("a.example", 5))
        await scene.settle(snoozed(await scene.claim_one(), 10_000, penalty=2))
        await scene.advance(10_000)
        lease = await scene.claim_one()
        assert lease.penalty == 2
        await scene.settle(done(lease))
        await scene.advance(QUIET - 1)
        lease = await scene.claim_one()
        assert lease.penalty == 2
        await scene.settle(done(lease))
        await scene.advance(1)
        lease = await scene.claim_one()
        assert lease.penalty == 1
        await scene.settle(done(lease))
        await scene.advance(5 * QUIET)
        assert (await scene.claim_one()).penalty == 0

    async def test_a_limit_in_one_batch_with_a_success_counts(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0, concurrency=2)
        await scene.put(*pages("a.example", 4))
        first, second = await scene.claim(2)
        await scene.settle(snoozed(first, 1_000, penalty=5), done(second))
        assert await scene.claim(9) == []
        await scene.advance(1_000)
        assert (await scene.claim_one()).penalty == 5

    async def test_limits_on_few_exits_are_theirs_alone(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=10, limit_exits=3)
        await scene.put(*pages("a.example", 9))
        leases = await _all_five(scene)
        await scene.settle(*(snoozed(lease, 60_000) for lease in leases[:2]), *(done(lease) for lease in leases[2:]))
        await scene.advance(10)
        assert {lease.exit for lease in await scene.claim(9, exits=FIVE)} == {lease.exit for lease in leases[2:]}

    async def test_limits_on_several_exits_stop_the_site(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=10, limit_exits=3)
        await scene.put(*pages("a.example", 9))
        leases = await _all_five(scene)
        await scene.put(*pages("b.example", 1))
        for lease, wait in zip(leases[:3], (60_000, 90_000, 70_000), strict=True):
            await scene.settle(snoozed(lease, wait))
            await scene.advance(100)
        await scene.settle(*(done(lease) for lease in leases[3:]))
        await scene.advance(1_000)
        granted = await scene.exchange(want=9, exits=(*FIVE, "six"))
        assert names(granted.leases) == ["b.example/0"], "the other site is not concerned"
        record = await scene.reader.site("a.example")
        assert record is not None
        assert record.cause == LIMITED.text
        assert record.blocked_until > granted.now + 80_000, "the longest of the three"
        await scene.advance_to(record.blocked_until - 1)
        assert await scene.claim(9, exits=(*FIVE, "six")) == []
        await scene.advance(1)
        assert len(await scene.claim(9, exits=(*FIVE, "six"))) == 1, "one request goes first"
        assert (await scene.counters()).retries == 0

    async def test_limits_far_apart_do_not_stop_the_site(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=10, limit_exits=3, limit_window=5_000)
        await scene.put(*pages("a.example", 9))
        leases = await _all_five(scene)
        for lease in leases[:3]:
            await scene.settle(snoozed(lease, 60_000))
            await scene.advance(2_501)
        await scene.settle(*(done(lease) for lease in leases[3:]))
        await scene.advance(10)
        assert {lease.exit for lease in await scene.claim(9, exits=FIVE)} == {lease.exit for lease in leases[3:]}

    async def test_one_exit_limited_again_and_again_is_one_exit(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=10, limit_exits=2)
        await scene.put(*pages("a.example", 9))
        for _ in range(3):
            lease = await scene.claim_one(exits=("one",))
            await scene.settle(snoozed(lease, 100))
            await scene.advance(100)
        assert len(await scene.claim(9, exits=("two",))) == 1

    async def test_the_probe_of_a_site_that_goes_well_lets_the_rest_follow(self, harness: Harness) -> None:
        scene = Scene(harness)
        probe = await _probe(scene)
        assert await scene.claim(9, exits=FIVE) == []
        granted = await scene.exchange(settle(probe, Done(), started=probe.claimed_at, requests=1), want=9, exits=FIVE)
        await scene.advance(10)
        more = await scene.claim(9, exits=FIVE)
        assert {lease.exit for lease in (*granted.leases, *more)} == set(FIVE)

    async def test_a_failure_that_is_no_limit_is_good_enough_for_a_probe(self, harness: Harness) -> None:
        scene = Scene(harness)
        probe = await _probe(scene)
        await scene.settle(settle(probe, Retried(0, Reason(Blame.URL, "HTTP 404")), started=probe.claimed_at))
        await scene.advance(10)
        assert len(await scene.claim(9, exits=FIVE)) > 1

    async def test_the_probe_of_a_site_that_is_limited_again_stops_it_again(self, harness: Harness) -> None:
        scene = Scene(harness)
        probe = await _probe(scene)
        granted = await scene.exchange(snoozed(probe, 30_000, penalty=2), want=9, exits=FIVE)
        assert list(granted.leases) == []
        await scene.advance(29_999)
        assert await scene.claim(9, exits=FIVE) == [], "one limit is enough while the site is on probation"
        await scene.advance(1)
        assert len(await scene.claim(9, exits=FIVE)) == 1

    async def test_a_probe_given_back_is_made_by_the_next(self, harness: Harness) -> None:
        scene = Scene(harness)
        probe = await _probe(scene)
        granted = await scene.exchange(given_back(probe), want=9, exits=FIVE)
        assert len(granted.leases) == 1
        assert await scene.claim(9, exits=FIVE) == []

    async def test_a_lost_probe_is_made_again(self, harness: Harness) -> None:
        scene = Scene(harness)
        await _probe(scene, lease=20_000, hard_timeout=5_000)
        await scene.advance(20_000)
        await scene.sweep_all()
        await scene.advance(20_000)
        assert len(await scene.claim(9, exits=FIVE)) == 1
        assert await scene.claim(9, exits=FIVE) == []

    async def test_one_request_goes_first_in_a_slot_of_several(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0, concurrency=3)
        await scene.put(*pages("a.example", 9))
        [lease] = await scene.claim(1)
        await scene.settle(snoozed(lease, 1_000))
        await scene.advance(1_000)
        probe = await scene.claim(9)
        assert len(probe) == 1
        assert await scene.claim(9) == []
        granted = await scene.exchange(done(probe[0]), want=9)
        assert len(granted.leases) == 3

    async def test_leases_that_were_out_when_the_limit_came_do_not_end_the_probation(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0, concurrency=3)
        await scene.put(*pages("a.example", 9))
        first, second, third = await scene.claim(3)
        await scene.settle(snoozed(first, 1_000))
        await scene.settle(done(second))
        await scene.advance(1_000)
        probe = await scene.claim(9)
        assert len(probe) == 1
        await scene.settle(done(third))
        assert await scene.claim(9) == [], "it was sent before the limit and says nothing about now"

    async def test_what_a_slot_waits_for_can_be_read(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=1_000)
        await scene.put(*pages("a.example", 3))
        lease = await scene.claim_one(exits=("one",))
        granted = await scene.settle(snoozed(lease, 60_000, penalty=2))
        [slot] = await scene.reader.slots("a.example")
        assert (slot.exit, slot.penalty, slot.live, slot.cause) == ("one", 2, 0, LIMITED.text)
        assert slot.blocked_until == slot.next_at == granted.now + 60_000
        record = await scene.reader.site("a.example")
        assert record is not None
        assert (record.waiting, record.leased, record.delay) == (3, 0, 1_000)
        assert await scene.reader.slots("unknown.example") == []
        assert await scene.reader.site("unknown.example") is None

    async def test_a_suffering_site_is_visited_more_slowly_and_recovers(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=1_000)
        await scene.put(*pages("a.example", 5))
        lease = await scene.claim_one()
        await scene.settle(settle(lease, Done(), started=lease.claimed_at, pace=4_000))
        await scene.advance(3_999)
        assert await scene.claim() == []
        await scene.advance(1)
        lease = await scene.claim_one()
        assert lease.delay == 4_000
        await scene.settle(settle(lease, Done(), started=lease.claimed_at))
        await scene.advance(4_000)
        lease = await scene.claim_one()
        assert lease.delay == 4_000, "nothing was said, so it stays"
        await scene.settle(settle(lease, Done(), started=lease.claimed_at, pace=0))
        await scene.advance(1_000)
        lease = await scene.claim_one()
        assert lease.delay == 1_000
        await scene.settle(settle(lease, Done(), started=lease.claimed_at, pace=10))
        await scene.advance(999)
        assert await scene.claim() == [], "never faster than the delay"


@pytest.mark.asyncio
class AsideContract:
    """Tasks that step aside: their slot waits, they wait longer, and another task of the site is the next to try."""

    async def test_another_task_of_the_site_is_the_next_to_try(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0)
        await scene.put(page("a.example/first", priority=9), *pages("a.example", 2))
        lease = await scene.claim_one()
        assert names([lease]) == ["a.example/first"]
        await scene.settle(snoozed(lease, 1_000, aside=1_500))
        await scene.advance(999)
        assert await scene.claim() == [], "the slot waits for all"
        await scene.advance(1)
        probe = await scene.claim_one()
        assert names([probe]) == ["a.example/0"]
        assert probe.penalty == 1
        await scene.settle(done(probe))
        await scene.advance(499)
        lease = await scene.claim_one()
        assert names([lease]) == ["a.example/1"], "its own time has not come"
        await scene.settle(done(lease))
        await scene.advance(1)
        assert names(await scene.claim()) == ["a.example/first"]

    async def test_alone_it_is_claimed_when_its_own_time_has_come(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0)
        await scene.put("a.example/1")
        granted = await scene.settle(snoozed(await scene.claim_one(), 1_000, aside=1_500))
        granted = await scene.exchange(want=9)
        assert granted.left, "the run is not over"
        await scene.advance(1_499)
        assert await scene.claim() == []
        await scene.advance(1)
        assert names(await scene.claim()) == ["a.example/1"]

    async def test_it_costs_nothing_and_brings_what_it_was_told(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0)
        await scene.put("a.example/1")
        lease = await scene.claim_one()
        outcome = Snoozed(0, 0, LIMITED, Extra(data={"n": 1}), 700)
        await scene.settle(settle(lease, outcome, started=lease.claimed_at, requests=1))
        counts = await scene.counters()
        assert (counts.waiting, counts.leased, counts.retries, counts.snoozes) == (1, 0, 0, 0)
        await scene.advance(699)
        assert await scene.claim() == []
        await scene.advance(1)
        lease = await scene.claim_one()
        assert (lease.task.url, lease.task.extra.data, lease.task.attempts) == ("https://a.example/1", {"n": 1}, 0)

    async def test_without_a_wait_its_slot_goes_on(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0)
        await scene.put(*pages("a.example", 2))
        lease = await scene.claim_one()
        granted = await scene.exchange(settle(lease, Snoozed(aside=5_000)), want=9)
        assert names(granted.leases) == ["a.example/1"]


async def _all_five(scene: Scene) -> list[Lease]:
    """A lease on each of five exits of one site, in the order of `FIVE`."""
    leases = await scene.claim(9, exits=FIVE)
    assert sorted(lease.exit for lease in leases) == sorted(FIVE)
    return sorted(leases, key=lambda lease: FIVE.index(lease.exit))


async def _probe(scene: Scene, **rules: Any) -> Lease:
    """A site that was limited on three exits, whose time is over: the lease of the one request that goes first."""
    await scene.open_run(delay=10, limit_exits=3, **rules)
    await scene.put(*pages("a.example", 20))
    leases = await _all_five(scene)
    await scene.settle(*(snoozed(lease, 60_000) for lease in leases[:3]), *(done(lease) for lease in leases[3:]))
    await scene.advance(60_000)
    [probe] = await scene.claim(9, exits=FIVE)
    return probe
