"""Leases taken a little ahead of their time, so that a request can start on the stroke (I4)."""

from __future__ import annotations

import itertools

import msgspec
import pytest

from shoal.core.outcome import Done
from shoal.core.task import Lease
from shoal.frontier.contract.frontier import Granted
from shoal.testing.contract.harness import Harness
from shoal.testing.contract.scene import Scene, done, given_back, names, page, pages, settle, snoozed


@pytest.mark.asyncio
class AheadContract:
    """`Ask.ahead` and `Lease.start_at`."""

    async def test_what_is_due_may_start_at_once(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        await scene.put("a.example/1")
        [lease] = (await self._exchange(scene, 500)).leases
        assert lease.start_at == lease.claimed_at

    @pytest.mark.parametrize("concurrency", [1, 3])
    async def test_a_lease_ahead_says_when_it_may_start(self, harness: Harness, concurrency: int) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=1_000, concurrency=concurrency)
        await scene.put(*pages("a.example", 3))
        first = await scene.claim_one()
        granted = await self._exchange(scene, 500, done(first))
        assert (granted.leases, granted.wake_at) == ([], first.claimed_at + 500)
        await scene.advance(499)
        assert (await self._exchange(scene, 500)).leases == []
        await scene.advance(1)
        [second] = (await self._exchange(scene, 500)).leases
        assert (second.claimed_at, second.start_at) == (first.claimed_at + 500, first.claimed_at + 1_000)
        assert second.start_at <= second.start_by

    async def test_the_next_start_counts_from_the_one_that_is_to_come(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=1_000, concurrency=3)
        await scene.put(*pages("a.example", 5))
        await scene.settle(done(await scene.claim_one()))
        await scene.advance(600)
        [ahead] = (await self._exchange(scene, 500)).leases
        await scene.advance_to(ahead.start_by + 999)
        assert await scene.claim() == []
        await scene.advance(1)
        assert len(await scene.claim()) == 1

    async def test_several_leases_ahead_are_spread_out(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=1_000, concurrency=4)
        await scene.put(*pages("a.example", 9))
        leases: list[Lease] = list((await self._exchange(scene, 5_000, want=9)).leases)
        assert len(leases) == 4
        for before, after in itertools.pairwise(leases):
            assert after.start_at >= before.start_by + 1_000

    @pytest.mark.parametrize("rules", [{"concurrency": 3}, {"site_delay": 1_000}, {"concurrency": 1}])
    async def test_given_back_ahead_of_time_leaves_the_clock_where_it_was(
        self, harness: Harness, rules: dict[str, int]
    ) -> None:
        scene = Scene(harness)
        await scene.open_run("run", **{"delay": 1_000, **rules})  # type: ignore[arg-type]
        await scene.put(*pages("a.example", 3))
        first = await scene.claim_one()
        await scene.settle(done(first))
        await scene.advance(900)
        [ahead] = (await self._exchange(scene, 200)).leases
        assert ahead.start_at == first.claimed_at + 1_000
        granted = await scene.exchange(given_back(ahead))
        assert granted.leases == [], "the start before it was 900 ms ago"
        assert granted.wake_at == first.claimed_at + 1_000
        await scene.advance(100)
        assert len(await scene.claim()) == 1

    async def test_a_rate_limit_that_ends_soon(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0)
        await scene.put("a.example/1")
        first = await scene.claim_one()
        await scene.settle(snoozed(first, 1_000))
        await scene.advance(700)
        [lease] = (await self._exchange(scene, 500)).leases
        assert lease.start_at == first.claimed_at + 1_000

    async def test_a_task_is_not_taken_ahead_of_its_own_time(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        await scene.put(page("a.example/1", wait=1_000))
        granted = await self._exchange(scene, 5_000)
        assert (granted.leases, granted.wake_at) == ([], granted.now + 1_000)

    async def test_exact_starts_follow_each_other_at_the_delay(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=1_000)
        await scene.put(*pages("a.example", 5))
        starts: list[int] = []
        [lease] = (await self._exchange(scene, 50)).leases
        while True:
            starts.append(lease.start_at)
            await scene.advance_to(lease.start_at)
            granted = await self._exchange(scene, 50, settle(lease, Done(), started=lease.start_at))
            if granted.wake_at is None:
                break
            await scene.advance_to(granted.wake_at)
            [lease] = (await self._exchange(scene, 50)).leases
        assert [start - starts[0] for start in starts] == [0, 1_000, 2_000, 3_000, 4_000]
        assert len(names(await scene.drain())) == 0

    async def _exchange(self, scene: Scene, ahead: int, *settlements: object, want: int = 1) -> Granted:
        ask = msgspec.structs.replace(scene.ask(*settlements, want=want), ahead=ahead)  # type: ignore[arg-type]
        return await scene.frontier.exchange(ask)
