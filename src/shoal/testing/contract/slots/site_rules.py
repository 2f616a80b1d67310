"""Whose rules a site keeps: the strictest of the runs that have work there, and no longer than they have."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from shoal.core.outcome import Done
from shoal.frontier.contract.frontier import Renewal
from shoal.testing.contract.harness import Harness
from shoal.testing.contract.scene import Scene, done, page, pages, settle, worker

End = Callable[[Scene], Coroutine[Any, Any, None]]


async def _finish(scene: Scene) -> None:
    """The last page of the strict run is done."""
    lease = await scene.claim_one(queues=("strict",))
    await scene.frontier.seal_run("strict")
    await scene.settle(done(lease))


async def _cancel(scene: Scene) -> None:
    await scene.frontier.cancel_run("strict")


async def _leave_the_site(scene: Scene) -> None:
    """The strict run goes on, but elsewhere."""
    lease = await scene.claim_one(queues=("strict",))
    await scene.put(page("elsewhere.example/1", wait=90_000), run="strict")
    await scene.settle(done(lease))


ENDS: tuple[End, ...] = (_finish, _cancel, _leave_the_site)


@pytest.mark.asyncio
class SiteRulesContract:
    """What is left of a strict run's rules when it has ended, and what is not while it has not."""

    @pytest.mark.parametrize("end", ENDS)
    @pytest.mark.parametrize("queue", [None, "common"])
    async def test_a_strict_delay_ends_with_its_run(self, harness: Harness, end: End, queue: str | None) -> None:
        """Whoever waits beside it is freed at the next sweep, and so is whoever comes later."""
        scene = Scene(harness)
        await scene.open_run("strict", delay=60_000)
        await scene.open_run("loose", queue=queue, delay=100)
        await scene.put("a.example/strict", run="strict")
        await scene.put(*pages("a.example", 9), run="loose")
        await end(scene)
        await scene.open_run("late", queue=queue, delay=100)
        await scene.put(*pages("a.example/late", 9), run="late")
        await scene.sweep_all()
        await scene.advance(100)
        for _ in range(12):
            lease = await scene.claim_one()
            assert (lease.delay, lease.task.run_id != "strict") == (100, True)
            await scene.settle(done(lease))
            await scene.advance(99)
            assert await scene.claim() == []
            await scene.advance(1)

    async def test_a_run_that_comes_after_a_cancelled_one_goes_at_its_own_pace(self, harness: Harness) -> None:
        """Though what the cancelled one had waiting is still there when it comes."""
        scene = Scene(harness)
        await scene.open_run("strict", delay=2_000)
        await scene.put(*pages("a.example", 50), page("a.example/later", wait=90_000), run="strict")
        await scene.settle(done(await scene.claim_one()))
        await scene.frontier.cancel_run("strict")
        await scene.open_run("next", delay=50)
        await scene.put(*pages("a.example", 9), run="next")
        await scene.sweep_all()
        await scene.advance(50)
        for _ in range(3):
            lease = await scene.claim_one()
            assert (lease.task.run_id, lease.delay) == ("next", 50)
            await scene.settle(done(lease))
            await scene.advance(50)

    @pytest.mark.parametrize("queue", [None, "common"])
    async def test_a_strict_run_that_goes_on_is_obeyed(self, harness: Harness, queue: str | None) -> None:
        scene = Scene(harness)
        await scene.open_run("strict", queue=queue, delay=5_000)
        await scene.open_run("loose", queue=queue, delay=100)
        await scene.put(*pages("a.example", 9), run="loose")
        await scene.put(*pages("a.example", 9), run="strict")
        for _ in range(3):
            await scene.sweep_all()
            lease = await scene.claim_one()
            assert lease.delay == 5_000
            await scene.settle(done(lease))
            await scene.sweep_all()
            await scene.advance(4_999)
            assert await scene.claim() == []
            await scene.advance(1)

    @pytest.mark.parametrize("queue", [None, "common"])
    async def test_a_strict_run_that_is_paused_is_obeyed(self, harness: Harness, queue: str | None) -> None:
        scene = Scene(harness)
        await scene.open_run("strict", queue=queue, delay=5_000)
        await scene.open_run("loose", queue=queue, delay=100)
        await scene.put("a.example/strict", run="strict")
        await scene.put(*pages("a.example", 3), run="loose")
        await scene.frontier.pause_run("strict")
        await scene.sweep_all()
        leases = await scene.claim() or await scene.claim()  # the first may have met what is paused
        assert [(lease.task.run_id, lease.delay) for lease in leases] == [("loose", 5_000)]
        await scene.settle(done(leases[0]))
        await scene.sweep_all()
        await scene.advance(4_999)
        assert await scene.claim() == []
        await scene.frontier.cancel_run("strict")
        await scene.sweep_all()
        assert (await scene.claim_one()).delay == 100

    async def test_a_strict_run_whose_page_waits_for_its_time_is_obeyed(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run("strict", delay=5_000)
        await scene.open_run("loose", delay=100)
        await scene.put(page("a.example/strict", wait=60_000), run="strict")
        await scene.put(*pages("a.example", 3), run="loose")
        await scene.sweep_all()
        assert (await scene.claim_one()).delay == 5_000

    @pytest.mark.parametrize("end", [_finish, _cancel])
    async def test_one_of_two_strict_runs_ends(self, harness: Harness, end: End) -> None:
        scene = Scene(harness)
        await scene.open_run("strict", delay=5_000)
        await scene.open_run("other", delay=5_000)
        await scene.open_run("loose", delay=100)
        await scene.put("a.example/strict", run="strict")
        await scene.put("a.example/other", run="other")
        await scene.put(*pages("a.example", 3), run="loose")
        await end(scene)
        await scene.sweep_all()
        await scene.advance(5_000)
        assert (await scene.claim_one(queues=("loose",))).delay == 5_000

    async def test_the_next_strictest_follows(self, harness: Harness) -> None:
        scene = Scene(harness)
        for run, delay in (("strict", 5_000), ("middle", 1_000), ("loose", 100)):
            await scene.open_run(run, delay=delay)
            await scene.put(*pages("a.example", 3), run=run)
        await scene.frontier.cancel_run("strict")
        await scene.sweep_all()
        lease = await scene.claim_one(queues=("loose",))
        assert lease.delay == 1_000
        await scene.frontier.cancel_run("middle")
        await scene.settle(done(lease))
        await scene.sweep_all()
        await scene.advance(100)
        assert (await scene.claim_one(queues=("loose",))).delay == 100

    async def test_a_request_under_way_keeps_the_rules_of_its_run(self, harness: Harness) -> None:
        """Also of a cancelled one: nothing is looser before the site has seen it end."""
        scene = Scene(harness)
        await scene.open_run("strict", delay=5_000, concurrency=2)
        await scene.open_run("loose", delay=100, concurrency=2)
        await scene.put(*pages("a.example", 3), run="strict")
        await scene.put(*pages("a.example", 9), run="loose")
        strict = await scene.claim_one(queues=("strict",))
        await scene.frontier.cancel_run("strict")
        await scene.sweep_all()
        await scene.advance_to(strict.start_by + 4_999)
        assert await scene.claim() == []
        await scene.advance(1)
        lease = await scene.claim_one()
        assert lease.delay == 5_000
        await scene.settle(done(strict))
        await scene.sweep_all()
        await scene.advance_to(lease.start_by + 100)
        assert (await scene.claim_one()).delay == 100

    @pytest.mark.parametrize("end", ENDS)
    async def test_a_strict_concurrency_ends_with_its_run(self, harness: Harness, end: End) -> None:
        scene = Scene(harness)
        await scene.open_run("strict", delay=0, concurrency=1)
        await scene.open_run("loose", delay=0, concurrency=3)
        await scene.put("a.example/strict", run="strict")
        await scene.put(*pages("a.example", 9), run="loose")
        await scene.sweep_all()
        [held] = await scene.claim(9, queues=("loose",))
        await scene.settle(done(held))
        await end(scene)
        await scene.sweep_all()
        assert len(await scene.claim(9, queues=("loose",))) == 3

    async def test_a_lease_that_was_alone_stays_alone_until_it_ends(self, harness: Harness) -> None:
        """It may begin late, and only its settlement says when: until then the second waits."""
        scene = Scene(harness)
        await scene.open_run("strict", delay=1_000, concurrency=1)
        await scene.open_run("loose", delay=1_000, concurrency=3)
        await scene.put("a.example/strict", run="strict")
        await scene.put(*pages("a.example", 9), run="loose")
        alone = await scene.claim_one(queues=("loose",))
        assert alone.exclusive
        await scene.frontier.cancel_run("strict")
        await scene.sweep_all()
        for _ in range(6):  # for longer than a lease lives that is not renewed
            await scene.advance((alone.expires_at - alone.claimed_at) // 4)
            await scene.frontier.renew(worker(), [Renewal(alone.task.id, alone.token)])
            await scene.sweep_all()
            assert await scene.claim() == [], "the first may make a request just now"
        now = await scene.now()
        await scene.settle(settle(alone, Done(), started=now - 400))
        await scene.advance(599)
        assert await scene.claim() == []
        await scene.advance(1)
        second = await scene.claim_one()
        assert not second.exclusive
        await scene.advance_to(second.start_by + 1_000)
        assert len(await scene.claim()) == 1, "and now they overlap"

    @pytest.mark.parametrize("end", ENDS)
    async def test_a_strict_site_delay_ends_with_its_run(self, harness: Harness, end: End) -> None:
        scene = Scene(harness)
        exits = ("direct", "b")
        await scene.open_run("strict", delay=100, site_delay=60_000)
        await scene.open_run("loose", delay=100)
        await scene.put("a.example/strict", run="strict")
        await scene.put(*pages("a.example", 9), run="loose")
        await scene.sweep_all()
        await end(scene)
        await scene.sweep_all()
        await scene.advance(1_000)
        assert {lease.exit for lease in await scene.claim(9, exits=exits, queues=("loose",))} == set(exits)

    async def test_the_pace_that_the_site_asks_for_stays(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run("strict", delay=5_000)
        await scene.open_run("loose", delay=100)
        await scene.put("a.example/strict", run="strict")
        await scene.put(*pages("a.example", 3), run="loose")
        lease = await scene.claim_one(queues=("strict",))
        await scene.settle(settle(lease, Done(), started=lease.claimed_at, crawl_delay=3_000))
        await scene.sweep_all()
        await scene.advance(2_999)
        assert await scene.claim() == []
        await scene.advance(1)
        assert (await scene.claim_one()).delay == 3_000

    async def test_a_run_that_comes_back_to_a_site_is_obeyed_again(self, harness: Harness) -> None:
        """In a queue with others, where it was before."""
        scene = Scene(harness)
        await scene.open_run("loose", queue="common", delay=100)
        await scene.open_run("strict", queue="common", delay=5_000)
        await scene.put(*pages("a.example", 3), run="loose")
        await scene.put(page("a.example/strict", priority=1), run="strict")
        lease = await scene.claim_one()
        assert lease.task.run_id == "strict"
        await scene.settle(done(lease))
        await scene.sweep_all()
        await scene.advance(100)
        lease = await scene.claim_one()
        assert (lease.task.run_id, lease.delay) == ("loose", 100)
        await scene.settle(done(lease))
        await scene.put("a.example/again", run="strict")
        await scene.advance(4_999)
        assert await scene.claim() == []
        await scene.advance(1)
        assert (await scene.claim_one()).delay == 5_000

    async def test_a_loose_run_that_comes_back_is_freed_when_the_strict_one_leaves(self, harness: Harness) -> None:
        """In a queue with it, where the loose one was the last to bring tasks before it had none left."""
        scene = Scene(harness)
        await scene.open_run("strict", queue="common", delay=5_000)
        await scene.open_run("loose", queue="common", delay=100)
        await scene.put("a.example/strict", run="strict")
        await scene.put(page("a.example/loose", priority=1), run="loose")
        lease = await scene.claim_one()
        assert lease.task.run_id == "loose"
        await scene.settle(done(lease))
        await scene.sweep_all()  # the strict one is alone now
        await scene.put("a.example/again", "a.example/last", run="loose")
        await scene.advance(5_000)
        lease = await scene.claim_one()
        assert (lease.task.run_id, lease.delay) == ("strict", 5_000)
        await scene.settle(done(lease))
        await scene.sweep_all()
        await scene.advance(100)
        lease = await scene.claim_one()
        assert (lease.task.run_id, lease.delay) == ("loose", 100)

    async def test_a_strict_run_is_found_among_the_many_tasks_of_a_queue(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run("loose", queue="common", delay=100)
        await scene.open_run("strict", queue="common", delay=5_000)
        await scene.put(*pages("a.example", 60), run="loose")
        await scene.put(page("a.example/strict", priority=-3), run="strict")
        await scene.put(*pages("a.example", 60, priority=-4), run="loose")
        await scene.sweep_all()
        assert (await scene.claim_one()).delay == 5_000
