"""Politeness: when a slot may next be used (I3, I4)."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.core.clock import Moment
from shoal.core.outcome import Done
from shoal.core.task import Lease
from shoal.testing.contract.harness import Harness
from shoal.testing.contract.scene import Scene, done, given_back, names, page, pages, settle


@pytest.mark.asyncio
class ClockContract:
    """Delay, concurrency, leases given back, and the strictest rule of several runs."""

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

    async def test_the_sites_of_a_queue_come_by_how_long_they_keep_it_busy(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run("one", delay=1_000)
        await scene.open_run("two", delay=1_000)
        await scene.put(*pages("many.example", 9), page("many.example/file", lane="files"), run="one")
        await scene.put(*pages("slow.example", 4), page("slow.example/late", wait=60_000), run="one")
        await scene.put(*pages("few.example", 2), run="one")
        await scene.put(*pages("many.example", 30), *pages("other.example", 50), run="two")
        lease = next(it for it in await scene.claim(9, queues=["one"]) if it.task.site == "slow.example")
        await scene.settle(settle(lease, Done(), started=lease.claimed_at, crawl_delay=5_000))
        found = [(it.site, it.waiting, it.delay, it.leased) for it in await scene.reader.sites_of("one")]
        assert found == [("slow.example", 3, 5_000, 0), ("many.example", 9, 1_000, 1), ("few.example", 1, 1_000, 1)]
        assert [site.site for site in await scene.reader.sites_of("one", 1)] == ["slow.example"]
        assert (await scene.reader.sites_of("one"))[0].next_at == lease.claimed_at + 5_000
        assert await scene.reader.sites_of("nobody") == []
