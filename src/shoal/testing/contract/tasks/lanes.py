"""Lanes that acknowledge at the claim: at most once, and as polite as any other."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.core.outcome import Done
from shoal.core.task import LanePolicy, RunState
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

AUTO: dict[str, Any] = {"lanes": {"bulk": LanePolicy(auto_ack=True)}}


@pytest.mark.asyncio
class LaneContract:
    """`auto_ack`: claiming settles."""

    async def test_a_claimed_task_is_done(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(**AUTO)
        await scene.put(*pages("a.example", 2), page("b.example/1", lane="files"))
        assert len(await scene.claim(9)) == 2
        counts = await scene.counters()
        assert (counts.done, counts.leased, counts.waiting) == (1, 1, 1), "only the lane `bulk` acknowledges itself"

    async def test_results_are_stored_with_the_token(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(**AUTO, delay=0)
        await scene.put("a.example/1")
        await scene.frontier.seal_run("run")
        lease = await scene.claim_one()
        assert (await scene.reader.run("run")).state is RunState.FINISHED
        granted = await scene.settle(done(lease, b'{"n":1}', tasks=[page("a.example/2")]))
        assert granted.late == []
        assert await scene.bodies() == [b'{"n":1}']
        run = await scene.reader.run("run")
        assert (run.state, run.counters.done, run.counters.waiting) == (RunState.RUNNING, 1, 1)
        assert (await scene.settle(done(lease, b"{}"))).late == [lease.token]
        counts = await scene.counters()
        assert (counts.items, counts.late, counts.done) == (1, 1, 1)

    @pytest.mark.parametrize("outcome", [retried, given_back, dead, lambda lease: snoozed(lease, 1_000)])
    async def test_whatever_becomes_of_it_it_is_not_tried_again(self, harness: Harness, outcome: Any) -> None:
        scene = Scene(harness)
        await scene.open_run(**AUTO, delay=0)
        await scene.put("a.example/1")
        await scene.settle(outcome(await scene.claim_one()))
        await scene.advance(10_000)
        assert await scene.claim() == []
        counts = await scene.counters()
        assert (counts.done, counts.accepted, counts.dead) == (1, 1, 0)
        await scene.check_books()

    async def test_a_crash_loses_it(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(**AUTO, lease=10_000, hard_timeout=0, delay=0)
        await scene.put(*pages("a.example", 2))
        lease = await scene.claim_one()
        await scene.advance(10_000)
        swept = await scene.frontier.sweep()
        assert (swept.returned, swept.buried) == (0, 0)
        assert (await scene.settle(done(lease, b"{}"))).late == [lease.token]
        assert names(await scene.drain()) == ["a.example/1"]
        counts = await scene.counters()
        assert (counts.done, counts.crashes, counts.items) == (2, 0, 0)
        await scene.check_books()

    async def test_its_slot_is_kept_all_the_same(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(**AUTO, lease=10_000, hard_timeout=5_000, delay=1_000)
        await scene.put(*pages("a.example", 4))
        lease = await scene.claim_one()
        await scene.advance(5_000)
        assert await scene.claim() == []
        await scene.settle(settle(lease, Done(), started=lease.claimed_at + 4_500))
        await scene.advance(499)
        assert await scene.claim() == []
        await scene.advance(1)
        lease = await scene.claim_one()
        await scene.advance_to(lease.expires_at)
        await scene.sweep_all()
        await scene.advance(5_999)
        assert await scene.claim() == [], "a lost lease keeps its slot until its request has surely ended"
        await scene.advance(1)
        assert len(await scene.claim()) == 1

    async def test_a_rate_limit_still_reaches_the_slot(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(**AUTO, delay=0)
        await scene.put(*pages("a.example", 2))
        await scene.settle(snoozed(await scene.claim_one(), 60_000))
        await scene.advance(59_999)
        assert await scene.claim() == []
        await scene.advance(1)
        assert names(await scene.claim()) == ["a.example/1"]

    async def test_left_includes_what_is_still_being_worked_on(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(**AUTO)
        await scene.put("a.example/1")
        granted = await scene.exchange()
        assert granted.left == 1, "its links may still come"
        assert (await scene.settle(done(granted.leases[0]))).left == 0

    async def test_sites_count_what_waits(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(**AUTO)
        await scene.put(*pages("a.example", 3))
        await scene.claim_one()
        [site] = await scene.reader.sites()
        assert (site.waiting, site.leased) == (2, 1)

    async def test_a_cancelled_run_keeps_nothing_of_it(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(**AUTO)
        await scene.put("a.example/1")
        lease = await scene.claim_one()
        await scene.frontier.cancel_run("run")
        await scene.settle(done(lease, b"{}", tasks=[page("a.example/2")]))
        counts = await scene.counters()
        assert (counts.items, counts.accepted, counts.done) == (0, 1, 1)
