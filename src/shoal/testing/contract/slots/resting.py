"""Slots that say nothing any more are forgotten (I10), and no others: the pace holds across it (I4)."""

from __future__ import annotations

import pytest

from shoal.core.politeness import KEPT_AT_REST, QUIET
from shoal.testing.contract.harness import Harness
from shoal.testing.contract.scene import Scene, done, given_back, page, pages, snoozed

SITE = "a.example"
SHORTLY = 60_000


@pytest.mark.asyncio
class RestingContract:
    """What a sweep forgets of sites and exits."""

    async def test_slots_at_rest_are_forgotten(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=1_000)
        await scene.put(*pages(SITE, 9), *pages("b.example", 9))
        await _use(scene, "one", "two")
        await scene.advance(KEPT_AT_REST - 1_000)
        await _sweep(scene)
        assert await _slots(scene) == {"one", "two"}, "not yet"
        await scene.advance(2_001)
        await _use(scene, "two")
        await _sweep(scene)
        assert await _slots(scene) == {"two"}
        assert await _slots(scene, "b.example") == {"two"}

    async def test_many_are_forgotten_within_a_few_sweeps(self, harness: Harness) -> None:
        """Also those behind many that are in use."""
        scene = Scene(harness)
        await scene.open_run(delay=0)
        exits = [f"worker-{number:04}" for number in range(1_200)]
        await scene.put(*pages(SITE, 2 * len(exits)))
        await _use(scene, *exits)
        await scene.advance(KEPT_AT_REST + SHORTLY)
        await _use(scene, *exits[:800])
        assert await _slots(scene) == set(exits)
        await _sweep(scene)
        assert await _slots(scene) == set(exits[:800])

    async def test_use_counts_even_if_no_request_was_made(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0)
        await scene.put(*pages(SITE, 3))
        await scene.settle(given_back(await scene.claim_one(exits=("one",))))
        await scene.advance(KEPT_AT_REST - SHORTLY)
        await _sweep(scene)
        assert await _slots(scene) == {"one"}
        await scene.advance(2 * SHORTLY)
        await _sweep(scene)
        assert await _slots(scene) == set()

    async def test_a_slot_with_a_live_lease_is_kept(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0, lease=3 * KEPT_AT_REST)
        await scene.put(*pages(SITE, 3))
        lease = await scene.claim_one(exits=("one",))
        await scene.advance(2 * KEPT_AT_REST)
        await _sweep(scene)
        assert await _slots(scene) == {"one"}
        assert await scene.claim(9, by="w2", exits=("one",)) == []
        await scene.settle(done(lease))
        assert len(await scene.claim(9, exits=("one",))) == 1

    async def test_a_long_delay_is_kept(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=3 * KEPT_AT_REST)
        await scene.put(*pages(SITE, 3))
        await _use(scene, "one")
        await scene.advance(2 * KEPT_AT_REST)
        await _sweep(scene)
        assert await _slots(scene) == {"one"}
        await scene.put(page(f"{SITE}/file", lane="files"))
        assert await scene.claim(9, exits=("one",)) == []
        await scene.advance(KEPT_AT_REST)
        await _sweep(scene)
        assert len(await scene.claim(9, exits=("one",))) == 1

    async def test_a_delay_over_all_exits_is_kept(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0, site_delay=3 * KEPT_AT_REST)
        await scene.put(*pages(SITE, 3))
        await _use(scene, "one")
        await scene.advance(2 * KEPT_AT_REST)
        await _sweep(scene)
        assert await _slots(scene) == set()
        assert await scene.claim(9, exits=("one", "two")) == []
        await scene.advance(KEPT_AT_REST)
        assert len(await scene.claim(9, exits=("one", "two"))) == 1

    async def test_a_rate_limit_is_kept_until_it_is_long_over(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0)
        await scene.put(*pages(SITE, 3))
        await scene.settle(snoozed(await scene.claim_one(exits=("one",)), 2 * KEPT_AT_REST))
        await scene.advance(2 * KEPT_AT_REST - 1)
        await _sweep(scene)
        assert await scene.claim(9, exits=("one",)) == []
        await scene.advance(KEPT_AT_REST - SHORTLY)
        await _sweep(scene)
        assert await _slots(scene) == {"one"}
        await scene.advance(QUIET + 2 * SHORTLY)
        await _sweep(scene)
        assert await _slots(scene) == set()

    async def test_a_penalty_is_kept_until_it_is_forgiven(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0)
        await scene.put(*pages(SITE, 3))
        in_a_row = 2 * KEPT_AT_REST // QUIET
        await scene.settle(snoozed(await scene.claim_one(exits=("one",)), 1_000, penalty=in_a_row))
        await scene.advance(KEPT_AT_REST + 10 * QUIET + SHORTLY)
        await _sweep(scene)
        assert (await scene.claim_one(exits=("one",))).penalty == in_a_row - (KEPT_AT_REST // QUIET + 10)

    async def test_a_ban_is_kept(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0)
        await scene.put(*pages(SITE, 3))
        await scene.engine.exits.ban("one", 2 * KEPT_AT_REST, SITE)
        await scene.advance(2 * KEPT_AT_REST - 1)
        await _sweep(scene)
        assert {lease.exit for lease in await scene.claim(9, exits=("one", "two"))} == {"two"}
        await scene.advance(KEPT_AT_REST + SHORTLY)
        await _sweep(scene)
        assert "one" not in await _slots(scene)

    async def test_the_pace_holds_for_an_exit_that_comes_back(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=1_000)
        await scene.put(*pages(SITE, 9))
        await _use(scene, "one")
        await scene.advance(2 * KEPT_AT_REST)
        await _sweep(scene)
        assert await _slots(scene) == set()
        [lease] = await scene.claim(9, exits=("one",))
        await _sweep(scene)
        await scene.settle(done(lease))
        await _sweep(scene)
        await scene.advance(999)
        assert await scene.claim(9, exits=("one",)) == []
        await scene.advance(1)
        assert len(await scene.claim(9, exits=("one",))) == 1
        await scene.check_books()


async def _use(scene: Scene, *exits: str) -> None:
    """One request by each of these exits, to each site that has tasks."""
    leases = await scene.claim(max(9, len(exits)), exits=exits)
    assert {lease.exit for lease in leases} == set(exits)
    await scene.settle(*(done(lease) for lease in leases))


async def _sweep(scene: Scene) -> None:
    """As often as it takes to come by everywhere."""
    for _ in range(9):
        await scene.sweep_all()


async def _slots(scene: Scene, site: str = SITE) -> set[str]:
    return {slot.exit for slot in await scene.reader.slots(site)}
