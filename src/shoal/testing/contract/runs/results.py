"""What is kept: items by pages and for their time, the cache, and everything across a restart (I8, I11)."""

from __future__ import annotations

import msgspec
import pytest

from shoal.core.notes import Entry
from shoal.core.outcome import Done
from shoal.core.task import RunState
from shoal.testing.contract.harness import Capability, Harness, needs
from shoal.testing.contract.scene import Scene, dead, done, page, pages, retried, settle, snoozed


@pytest.mark.asyncio
class ResultContract:
    """Items, the cache, and reopening."""

    @pytest.mark.parametrize("limit", [1, 2, 3, 7, 1000])
    async def test_items_by_pages_in_order_and_without_loss(self, harness: Harness, limit: int) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0, concurrency=99)
        await scene.open_run("other", delay=0, concurrency=99)
        await scene.put(*pages("a.example", 20))
        await scene.put(*pages("b.example", 5), run="other")
        expected: list[tuple[str, str | None, bytes]] = []
        for number, lease in enumerate(await scene.claim(99)):
            items = [b'{"n":%d,"i":%d}' % (number, i) for i in range(number % 4)]
            group = None if number % 3 else f"g{number}"
            await scene.settle(done(lease, *items, group=group))
            if lease.task.run_id == "run":
                expected += [(lease.task.url, group, item) for item in items]
        found = [(item.url, item.group, bytes(item.body)) for item in await scene.items(limit=limit)]
        assert found == expected
        assert (await scene.counters()).items == len(expected)

    async def test_a_page_holds_about_what_was_asked_for(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0, concurrency=99)
        await scene.put(*pages("a.example", 30))
        await scene.settle(*(done(lease, b"{}", b"{}", b"{}") for lease in await scene.claim(30)))
        part = await scene.reader.items("run", limit=10)
        assert 10 <= len(part.items) <= 12
        assert part.cursor is not None

    async def test_more_than_thousand_batches_of_items(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0, concurrency=2_000)
        await scene.put(*pages("a.example", 1_200))
        leases = await scene.claim(1_200)
        await scene.settle(*(done(lease, b'{"n":%d}' % n) for n, lease in enumerate(leases)))
        assert await scene.bodies(limit=10_000) == [b'{"n":%d}' % n for n in range(1_200)]

    async def test_a_cursor_finds_what_came_after_it(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0)
        await scene.put("a.example/1", "a.example/2")
        assert await scene.reader.items("run") == msgspec.structs.replace(await scene.reader.items("run"), items=[])
        await scene.settle(done(await scene.claim_one(), b'{"n":1}'))
        first = await scene.reader.items("run", limit=1)
        assert first.cursor is not None
        assert (await scene.reader.items("run", first.cursor)).items == []
        await scene.settle(done(await scene.claim_one(), b'{"n":2}'))
        assert [bytes(i.body) for i in (await scene.reader.items("run", first.cursor)).items] == [b'{"n":2}']

    async def test_bodies_are_kept_to_the_byte(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        await scene.put("a.example/1")
        bodies = ['{"a": "ü\\u0000\\n", "b":[1,2.50,null]}'.encode(), b'{ "big": ' + b"9" * 30 + b" }", b"{}"]
        await scene.settle(done(await scene.claim_one(), *bodies))
        assert await scene.bodies() == bodies

    async def test_results_are_kept_for_their_time_and_then_gone(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(results_ttl=60_000, delay=0, concurrency=9)
        await scene.put(*pages("a.example", 2))
        await scene.frontier.seal_run("run")
        one, two = await scene.claim(2)
        await scene.settle(done(one, b"{}", b"{}"))
        await scene.advance(120_000)
        await scene.sweep_all()
        assert len(await scene.items()) == 2, "the time counts from the end of the run"
        await scene.settle(done(two, b"{}"))
        await scene.advance(59_999)
        assert (await scene.frontier.sweep()).items_deleted == 0
        assert len(await scene.items()) == 3
        await scene.advance(1)
        assert await scene.items() == [], "gone on the stroke, swept or not"
        assert (await scene.frontier.sweep()).items_deleted == 3
        assert await scene.items() == []
        assert (await scene.counters()).items == 3, "the counters remember"

    async def test_results_without_ttl_stay(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        await scene.put("a.example/1")
        await scene.frontier.seal_run("run")
        await scene.settle(done(await scene.claim_one(), b"{}"))
        await scene.advance(10 * 365 * 86_400_000)
        await scene.sweep_all()
        assert len(await scene.items()) == 1

    async def test_results_of_a_cancelled_run_go_too(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(results_ttl=60_000)
        await scene.put("a.example/1")
        await scene.settle(done(await scene.claim_one(), b"{}"))
        await scene.frontier.cancel_run("run")
        await scene.advance(59_999)
        await scene.sweep_all()
        assert len(await scene.items()) == 1
        await scene.advance(1)
        assert await scene.items() == []

    async def test_a_run_that_goes_on_keeps_its_results(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(results_ttl=60_000)
        await scene.put("a.example/1")
        await scene.frontier.seal_run("run")
        await scene.settle(done(await scene.claim_one(), b"{}"))
        await scene.advance(59_000)
        await scene.put("a.example/2")
        await scene.advance(59_000)
        await scene.sweep_all()
        assert len(await scene.items()) == 1

    async def test_closing_twice_is_fine(self, harness: Harness) -> None:
        needs(harness, Capability.REOPENING)
        await harness.engine.close()
        await harness.engine.close()
        await harness.reopen()

    async def test_everything_is_there_after_a_restart(self, harness: Harness) -> None:
        """I8: tasks, order, keys, leases, clocks, items, letters, counters, cache."""
        needs(harness, Capability.REOPENING)
        scene = Scene(harness)
        await scene.open_run("run", delay=5_000, results_ttl=9_000)
        await scene.put(*pages("a.example", 4), *(f"{n}.example/1" for n in "bcdef"), page("g.example/1", wait=9_000))
        by_site = {lease.task.site: lease for lease in await scene.claim(9)}
        assert len(by_site) == 6
        await scene.settle(
            done(by_site["b.example"], b'{"n":1}', tasks=[page("h.example/1")]),
            dead(by_site["c.example"]),
            retried(by_site["d.example"], 7_000),
            snoozed(by_site["e.example"], 8_000, penalty=3),
        )
        await scene.engine.cache.put([Entry("key", b"value", 60_000)])
        before = [
            await scene.reader.runs(),
            await scene.reader.dead("run"),
            await scene.items(),
            await scene.reader.sites(),
            await scene.reader.workers(),
        ]
        await harness.reopen()
        after = [
            await scene.reader.runs(),
            await scene.reader.dead("run"),
            await scene.items(),
            await scene.reader.sites(),
            await scene.reader.workers(),
        ]
        assert after == before
        assert await scene.engine.cache.get(["key"]) == {"key": b"value"}
        assert (await scene.put("a.example/1", "h.example/1")).duplicates == 2
        granted = await scene.settle(done(by_site["a.example"]), settle(by_site["f.example"], Done()))
        assert granted.late == []
        await scene.advance(4_999)
        assert {lease.task.site for lease in await scene.claim(9)} == {"h.example"}
        await scene.advance(1)
        assert {lease.task.url for lease in await scene.claim(9)} == {"https://a.example/1"}
        await scene.advance(3_000)
        [limited] = [lease for lease in await scene.claim(9) if lease.task.site == "e.example"]
        assert limited.penalty == 3

    async def test_a_paused_run_is_still_paused_after_a_restart(self, harness: Harness) -> None:
        needs(harness, Capability.REOPENING)
        scene = Scene(harness)
        await scene.open_run()
        await scene.put("a.example/1")
        await scene.frontier.pause_run("run")
        await harness.reopen()
        assert (await scene.reader.run("run")).state is RunState.PAUSED
        assert await scene.claim() == []
        await scene.frontier.resume_run("run")
        assert len(await scene.claim()) == 1
