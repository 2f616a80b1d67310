"""Several ways out of one site: a clock for each, and one over all of them (I3, I4)."""

from __future__ import annotations

import itertools

import pytest

from shoal.core.clock import Moment
from shoal.core.outcome import Done, Settlement
from shoal.core.task import DEFAULT_POOL, LanePolicy
from shoal.testing.contract.harness import Capability, Harness, needs
from shoal.testing.contract.scene import Scene, dead, done, names, page, pages, retried, settle


@pytest.mark.asyncio
class ExitContract:
    """Pools, turns, and `site_delay`."""

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

    async def test_a_task_may_have_a_pool_of_its_own(self, harness: Harness) -> None:
        """It leaves by that pool alone, from first to last; its lane, its run and its site are those of the others."""
        scene = Scene(harness)
        await scene.open_run(delay=0, concurrency=9, lanes={"bulk": LanePolicy(ttl=60_000)})
        links = [page("a.example/link", pool="tor"), page("a.example/plain")]
        await scene.put("a.example/0", page("a.example/1", pool="tor"), page("a.example/2", pool=DEFAULT_POOL))
        pools = {DEFAULT_POOL: ["direct"], "tor": ["t1"]}
        only = {"tor": ["t1"]}
        direct = await scene.claim(9, exits={DEFAULT_POOL: ["direct"]})
        assert sorted(names(direct)) == ["a.example/0", "a.example/2"]
        [private] = await scene.claim(9, exits=only)
        assert (private.exit, names([private])) == ("t1", ["a.example/1"])
        assert {lease.task.lane for lease in [*direct, private]} == {"bulk"}
        await scene.settle(done(direct[0], tasks=links), retried(private), dead(direct[1]))
        assert names(await scene.claim(9, exits={DEFAULT_POOL: ["direct"]})) == ["a.example/plain"]
        again = await scene.claim(9, exits=only)
        assert sorted(names(again)) == ["a.example/1", "a.example/link"]
        await scene.settle(*(dead(lease) for lease in again))
        assert await scene.frontier.requeue_dead("run") == 3
        assert sorted(names(await scene.claim(9, exits=only))) == ["a.example/1", "a.example/link"]
        assert names(await scene.claim(9, exits=pools)) == ["a.example/2"]
        run = await scene.reader.run("run")
        assert (run.counters.leased, run.counters.waiting, run.lanes) == (4, 0, {"bulk": 4})

    async def test_what_a_lane_says_holds_for_every_pool(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(lanes={"bulk": LanePolicy(ttl=1_000), "priority": LanePolicy(auto_ack=True)})
        await scene.put(page("a.example/0", pool="tor"), page("b.example/0", pool="tor", lane="priority"))
        only = {"tor": ["t1"]}
        assert names(await scene.claim(9, exits=only, lanes=("priority",))) == ["b.example/0"]
        assert (await scene.counters()).done == 1
        await scene.advance(1_000)
        await scene.sweep_all()
        assert await scene.claim(9, exits=only) == []
        assert (await scene.counters()).expired == 1

    async def test_a_paused_run_pauses_in_every_pool(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        await scene.put("a.example/0")
        await scene.frontier.pause_run("run")
        await scene.put(page("b.example/0", pool="tor"))
        pools = {DEFAULT_POOL: ["direct"], "tor": ["t1"]}
        assert await scene.claim(9, exits=pools) == []
        await scene.frontier.resume_run("run")
        assert sorted(names(await scene.claim(9, exits=pools))) == ["a.example/0", "b.example/0"]

    @pytest.mark.parametrize("queue", [None, "shared"])
    async def test_a_cancelled_run_ends_in_every_pool(self, harness: Harness, queue: str | None) -> None:
        scene = Scene(harness)
        await scene.open_run(queue=queue)
        await scene.open_run("other", queue=queue)
        for run in ("run", "other"):
            tasks = [
                page(f"{site}.example/{run}", pool=pool) for site, pool in (("a", None), ("b", "tor"), ("c", "tor"))
            ]
            await scene.put(*tasks, run=run)
        await scene.frontier.cancel_run("run")
        await scene.sweep_all()
        pools = {DEFAULT_POOL: ["direct"], "tor": ["t1"]}
        left = [lease.task.run_id for lease in await scene.drain(exits=pools)]
        assert left == ["other"] * 3
        assert ((await scene.counters()).cancelled, (await scene.counters("other")).done) == (3, 3)
        await scene.check_books()

    async def test_where_a_task_of_another_pool_is_told(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        task = page("a.example/0", pool="tor")
        await scene.put(task)
        assert task.key is not None
        [found] = await scene.reader.whereabouts("a.example", task.url, task.key)
        assert (found.lane, found.pool) == ("bulk", "tor")

    async def test_workers_with_other_exits_are_not_held_up(self, harness: Harness) -> None:
        needs(harness, Capability.PRIVATE_EXITS)
        scene = Scene(harness)
        await scene.open_run(delay=60_000)
        await scene.put(*pages("a.example", 5))
        mine = await scene.claim_one(exits=("mine",), private=True)
        assert await scene.claim(exits=("mine",), private=True) == []
        assert [lease.exit for lease in await scene.claim(exits=("yours",), private=True)] == ["yours"]
        await scene.settle(done(mine))
        granted = await scene.exchange(want=1, exits=("theirs",), private=True)
        assert [lease.exit for lease in granted.leases] == ["theirs"]

    async def test_private_exits_reach_sites_behind_those_that_are_not_theirs_now(self, harness: Harness) -> None:
        needs(harness, Capability.PRIVATE_EXITS)
        scene = Scene(harness)
        await scene.open_run(delay=60_000)
        for number in range(40):
            await scene.put(f"s{number}.example/0", f"s{number}.example/1")
        seen = [lease.task.site for lease in await scene.claim(30, exits=("mine",), private=True)]
        seen += [lease.task.site for lease in await scene.claim(30, exits=("mine",), private=True)]
        assert len(set(seen)) == len(seen) == 40
        assert len(await scene.claim(60, exits=("yours",), private=True)) == 40

    async def test_concurrency_is_per_slot(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0, concurrency=2)
        await scene.put(*pages("a.example", 20))
        leases = await scene.claim(20, exits=("one", "two", "three"))
        assert sorted(lease.exit for lease in leases) == ["one", "one", "three", "three", "two", "two"]

    async def test_exits_take_turns_where_several_leases_fit(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0, concurrency=5)
        await scene.put(*pages("a.example", 9))
        assert sorted(lease.exit for lease in await scene.claim(4, exits=("one", "two"))) == [
            "one",
            "one",
            "two",
            "two",
        ]

    async def test_site_delay_is_kept_over_lanes(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=100, site_delay=1_000, concurrency=3)
        await scene.put(*pages("a.example", 2))
        lease = await scene.claim_one(exits=("one", "two"))
        await scene.settle(done(lease))
        await scene.put(page("a.example/file", lane="files"))
        await scene.advance(999)
        assert await scene.claim(9, exits=("one", "two")) == []
        await scene.advance(1)
        assert len(await scene.claim(9, exits=("one", "two"))) == 1

    async def test_site_delay_counts_from_the_start_on_every_exit(self, harness: Harness) -> None:
        """Once the start is known, also those who had looked in vain before come as early as it allows."""
        scene = Scene(harness)
        await scene.open_run(delay=3_000, site_delay=1_000)
        await scene.put(*pages("a.example", 3))
        exits = ("one", "two")
        lease = await scene.claim_one(exits=exits)
        assert await scene.claim(exits=exits) == []
        granted = await scene.exchange(done(lease), exits=exits)
        assert (granted.leases, granted.wake_at) == ([], lease.claimed_at + 1_000)
        await scene.advance(1_000)
        assert len(await scene.claim(exits=exits)) == 1
