"""Who gets what, and in which order."""

from __future__ import annotations

import pytest

from shoal.core.outcome import Done, Settlement
from shoal.testing.contract.harness import Harness
from shoal.testing.contract.scene import (
    Scene,
    dead,
    done,
    given_back,
    names,
    page,
    pages,
    retried,
    settle,
    snoozed,
)


@pytest.mark.asyncio
class ClaimContract:
    """Order (I6, I9), filters, `left` and `wake_at`."""

    async def test_a_lease_says_what_may_be_done_until_when(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=700, lease=60_000)
        await scene.put("a.example/1")
        granted = await scene.exchange()
        [lease] = granted.leases
        assert lease.claimed_at == granted.now
        assert lease.expires_at == granted.now + 60_000
        assert granted.now < lease.start_by <= lease.expires_at
        assert (lease.delay, lease.exit, lease.exclusive, lease.penalty) == (700, "direct", True, 0)

    async def test_tokens_differ(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0, concurrency=50)
        await scene.put(*pages("a.example", 50))
        leases = await scene.claim(50)
        assert len({lease.token for lease in leases}) == 50

    async def test_want_is_never_exceeded_and_a_task_is_handed_out_once(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        await scene.put(*(f"{n}.example/1" for n in range(10)))
        first, second, third = [await scene.claim(4, by=f"w{n}") for n in range(3)]
        assert [len(first), len(second), len(third)] == [4, 4, 2]
        assert len({lease.task.id for lease in (*first, *second, *third)}) == 10
        assert await scene.claim(4) == []

    async def test_want_0_only_settles(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        await scene.put("a.example/1", "b.example/1")
        lease = await scene.claim_one()
        granted = await scene.exchange(done(lease), want=0)
        assert granted.leases == []
        assert (await scene.counters()).done == 1

    async def test_first_come_first_served_within_a_site(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        for number in range(12):
            await scene.put(f"a.example/{number}")
        assert names(await scene.drain()) == [f"a.example/{number}" for number in range(12)]

    async def test_a_batch_keeps_its_order(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0, concurrency=100)
        await scene.put(*pages("a.example", 100))
        assert names(await scene.claim(100)) == [f"a.example/{number}" for number in range(100)]

    async def test_sites_that_rest_for_longer_than_a_lease_are_not_in_the_way(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=3_600_000, lease=60_000)
        await scene.put(*(f"{n}.example/{page}" for n in range(600) for page in range(2)))
        await scene.settle(*[done(lease) for lease in await scene.claim(600)])
        await scene.advance(120_000)
        await scene.put("due.example/1")
        assert names(await scene.claim(1)) == ["due.example/1"]

    async def test_higher_priority_first_then_first_come(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        order = [("low", -1), ("middle-1", 0), ("high-1", 5), ("middle-2", 0), ("high-2", 5), ("highest", 6)]
        await scene.put(*(page(f"a.example/{name}", priority=priority) for name, priority in order))
        got = [name.partition("/")[2] for name in names(await scene.drain())]
        assert got == ["highest", "high-1", "high-2", "middle-1", "middle-2", "low"]

    async def test_retries_and_snoozes_and_returned_leases_keep_their_place(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        await scene.put(*pages("a.example", 4))
        for back in (retried, lambda lease: snoozed(lease, 2_000), given_back):
            lease = await scene.claim_one()
            assert names([lease]) == ["a.example/0"]
            await scene.settle(back(lease))
            await scene.advance(2_000)
        assert names(await scene.drain()) == [f"a.example/{number}" for number in range(4)]

    async def test_a_site_that_waits_does_not_hold_up_others(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=60_000)
        await scene.put(*pages("a.example", 5), *pages("b.example", 5))
        assert {lease.task.site for lease in await scene.claim(10)} == {"a.example", "b.example"}

    async def test_due_sites_take_turns(self, harness: Harness) -> None:
        """I9: with one request at a time and more work than can be done, every site comes as often as any other."""
        scene = Scene(harness)
        sites = [f"{n}.example" for n in range(6)]
        await scene.open_run(delay=10)
        for site in sites:
            await scene.put(*pages(site, 20))
        visits = dict.fromkeys(sites, 0)
        granted = await scene.exchange()
        for _ in range(59):
            [lease] = granted.leases
            visits[lease.task.site] += 1
            await scene.advance(20)
            granted = await scene.exchange(done(lease))
        visits[granted.leases[0].task.site] += 1
        assert set(visits.values()) == {10}, visits

    async def test_a_site_that_needs_no_request_does_not_starve_others(self, harness: Harness) -> None:
        """I9 when pages come from a cache: nothing moves the clock of `a`, and still `b` has its turn."""
        scene = Scene(harness)
        await scene.open_run()
        await scene.put(*pages("a.example", 10))
        await scene.advance(10)
        await scene.put("b.example/0")
        served: list[str] = []
        granted = await scene.exchange()
        for _ in range(3):
            served += names(granted.leases)
            await scene.advance(10)
            granted = await scene.exchange(settle(granted.leases[0], Done()))
        assert "b.example/0" in served, served

    async def test_a_lease_given_back_again_and_again_does_not_starve_others(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        await scene.put("a.example/0")
        await scene.advance(10)
        await scene.put("b.example/0")
        served: list[str] = []
        granted = await scene.exchange()
        for _ in range(3):
            served += names(granted.leases)
            await scene.advance(10)
            granted = await scene.exchange(given_back(granted.leases[0]))
        assert "b.example/0" in served, served

    async def test_one_run_does_not_starve_another(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run("big", delay=0)
        await scene.open_run("small", delay=0)
        await scene.put(*(f"{n}.example/1" for n in range(200)), run="big")
        await scene.put("small.example/1", run="small")
        for _ in range(150):  # one chance in two each time: to miss by luck, 2**-150
            if (await scene.claim_one()).task.run_id == "small":
                return
            await scene.advance(1)
        raise AssertionError("150 claims, and the smaller run was never served")

    async def test_preferred_lanes_come_first(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        await scene.put(page("a.example/1", lane="bulk"), page("b.example/1", lane="files"))
        await scene.put(page("c.example/1", lane="priority"))
        leases = await scene.claim(3, lanes=("priority", "files", "bulk"))
        assert [lease.task.lane for lease in leases] == ["priority", "files", "bulk"]

    async def test_only_lanes_scrapers_and_queues_that_were_asked_for(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run("one")
        await scene.open_run("two", queue="shared")
        await scene.open_run("three", scraper="books")
        await scene.put(page("a.example/1", lane="files"), run="one")
        await scene.put("b.example/1", run="two")
        await scene.put("c.example/1", run="three")
        assert await scene.claim(9, lanes=("priority",)) == []
        assert await scene.claim(9, scrapers=("nobody",)) == []
        assert await scene.claim(9, scrapers=()) == []
        assert await scene.claim(9, queues=("two", "three")) == [], (
            "`two` waits in the queue `shared`, `three` in books"
        )
        assert await scene.claim(9, queues=()) == []
        assert names(await scene.claim(9, lanes=("files",))) == ["a.example/1"]
        assert names(await scene.claim(9, queues=("shared",))) == ["b.example/1"]
        assert names(await scene.claim(9, scrapers=("books", "shop"))) == ["c.example/1"]

    async def test_left_counts_what_waits_and_what_is_leased_where_asked(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        await scene.put(*pages("a.example", 3), page("b.example/1", lane="files"), page("a.example/w", wait=9_000))
        granted = await scene.exchange(lanes=("bulk",))
        assert granted.left == 4
        assert (await scene.exchange(want=0, lanes=("files",))).left == 1
        assert (await scene.exchange(want=0, lanes=("priority",))).left == 0
        assert (await scene.exchange(want=0, queues=("other",))).left == 0
        assert (await scene.exchange(want=0, scrapers=("other",))).left == 0
        assert (await scene.exchange(done(granted.leases[0]), want=0)).left == 4
        await scene.drain()
        assert (await scene.exchange(want=0)).left == 0

    async def test_no_wake_up_where_nothing_waits(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        assert (await scene.exchange()).wake_at is None
        await scene.put("a.example/1", page("b.example/1", lane="files", wait=5_000))
        assert (await scene.exchange(lanes=("priority",))).wake_at is None, "what waits is in other lanes"
        assert (await scene.exchange(lanes=("bulk",))).wake_at is None, "the only task was just handed out"
        assert (await scene.exchange(lanes=("bulk",))).wake_at is None, "a leased task does not wait"
        assert (await scene.exchange(queues=("other",))).wake_at is None

    async def test_wake_up_when_the_slot_is_free(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        await scene.put(*pages("a.example", 3))
        lease = await scene.claim_one()
        granted = await scene.exchange(done(lease))
        assert (granted.leases, granted.wake_at) == ([], lease.claimed_at + 1_000)

    async def test_wake_up_at_the_earliest_of_all(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        await scene.put(*pages("a.example", 2), *pages("b.example", 2), page("c.example/1", wait=4_000))
        leases = await scene.claim(2)
        granted = await scene.exchange(
            *(snoozed(lease, wait) for lease, wait in zip(leases, (9_000, 6_000), strict=True))
        )
        assert granted.wake_at == granted.now + 4_000
        await scene.advance(4_000)
        granted = await scene.exchange(want=9)
        assert (names(granted.leases), granted.wake_at) == (["c.example/1"], granted.now + 2_000)

    async def test_wake_up_for_what_was_asked_for_only(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=10_000)
        await scene.put(*pages("a.example", 2), page("b.example/1", lane="files", wait=5_000), "c.example/1")
        await scene.settle(*(done(lease) for lease in await scene.claim(2)))
        granted = await scene.exchange(lanes=("bulk",))
        assert (granted.leases, granted.wake_at) == ([], granted.now + 10_000)
        assert (await scene.exchange(lanes=("files",))).wake_at == granted.now + 5_000

    async def test_wake_up_at_once_when_more_is_due(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        await scene.put("a.example/1", "b.example/1")
        granted = await scene.exchange(want=1)
        assert granted.wake_at is not None
        assert granted.wake_at <= granted.now

    async def test_every_wake_up_is_early_enough(self, harness: Harness) -> None:
        """Jumping one millisecond at a time never finds a task earlier than the announced moment."""
        scene = Scene(harness)
        await scene.open_run(delay=13, site_delay=5, concurrency=2)
        await scene.put(*pages("a.example", 6), page("a.example/w", wait=17), *pages("b.example", 3))
        exits = ("one", "two")
        announced: int | None = None
        settlements: list[Settlement] = []
        served = 0
        for step in range(2_000):
            granted = await scene.exchange(*settlements, want=1, exits=exits)
            if granted.leases:
                assert announced is None or announced <= granted.now, "a task was due before the announced moment"
                served += 1
            announced = granted.wake_at
            settlements = []
            for number, lease in enumerate(granted.leases):
                outcome = (done, retried, given_back, dead)[(step + number) % 4]
                settlements.append(outcome(lease))
            if settlements:
                announced = None  # what is settled next may free something at once
            if granted.left == len(settlements) == 0:
                break
            await scene.advance(1)
        assert (await scene.counters()).remaining == 0
        assert served >= 10

    async def test_no_token_is_handed_out_twice_where_some_tasks_cannot_be_given(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run("paused", delay=0, queue="shared")
        await scene.open_run("run", delay=0, queue="shared")
        for number in range(10):
            if number % 2:
                await scene.put(f"s{number}.example/first", run="paused")
            await scene.put(*pages(f"s{number}.example", 2))
        await scene.frontier.pause_run("paused")
        tokens = [lease.token for lease in await scene.claim(10, queues=["shared"])]
        assert len(set(tokens)) == len(tokens) == 10
