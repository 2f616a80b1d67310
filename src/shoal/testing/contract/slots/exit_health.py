"""Ways out that fail, are left alone for a while, and are tried again; their caps, and what people say about them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from shoal.core.outcome import Done, Settlement, Snoozed
from shoal.core.politeness import QUARANTINE_AFTER, QUARANTINE_FIRST
from shoal.core.task import Extra, Lease
from shoal.frontier.contract.exits import NewExit
from shoal.testing.contract.harness import Capability, Harness, needs
from shoal.testing.contract.scene import (
    LIMITED,
    Scene,
    done,
    exit_failed,
    given_back,
    names,
    page,
    pages,
    settle,
    snoozed,
)

PROXY = NewExit("p1:8080", "http://user:secret@p1:8080", ("default", "shops"))


@pytest.mark.asyncio
class ExitHealthContract:
    """Quarantine, half-open, bans, caps, and the book of exits."""

    async def test_a_failure_of_the_exit_costs_the_task_nothing(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=60_000)
        await scene.put(*pages("a.example", 2))
        lease = await scene.claim_one(exits=("one", "two"))
        await scene.settle(exit_failed(lease))
        again = await scene.claim_one(exits=("one", "two"))
        assert names([again]) == ["a.example/0"], "it has kept its place"
        assert (again.task.attempts, again.task.crashes) == (0, 0)
        assert again.exit != lease.exit, "the other one's turn"
        counters = await scene.counters()
        assert (counters.retries, counters.snoozes, counters.dead) == (0, 0, 0)

    async def test_failures_in_a_row_are_told_with_the_lease(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0)
        await scene.put(*pages("a.example", 2))
        seen = []
        for _ in range(2):
            lease = await scene.claim_one(exits=("one",))
            seen.append(lease.exit_failures)
            await scene.settle(exit_failed(lease))
        lease = await scene.claim_one(exits=("one",))
        seen.append(lease.exit_failures)
        await scene.settle(settle(lease, Done(), started=lease.claimed_at, exits_ok=("one",)))
        seen.append((await scene.claim_one(exits=("one",))).exit_failures)
        assert seen == [0, 1, 2, 0]

    async def test_an_exit_that_keeps_failing_is_left_alone_by_all(self, harness: Harness) -> None:
        scene = Scene(harness)
        await _quarantined(scene)
        await scene.put(*pages("b.example", 3))
        leases = await scene.claim(9, by="w2", exits=("one", "two"))
        assert {lease.exit for lease in leases} == {"two"}
        granted = await scene.exchange(*(done(lease) for lease in leases), want=9, exits=("one",))
        assert list(granted.leases) == []
        assert granted.wake_at is not None, "tasks wait for the exit"
        assert granted.wake_at > granted.now
        [record] = [each for each in await scene.engine.exits.all() if each.name == "one"]
        assert (record.failures, record.address) == (QUARANTINE_AFTER, "")
        assert record.quarantined_until > granted.now

    async def test_one_request_tries_an_exit_again(self, harness: Harness) -> None:
        scene = Scene(harness)
        await _quarantined(scene)
        await scene.put(*pages("b.example", 3), *pages("c.example", 3))
        await scene.advance(QUARANTINE_FIRST - 1)
        assert await scene.claim(9, exits=("one",)) == []
        await scene.advance(1)
        [probe] = await scene.claim(9, exits=("one",))
        assert probe.exit_failures == QUARANTINE_AFTER
        assert await scene.claim(9, by="w2", exits=("one",)) == []
        await scene.settle(settle(probe, Done(), started=probe.claimed_at, requests=1, exits_ok=("one",)))
        assert len(await scene.claim(9, exits=("one",))) >= 2, "healthy again, for all sites"

    async def test_what_was_under_way_when_an_exit_failed_says_nothing_new(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0)
        for site in range(20):
            await scene.put(*pages(f"s{site}.example", 2))
        leases = await scene.claim(20, exits=("one",))
        assert len(leases) == 20
        await scene.settle(*(exit_failed(lease) for lease in leases[:10]))
        await scene.advance(1_000)
        granted = await scene.exchange(*(exit_failed(lease) for lease in leases[10:]), want=0)
        [record] = await scene.engine.exits.all()
        assert record.failures == QUARANTINE_AFTER
        assert record.quarantined_until == granted.now - 1_000 + QUARANTINE_FIRST
        await scene.advance_to(record.quarantined_until)
        probe, *_ = await scene.claim(20, exits=("one",))
        await scene.settle(exit_failed(probe))
        [record] = await scene.engine.exits.all()
        assert record.failures == QUARANTINE_AFTER + 1, "but what is tried afterwards does"

    @pytest.mark.parametrize("end", [done, exit_failed])
    async def test_an_exit_that_was_slow_is_not_the_first_to_be_tried_again(
        self, harness: Harness, end: Callable[[Lease], Settlement]
    ) -> None:
        """Otherwise a task that a hanging proxy has cost a minute would be given to the same one at once."""
        scene = Scene(harness)
        await scene.open_run(delay=0)
        await scene.put(*pages("a.example", 3))
        leases = {lease.exit: lease for lease in await scene.claim(2, exits=("one", "two"))}
        await scene.advance(1_000)
        await scene.settle(done(leases["two"]))
        await scene.advance(1_000)
        await scene.settle(end(leases["one"]))
        assert (await scene.claim_one(exits=("one", "two"))).exit == "two"

    async def test_an_exit_that_works_stays_banned(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0)
        await scene.put(*pages("a.example", 3))
        await scene.settle(exit_failed(await scene.claim_one(exits=("one",))))
        lease = await scene.claim_one(exits=("one",))
        await scene.engine.exits.ban("one", 60_000)
        await scene.settle(settle(lease, Done(), started=lease.claimed_at, exits_ok=("one",)))
        [record] = await scene.engine.exits.all()
        assert record.failures == 0
        await scene.advance(59_999)
        assert await scene.claim(exits=("one",)) == []
        await scene.advance(1)
        assert len(await scene.claim(exits=("one",))) == 1

    async def test_an_exit_is_charged_when_another_shows_that_it_was_to_blame(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0)
        await scene.put(*pages("a.example", 9))
        for _ in range(QUARANTINE_AFTER):
            lease = await scene.claim_one(exits=("two",))
            await scene.settle(settle(lease, Done(), started=lease.claimed_at, exits_failed=("one",)))
        assert {lease.exit for lease in await scene.claim(9, exits=("one", "two"))} == {"two"}

    async def test_an_exit_that_fails_again_is_left_alone_for_longer(self, harness: Harness) -> None:
        scene = Scene(harness)
        await _quarantined(scene)
        await scene.advance(QUARANTINE_FIRST)
        await scene.settle(exit_failed(await scene.claim_one(exits=("one",))))
        await scene.advance(2 * QUARANTINE_FIRST - 1)
        assert await scene.claim(9, exits=("one",)) == []
        await scene.advance(1)
        assert len(await scene.claim(9, exits=("one",))) == 1

    async def test_a_probe_given_back_is_made_by_the_next(self, harness: Harness) -> None:
        scene = Scene(harness)
        await _quarantined(scene)
        await scene.advance(QUARANTINE_FIRST)
        probe = await scene.claim_one(exits=("one",))
        granted = await scene.exchange(given_back(probe), want=9, exits=("one",))
        assert len(granted.leases) == 1

    async def test_a_lost_probe_is_made_again(self, harness: Harness) -> None:
        scene = Scene(harness)
        await _quarantined(scene, lease=20_000, hard_timeout=5_000)
        await scene.advance(QUARANTINE_FIRST)
        await scene.claim_one(exits=("one",))
        await scene.advance(20_000)
        await scene.sweep_all()
        await scene.advance(20_000)
        assert len(await scene.claim(9, exits=("one",))) == 1

    async def test_success_that_nobody_asked_for_changes_nothing(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0)
        await scene.put(*pages("a.example", 1))
        lease = await scene.claim_one(exits=("one",))
        await scene.settle(settle(lease, Done(), started=lease.claimed_at, exits_ok=("one",)))
        assert [record.failures for record in await scene.engine.exits.all()] in ([], [0])

    async def test_a_ban_everywhere_and_its_release(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0)
        await scene.put(*pages("a.example", 9))
        await scene.engine.exits.ban("one", 60_000)
        assert await scene.claim(9, exits=("one",)) == []
        await scene.engine.exits.release("one")
        assert len(await scene.claim(9, exits=("one",))) == 1

    async def test_a_ban_for_one_site_and_its_release(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0)
        await scene.put(*pages("a.example", 2), *pages("b.example", 2))
        await scene.engine.exits.ban("one", 60_000, "a.example")
        assert names(await scene.claim(9, exits=("one",))) == ["b.example/0"]
        [record] = [each for each in await scene.engine.exits.all() if each.name == "one"]
        assert [site for site, _ in record.bans] == ["a.example"]
        await scene.engine.exits.release("one", "a.example")
        assert names(await scene.claim(9, exits=("one",))) == ["a.example/0"]

    async def test_release_of_an_exit_ends_its_bans_on_all_sites(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0)
        await scene.put(*pages("a.example", 2), *pages("b.example", 2))
        for site in ("a.example", "b.example"):
            await scene.engine.exits.ban("one", 60_000, site)
        assert await scene.claim(9, exits=("one",)) == []
        await scene.engine.exits.release("one")
        assert sorted(names(await scene.claim(9, exits=("one",)))) == ["a.example/0", "b.example/0"]

    async def test_release_opens_a_site_that_waits_as_a_whole(self, harness: Harness) -> None:
        """Or nothing could be done about a server that once asked its visitors to come back in a thousand years."""
        scene = Scene(harness)
        await scene.open_run(delay=0, limit_exits=2)
        await scene.put(*pages("a.example", 9))
        for lease in await scene.claim(2, exits=("one", "two")):
            await scene.settle(snoozed(lease, 10**14))
        await scene.advance(60_000)
        assert await scene.claim(9, exits=("one", "two", "three")) == []
        await scene.engine.exits.release("one", "a.example")
        [probe] = await scene.claim(9, exits=("one", "two"))
        assert probe.exit == "one", "the other one was told to wait"
        await scene.settle(done(probe))
        assert {lease.exit for lease in await scene.claim(9, exits=("one", "two"))} == {"one"}

    async def test_a_ban_can_come_before_the_site(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.engine.exits.ban("one", 60_000, "a.example")
        await scene.open_run(delay=0)
        await scene.put(*pages("a.example", 2))
        assert {lease.exit for lease in await scene.claim(9, exits=("one", "two"))} == {"two"}

    async def test_a_site_is_released_as_a_whole_with_the_tasks_that_it_set_back(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(limit_exits=2, limit_window=60_000)
        set_back = Extra(limits=1, set_back_since=1)
        await scene.put(*pages("a.example", 3), page("a.example/later", wait=50_000))
        limited = Snoozed(40_000, 1, LIMITED, extra=set_back, aside=40_000)
        for lease in await scene.claim(2, exits=("one", "two")):
            await scene.settle(settle(lease, limited, started=lease.claimed_at, requests=1))
        await scene.advance(2_000)
        assert not await scene.claim(5, exits=("one", "two"))
        assert await scene.engine.exits.release_site("a.example")
        assert not await scene.engine.exits.release_site("unknown.example")
        handed_out: list[str] = []
        for _ in range(3):
            lease = await scene.claim_one(exits=("one", "two"))
            handed_out += names([lease])
            await scene.settle(done(lease))
            await scene.advance(2_000)
        assert sorted(handed_out) == ["a.example/0", "a.example/1", "a.example/2"], "those that were set back, too"
        assert not await scene.claim(5, exits=("one", "two")), "what waits for its own time does"
        await scene.check_books()

    async def test_release_keeps_the_pace(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=1_000)
        await scene.put(*pages("a.example", 3))
        await scene.settle(done(await scene.claim_one(exits=("one",))))
        await scene.engine.exits.ban("one", 60_000, "a.example")
        await scene.engine.exits.release("one")
        assert await scene.claim(exits=("one",)) == []
        await scene.advance(1_000)
        assert len(await scene.claim(exits=("one",))) == 1

    async def test_cap_over_all_sites(self, harness: Harness) -> None:
        needs(harness, Capability.EXACT_CAPS)
        scene = Scene(harness)
        await scene.engine.exits.put([NewExit("one", "http://one:1", ("default",), cap=3)])
        await scene.open_run(delay=0, lease=20_000)
        for site in range(6):
            await scene.put(*pages(f"s{site}.example", 2))
        leases = await scene.claim(9, exits=("one",))
        assert len(leases) == 3
        assert await scene.claim(9, by="w2", exits=("one",)) == []
        granted = await scene.exchange(done(leases[0]), want=9, exits=("one",))
        assert len(granted.leases) == 1
        assert len(await scene.claim(9, exits=("two",))) >= 3, "the other exit has no cap"

    async def test_cap_counts_what_is_lost_until_it_is_back(self, harness: Harness) -> None:
        needs(harness, Capability.EXACT_CAPS)
        scene = Scene(harness)
        await scene.engine.exits.put([NewExit("one", "http://one:1", ("default",), cap=1)])
        await scene.open_run(delay=0, lease=20_000, hard_timeout=1_000)
        await scene.put(*pages("a.example", 2), *pages("b.example", 2))
        await scene.claim_one(exits=("one",))
        assert await scene.claim(9, exits=("one",)) == []
        await scene.advance(25_000)
        await scene.sweep_all()
        await scene.advance(5_000)
        assert len(await scene.claim(9, exits=("one",))) == 1

    async def test_a_cap_set_later_counts_what_is_out(self, harness: Harness) -> None:
        needs(harness, Capability.EXACT_CAPS)
        scene = Scene(harness)
        await scene.open_run(delay=0)
        for site in range(4):
            await scene.put(*pages(f"s{site}.example", 1))
        leases = await scene.claim(2, exits=("one",))
        await scene.engine.exits.put([NewExit("one", "http://one:1", ("default",), cap=2)])
        assert await scene.claim(9, exits=("one",)) == []
        granted = await scene.exchange(done(leases[0]), want=9, exits=("one",))
        assert len(granted.leases) == 1

    async def test_the_book_of_exits(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.engine.exits.put([PROXY, NewExit("p2:1080", "socks5://p2:1080", ("default",), cap=4)])
        first, second = await scene.engine.exits.all()
        assert (first.name, first.address, sorted(first.pools), first.cap) == (
            PROXY.name,
            PROXY.address,
            sorted(PROXY.pools),
            0,
        )
        assert (second.name, second.cap, second.failures, second.live) == ("p2:1080", 4, 0, 0)
        await scene.engine.exits.put([NewExit(PROXY.name, "http://p1:9090", ("shops",), cap=2)])
        first, second = await scene.engine.exits.all()
        assert (first.address, first.pools, first.cap) == ("http://p1:9090", ("shops",), 2)
        assert await scene.engine.exits.remove([PROXY.name, "nobody"]) == 1
        assert [record.name for record in await scene.engine.exits.all()] == ["p2:1080"]

    async def test_the_book_survives(self, harness: Harness) -> None:
        needs(harness, Capability.REOPENING)
        scene = Scene(harness)
        await scene.engine.exits.put([PROXY])
        await _quarantined(scene)
        before = await scene.engine.exits.all()
        await harness.reopen()
        assert await scene.engine.exits.all() == before
        assert await scene.claim(9, exits=("one",)) == []


async def _quarantined(scene: Scene, **rules: Any) -> None:
    """The exit `one` has failed often enough. Pages of a.example wait."""
    await scene.open_run(delay=0, **rules)
    await scene.put(*pages("a.example", 5))
    leases: list[Lease] = []
    for _ in range(QUARANTINE_AFTER):
        leases.append(await scene.claim_one(exits=("one",)))
        await scene.settle(exit_failed(leases[-1]))
