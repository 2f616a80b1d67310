"""What is remembered by key for a while, and what a settlement leaves behind besides its results."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from shoal.core.notes import Entry, Note
from shoal.core.outcome import Settlement
from shoal.core.task import Lease
from shoal.testing.contract.harness import Capability, Harness, needs
from shoal.testing.contract.scene import Scene, dead, done, dropped, page, pages, retried, snoozed


@pytest.mark.asyncio
class CacheContract:
    """Bytes by key, by the store's clock."""

    async def test_the_cache_keeps_for_its_time(self, harness: Harness) -> None:
        cache = harness.engine.cache
        assert await cache.get(["key"]) == {}
        await cache.put([Entry("key", b"\x00\xff", 1_000), Entry("other", b"", 60_000)])
        await harness.advance(999)
        assert await cache.get(["key", "unknown", "other"]) == {"key": b"\x00\xff", "other": b""}
        await harness.advance(1)
        assert await cache.get(["key", "other"]) == {"other": b""}
        await harness.engine.frontier.sweep()
        assert await cache.get(["key", "other"]) == {"other": b""}

    async def test_the_cache_replaces(self, harness: Harness) -> None:
        cache = harness.engine.cache
        await cache.put([Entry("key", b"old", 1_000)])
        await harness.advance(900)
        await cache.put([Entry("key", b"older", 5), Entry("key", b"new", 1_000)])
        await harness.advance(900)
        assert await cache.get(["key"]) == {"key": b"new"}

    async def test_nothing_is_asked_and_nothing_put(self, harness: Harness) -> None:
        await harness.engine.cache.put([])
        assert await harness.engine.cache.get([]) == {}

    async def test_keys_are_any_text_and_values_any_size(self, harness: Harness) -> None:
        entries = {"a b\n{}:*'\"\\": b"1", "ключ": b"2", "k" * 1_000: b"\x00" * 3_000_000, "": b"3"}
        await harness.engine.cache.put([Entry(key, value, 60_000) for key, value in entries.items()])
        assert await harness.engine.cache.get([*entries, "k"]) == entries

    async def test_many_at_once(self, harness: Harness) -> None:
        entries = {f"key {number}": str(number).encode() for number in range(500)}
        await harness.engine.cache.put([Entry(key, value, 60_000) for key, value in entries.items()])
        assert await harness.engine.cache.get([*entries, "key 500"]) == entries

    async def test_the_cache_is_shared(self, harness: Harness) -> None:
        needs(harness, Capability.SEVERAL_HANDLES)
        other = await harness.another()
        await harness.engine.cache.put([Entry("key", b"value", 1_000)])
        assert await other.cache.get(["key"]) == {"key": b"value"}

    async def test_one_holds_what_nobody_else_does(self, harness: Harness) -> None:
        cache = harness.engine.cache
        mine, theirs = Entry("key", b"mine", 1_000), Entry("key", b"theirs", 60_000)
        assert await cache.hold([mine]) == {"key"}
        await harness.advance(900)
        assert await cache.hold([theirs, Entry("other", b"theirs", 60_000)]) == {"other"}
        assert await cache.get(["key"]) == {"key": b"mine"}
        await harness.advance(100)
        assert await cache.hold([theirs]) == {"key"}, "the time of the first is over"
        assert await cache.get(["key", "other"]) == {"key": b"theirs", "other": b"theirs"}
        assert await cache.hold([mine]) == set()
        assert await cache.hold([]) == set()

    async def test_who_holds_may_do_so_again_and_for_longer(self, harness: Harness) -> None:
        cache = harness.engine.cache
        for _ in range(3):
            assert await cache.hold([Entry("key", b"mine", 1_000)]) == {"key"}
            await harness.advance(900)
        assert await cache.get(["key"]) == {"key": b"mine"}
        await harness.advance(100)
        assert await cache.get(["key"]) == {}

    async def test_of_many_who_want_to_hold_one_does(self, harness: Harness) -> None:
        engines = [harness.engine]
        if Capability.SEVERAL_HANDLES not in harness.lacks:
            engines.append(await harness.another())
        wanted = [[Entry(f"key {key}", str(who).encode(), 60_000) for key in range(5)] for who in range(8)]
        held = await asyncio.gather(*(engines[n % len(engines)].cache.hold(each) for n, each in enumerate(wanted)))
        there = await harness.engine.cache.get([f"key {key}" for key in range(5)])
        assert {key: str(who).encode() for who, keys in enumerate(held) for key in keys} == there
        assert sum(map(len, held)) == len(there) == 5

    async def test_letting_go_takes_away_nothing_but_that(self, harness: Harness) -> None:
        cache = harness.engine.cache
        await cache.hold([Entry("key", b"mine", 60_000), Entry("empty", b"", 60_000)])
        await cache.put([Entry("key", b"theirs", 0), Entry("unknown", b"", 0), Entry("empty", b"full", 0)])
        assert await cache.get(["key", "empty", "unknown"]) == {"key": b"mine", "empty": b""}
        await cache.put([Entry("key", b"mine", 0), Entry("empty", b"", 0)])
        assert await cache.get(["key", "empty"]) == {}
        assert await cache.hold([Entry("key", b"theirs", 1_000)]) == {"key"}


def remembering(settlement: Settlement, name: str) -> Settlement:
    """The settlement, with an entry and a note of that name, and something saved."""
    entries = (Entry(name, b"seen", 60_000), Entry(f"{name} for long", b"seen", 90_000))
    notes = (Note("changes/shop", name.encode(), 60_000),)
    return msgspec.structs.replace(settlement, entries=entries, notes=notes, saved_requests=1, saved_bytes=2**33)


async def remembered(scene: Scene, *names: str) -> set[str]:
    """Those of the names that an entry and a note are there of. What is there of one must be there of both."""
    entries = await scene.engine.cache.get(names)
    bodies = {body.decode() for body in (await scene.reader.notes("changes/shop")).bodies}
    assert set(entries) == bodies
    return bodies


@pytest.mark.asyncio
class LeftBehindContract:
    """Entries, notes and savings of a settlement: with it, or not at all."""

    async def test_they_come_with_whatever_the_outcome_is(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0, concurrency=9)
        await scene.put(*pages("a.example", 5))
        one, two, three, four, five = await scene.claim(5)
        ends = (done(one), dead(two), dropped(three), retried(four), snoozed(five, 1_000))
        await scene.settle(*(remembering(end, str(place)) for place, end in enumerate(ends)))
        assert await remembered(scene, *"01234") == set("01234")
        counts = await scene.counters()
        assert (counts.saved_requests, counts.saved_bytes) == (5, 5 * 2**33)
        await scene.check_books()

    async def test_nothing_is_left_of_one_that_comes_too_late(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0, lease=20_000)
        await scene.put("a.example/0")
        lost = await scene.claim_one()
        await scene.advance(20_000)
        await scene.sweep_all()
        await scene.advance(90_000)
        lease = await scene.claim_one(by="w2")
        assert list((await scene.settle(remembering(done(lost), "late"))).late) == [lost.token]
        first = remembering(done(lease), "first")
        again = await scene.settle(first, remembering(done(lease), "again"))
        assert list(again.late) == [lease.token]
        assert await remembered(scene, "late", "first", "again") == {"first"}
        counts = await scene.counters()
        assert (counts.saved_requests, counts.late) == (1, 2)

    async def test_nothing_is_left_of_a_run_that_was_cancelled(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        await scene.put("a.example/0")
        lease = await scene.claim_one()
        await scene.frontier.cancel_run("run")
        assert list((await scene.settle(remembering(done(lease), "cancelled"))).late) == []
        assert await remembered(scene, "cancelled") == set()

    async def test_what_was_held_goes_with_a_settlement_also_of_a_run_that_was_cancelled(
        self, harness: Harness
    ) -> None:
        """But not with one that comes too late: whoever has the task now may hold it too."""
        scene = Scene(harness)
        await scene.open_run(delay=0, concurrency=9, lease=20_000)
        await scene.open_run("other", delay=0)
        await scene.put(*pages("a.example", 3))
        await scene.put("b.example/0", run="other")
        leases = {lease.task.url.partition("//")[2]: lease for lease in await scene.claim(4)}
        held = {name: Entry(f"{lease.task.site} held {name}", b"mine", 600_000) for name, lease in leases.items()}
        assert await scene.engine.cache.hold(list(held.values())) == {entry.key for entry in held.values()}

        def ending(settlement: Settlement, name: str) -> Settlement:
            let_go = msgspec.structs.replace(held[name], ttl=0)
            answer = Entry(f"{settlement.task} answer", b"seen", 60_000)
            return msgspec.structs.replace(settlement, entries=(answer, let_go))

        async def left() -> set[str]:
            there = await scene.engine.cache.get([entry.key for entry in held.values()])
            return {name for name, entry in held.items() if entry.key in there}

        first, second, third = (f"a.example/{n}" for n in range(3))
        await scene.settle(ending(done(leases[first]), first))
        assert await left() == {second, third, "b.example/0"}
        await scene.frontier.cancel_run("other")
        await scene.settle(ending(done(leases["b.example/0"]), "b.example/0"), ending(retried(leases[second]), second))
        assert await left() == {third}
        await scene.advance(20_000)
        await scene.sweep_all()
        late = await scene.settle(ending(done(leases[third]), third))
        assert list(late.late) == [leases[third].token]
        assert await left() == {third}

    async def test_of_two_settlements_the_last_entry_counts(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0, concurrency=2)
        await scene.put(*pages("a.example", 2))
        first, second = await scene.claim(2)
        await scene.settle(_seen(done(first), b"first"), _seen(done(second), b"second"))
        assert await scene.engine.cache.get(["seen"]) == {"seen": b"second"}

    async def test_notes_of_settlements_and_of_the_worker_are_all_kept(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0, concurrency=9)
        await scene.put(*(f"{letter}.example/0" for letter in "abcdef"))
        leases: list[Lease] = list(await scene.claim(6))
        settlements = [remembering(done(lease), str(place)) for place, lease in enumerate(leases)]
        await scene.exchange(*settlements, want=0, notes=[Note("changes/shop", b"own"), Note("requests/run", b"made")])
        bodies = (await scene.reader.notes("changes/shop")).bodies
        assert sorted(bodies) == [b"0", b"1", b"2", b"3", b"4", b"5", b"own"]
        await scene.check_books()

    async def test_a_page_that_waits_again_is_a_task_of_its_own(self, harness: Harness) -> None:
        """How pages are visited again: the settlement brings the same page, without a key, to wait for its time."""
        scene = Scene(harness)
        await scene.open_run(delay=1_000)
        await scene.put("a.example/0")
        await scene.frontier.seal_run("run")
        for _ in range(3):
            lease = await scene.claim_one()
            granted = await scene.settle(done(lease, tasks=[page("a.example/0", key=None, wait=60_000)]))
            assert (granted.left, granted.wake_at) == (1, granted.now + 60_000)
            await scene.advance(59_999)
            assert await scene.claim() == []
            await scene.advance(1)
        await scene.settle(done(await scene.claim_one()))
        counts = await scene.counters()
        assert (counts.done, counts.duplicates, counts.remaining) == (4, 0, 0)
        assert (await scene.reader.run("run")).ended_at is not None


def _seen(settlement: Settlement, value: bytes) -> Settlement:
    return msgspec.structs.replace(settlement, entries=(Entry("seen", value, 60_000),))
