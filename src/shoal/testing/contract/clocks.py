"""Politeness: when a slot, and a site over all its exits, may next be used (I3, I4)."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from shoal.clock import Moment
from shoal.outcome import Done, Settlement
from shoal.task import Lease
from shoal.testing.contract.harness import Capability, Harness, needs
from shoal.testing.contract.scene import Scene, done, given_back, names, page, pages, retried, settle, snoozed


@pytest.mark.asyncio
class ClockContract:
    """Delay, site delay, concurrency, crawl delay, rate limits, several exits."""

    async def test_next_claim_is_exactly_delay_after_the_start(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=1_000)
        await scene.put(*pages("a.example", 2))
        lease = await scene.claim_one()
        await scene.advance(300)
        await scene.settle(settle(lease, Done(), started=lease.claimed_at + 200))
        await scene.advance(899)
        assert await scene.claim() == []
        await scene.advance(1)
        assert len(await scene.claim()) == 1

    async def test_no_second_lease_while_the_first_lives(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=1_000)
        await scene.put(*pages("a.example", 2))
        lease = await scene.claim_one()
        await scene.advance(100_000)
        assert await scene.claim() == []
        await scene.settle(done(lease))
        assert len(await scene.claim()) == 1, "the delay is long over"

    @pytest.mark.parametrize("site_delay", [0, 400])
    @pytest.mark.parametrize("concurrency", [1, 3])
    async def test_a_lease_given_back_does_not_move_the_clock(
        self, harness: Harness, site_delay: int, concurrency: int
    ) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=1_000, site_delay=site_delay, concurrency=concurrency)
        await scene.put(*pages("a.example", 2))
        lease = await scene.claim_one()
        granted = await scene.exchange(given_back(lease))
        assert names(granted.leases) == ["a.example/0"]
        assert (await scene.counters()).snoozes == 0, "giving back is not a rate limit"

    async def test_a_lease_given_back_does_not_undo_an_earlier_start(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=1_000)
        await scene.put(*pages("a.example", 3))
        first = await scene.claim_one()
        await scene.advance(500)
        await scene.settle(settle(first, Done(), started=first.claimed_at + 500))
        await scene.advance(1_000)
        second = await scene.claim_one()
        granted = await scene.exchange(given_back(second))
        assert len(granted.leases) == 1

    @pytest.mark.parametrize("rules", [{"delay": 1_000}, {"delay": 200, "site_delay": 1_000}])
    async def test_exact_rate_is_not_lost_to_the_start_window(self, harness: Harness, rules: dict[str, Any]) -> None:
        """Where the start is known, the clock counts from it and not from the latest moment it could have been."""
        scene = Scene(harness)
        await scene.open_run(**rules)
        await scene.put(*pages("a.example", 2))
        granted = await scene.exchange(done(await scene.claim_one()), want=1)
        await scene.advance(1_000)
        assert granted.leases == []
        assert len(await scene.claim()) == 1

    async def test_the_slot_is_kept_over_lanes_runs_and_workers(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run("one")
        await scene.open_run("two")
        await scene.put("a.example/1", page("a.example/2", lane="files"), run="one")
        await scene.put(page("a.example/3", lane="priority"), run="two")
        lease = await scene.claim_one(by="w1")
        for by in ("w1", "w2"):
            for lane in ("priority", "bulk", "files"):
                assert await scene.claim(9, by=by, lanes=(lane,)) == []
        await scene.settle(done(lease))
        await scene.advance(999)
        assert await scene.claim(9, by="w2") == []
        await scene.advance(1)
        assert len(await scene.claim(9, by="w2")) == 1

    async def test_never_more_live_leases_than_concurrency(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run("one", delay=0, concurrency=3)
        await scene.open_run("two", delay=0, concurrency=3)
        await scene.put(*pages("a.example", 5), *pages("a.example/f", 5, lane="files"), run="one")
        await scene.put(*pages("a.example", 5), run="two")
        held: list[Lease] = []
        for number in range(6):
            held += await scene.claim(2, by=f"w{number % 3}", lanes=(("bulk", "files")[number % 2],))
            await scene.advance(10)
        assert len(held) == 3
        assert len(await scene.claim(9)) == 0
        assert len((await scene.exchange(done(held[0]), done(held[1]), want=9)).leases) == 2

    async def test_concurrency_is_per_slot(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0, concurrency=2)
        await scene.put(*pages("a.example", 20))
        leases = await scene.claim(20, exits=("one", "two", "three"))
        assert sorted(lease.exit for lease in leases) == ["one", "one", "three", "three", "two", "two"]

    @pytest.mark.parametrize("delay", [100, 1_000, 5_000])
    async def test_start_windows_never_allow_two_starts_too_close(self, harness: Harness, delay: int) -> None:
        """Several leases in one slot: however early or late each starts within its window, starts are `delay` apart."""
        scene = Scene(harness)
        await scene.open_run(delay=delay, concurrency=4)
        await scene.put(*pages("a.example", 30))
        windows: list[tuple[Moment, Moment]] = []
        live: list[Lease] = []
        for step in range(400):
            settlements = []
            if len(live) == 4 or (live and step % 7 == 0):
                lease = live.pop(step % len(live))
                started = lease.start_by if step % 2 else lease.claimed_at
                windows = [w for w in windows if w != (lease.claimed_at, lease.start_by)] + [(started, started)]
                if started <= lease.claimed_at + delay:
                    settlements.append(settle(lease, Done(), started=started))
            granted = await scene.exchange(*settlements, want=4)
            assert len(granted.leases) <= 1
            for lease in granted.leases:
                assert not lease.exclusive
                assert all(granted.now - latest >= delay for _, latest in windows), "a start could follow too soon"
                windows.append((lease.claimed_at, lease.start_by))
                live.append(lease)
            await scene.advance(delay // 10)
        assert len(windows) == 30

    async def test_several_leases_do_overlap(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=1_000, concurrency=2)
        await scene.put(*pages("a.example", 3))
        first = await scene.claim_one()
        await scene.advance(first.start_by - first.claimed_at + 999)
        assert await scene.claim() == []
        await scene.advance(1)
        assert len(await scene.claim()) == 1, "concurrency 2: the second need not wait for the first to end"
        await scene.advance(60_000)
        assert await scene.claim() == [], "and a third has no room"

    async def test_a_settlement_out_of_order_does_not_turn_the_clock_back(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=1_000, concurrency=3)
        await scene.put(*pages("a.example", 4))
        first = await scene.claim_one()
        await scene.advance(2_000)
        second = await scene.claim_one()
        await scene.settle(done(first))
        assert await scene.claim() == []
        await scene.advance(second.start_by - second.claimed_at + 999)
        assert await scene.claim() == []
        await scene.advance(1)
        assert len(await scene.claim()) == 1

    async def test_site_delay_over_several_exits(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=3_000, site_delay=1_000)
        await scene.put(*pages("a.example", 12))
        starts: list[tuple[Moment, str]] = []
        settlements: list[Settlement] = []
        for _ in range(300):
            granted = await scene.exchange(*settlements, want=9, exits=("one", "two", "three", "four"))
            assert len(granted.leases) <= 1
            settlements = [settle(lease, Done(), started=lease.claimed_at + 7) for lease in granted.leases]
            starts += [(lease.claimed_at + 7, lease.exit) for lease in granted.leases]
            await scene.advance(50)
        assert len(starts) == 12
        assert all(b - a >= 1_000 for (a, _), (b, _) in itertools.pairwise(starts)), "the site"
        for way_out in ("one", "two", "three", "four"):
            own = [moment for moment, name in starts if name == way_out]
            assert all(b - a >= 3_000 for a, b in itertools.pairwise(own)), "the slot"

    async def test_site_delay_holds_while_leases_live(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0, site_delay=1_000, concurrency=5)
        await scene.put(*pages("a.example", 3))
        first = await scene.claim_one(exits=("one", "two"))
        assert not first.exclusive
        await scene.advance(first.start_by - first.claimed_at + 999)
        assert await scene.claim(exits=("one", "two")) == []
        await scene.advance(1)
        assert len(await scene.claim(exits=("one", "two"))) == 1

    async def test_exits_of_a_pool_multiply_the_rate_one_per_slot(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=1_000)
        await scene.put(*pages("a.example", 10))
        exits = ("one", "two", "three")
        leases = await scene.claim(9, exits=exits)
        assert sorted(lease.exit for lease in leases) == sorted(exits)
        assert names(leases) == ["a.example/0", "a.example/1", "a.example/2"]

    async def test_least_recently_used_exit_first(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=10)
        await scene.put(*pages("a.example", 9))
        exits = ("one", "two", "three")
        used: list[str] = []
        settlements: list[Settlement] = []
        for _ in range(9):
            [lease] = (await scene.exchange(*settlements, want=1, exits=exits)).leases
            used.append(lease.exit)
            settlements = [done(lease)]
            await scene.advance(100)
        assert used[:3] * 3 == used
        assert len(set(used[:3])) == 3

    async def test_only_exits_that_the_worker_has(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run("one", pool="tor")
        await scene.put("a.example/1", run="one")
        assert await scene.claim(9, exits={"default": ["direct"]}) == []
        assert await scene.claim(9, exits={"default": ["direct"], "tor": []}) == []
        assert [lease.exit for lease in await scene.claim(9, exits={"default": ["direct"], "tor": ["t1"]})] == ["t1"]

    async def test_workers_with_other_exits_are_not_held_up(self, harness: Harness) -> None:
        needs(harness, Capability.PRIVATE_EXITS)
        scene = Scene(harness)
        await scene.open_run(delay=60_000)
        await scene.put(*pages("a.example", 5))
        mine = await scene.claim_one(exits=("mine",))
        assert await scene.claim(exits=("mine",)) == []
        assert [lease.exit for lease in await scene.claim(exits=("yours",))] == ["yours"]
        await scene.settle(done(mine))
        granted = await scene.exchange(want=1, exits=("theirs",))
        assert [lease.exit for lease in granted.leases] == ["theirs"]

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

    async def test_the_strictest_rule_of_two_runs_counts(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run("fast", delay=100, concurrency=4)
        await scene.open_run("slow", delay=2_000, concurrency=1)
        await scene.put(*pages("a.example", 9), run="fast")
        await scene.put("a.example/slow", run="slow")
        lease = await scene.claim_one(queues=("fast",))
        assert (lease.delay, lease.exclusive) == (2_000, True)
        await scene.settle(done(lease))
        await scene.advance(1_999)
        assert await scene.claim(9) == []
        await scene.advance(1)
        assert len(await scene.claim(9)) == 1

    async def test_a_stricter_run_counts_from_the_last_start_that_was_made(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run("fast", delay=100)
        await scene.open_run("slow", delay=2_000)
        await scene.put(*pages("a.example", 9), run="fast")
        lease = await scene.claim_one()
        await scene.settle(done(lease))
        await scene.put("a.example/slow", run="slow")
        await scene.advance(1_999)
        assert await scene.claim(9) == []
        await scene.advance(1)
        assert len(await scene.claim(9)) == 1

    async def test_an_empty_site_takes_the_rules_of_the_next_run(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run("slow", delay=60_000)
        await scene.put("a.example/1", run="slow")
        await scene.drain()
        await scene.advance(60_000)
        await scene.open_run("fast", delay=100)
        await scene.put(*pages("a.example", 2), run="fast")
        lease = await scene.claim_one()
        assert lease.delay == 100
        await scene.settle(done(lease))
        await scene.advance(100)
        assert len(await scene.claim()) == 1

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

    async def test_penalty_goes_down_after_quiet(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0)
        await scene.put(*pages("a.example", 4))
        await scene.settle(snoozed(await scene.claim_one(), 1_000, penalty=2))
        await scene.advance(1_000)
        seen: list[int] = []
        for _ in range(3):
            lease = await scene.claim_one()
            seen.append(lease.penalty)
            await scene.settle(done(lease))
        assert seen == [2, 1, 0]

    async def test_sites_are_shown_with_their_clocks(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=1_000)
        await scene.put(*pages("a.example", 3), *pages("b.example", 5), page("b.example/w", wait=9_000))
        leases = await scene.claim(2)
        now = await scene.now()
        await scene.settle(*(done(lease) for lease in leases if lease.task.site == "a.example"))
        sites = [(s.site, s.waiting, s.leased, s.delay, s.penalty) for s in await scene.reader.sites()]
        assert sites == [("b.example", 5, 1, 1_000, 0), ("a.example", 2, 0, 1_000, 0)]
        assert {s.site: s.next_at for s in await scene.reader.sites()}["a.example"] == now + 1_000
        assert [s.site for s in await scene.reader.sites(limit=1)] == ["b.example"]
