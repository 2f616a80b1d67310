"""How tasks come in: all or none, each key once per run, with a time to wait and a time to live."""

from __future__ import annotations

import asyncio

import pytest

from shoal.core.outcome import Done
from shoal.core.task import Extra, Kind, LanePolicy, RunState
from shoal.errors import UnknownRun, UsageError
from shoal.frontier.contract.frontier import Enqueued
from shoal.testing.contract.harness import Harness
from shoal.testing.contract.scene import Scene, done, names, page, pages, retried, settle


@pytest.mark.asyncio
class EnqueueContract:
    """Acceptance, deduplication, `wait` and TTL."""

    async def test_accepted_tasks_wait(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        assert await scene.put(*pages("a.example", 3)) == Enqueued(3, 0)
        counts = await scene.counters()
        assert (counts.waiting, counts.accepted, counts.remaining) == (3, 3, 3)
        assert (await scene.reader.run("run")).lanes == {"bulk": 3}

    async def test_a_task_comes_out_as_it_went_in(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        extra = Extra({"n": [1, None, "ü"]}, "milk", "POST", {"A": "b"}, b"\x00\xff", Kind.FILE, 2, "https://first/")
        await scene.put(page("a.example/ü?q='\"%", lane="files", handler="detail", priority=-7, depth=4, extra=extra))
        task = (await scene.claim_one()).task
        assert (task.run_id, task.scraper, task.site, task.lane) == ("run", "shop", "a.example", "files")
        assert (task.url, task.handler, task.priority, task.depth) == ("https://a.example/ü?q='\"%", "detail", -7, 4)
        assert (task.attempts, task.crashes) == (0, 0)
        assert task.extra == extra

    async def test_a_key_is_accepted_once_within_a_batch(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0, concurrency=9)
        assert await scene.put("a.example/1", "a.example/2", "a.example/1") == Enqueued(2, 1)
        assert names(await scene.claim(9)) == ["a.example/1", "a.example/2"]
        assert (await scene.counters()).duplicates == 1

    async def test_a_key_is_accepted_once_across_batches_and_after_it_ended(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        await scene.put("a.example/1")
        assert await scene.put("a.example/1", "a.example/2") == Enqueued(1, 1)
        await scene.drain()
        assert await scene.put("a.example/1", "a.example/2") == Enqueued(0, 2)
        counts = await scene.counters()
        assert (counts.done, counts.duplicates, counts.waiting) == (2, 3, 0)

    async def test_runs_do_not_share_what_they_have_seen(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run("one", queue="q")
        await scene.open_run("two", queue="q")
        await scene.put("a.example/1", run="one")
        assert await scene.put("a.example/1", run="two") == Enqueued(1, 0)

    async def test_a_task_without_key_is_always_accepted(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        same = page("a.example/1", key=None)
        assert await scene.put(same, same) == Enqueued(2, 0)
        assert await scene.put(same) == Enqueued(1, 0)

    async def test_links_of_a_settlement_are_deduplicated_too(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0)
        await scene.put("a.example/1")
        lease = await scene.claim_one()
        links = [page(name) for name in ("a.example/1", "a.example/2", "a.example/2", "b.example/1")]
        await scene.settle(done(lease, tasks=links))
        counts = await scene.counters()
        assert (counts.waiting, counts.duplicates) == (2, 2)
        assert sorted(names(await scene.drain())) == ["a.example/2", "b.example/1"]

    async def test_an_empty_batch_is_nothing(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        assert await scene.put() == Enqueued(0, 0)

    async def test_an_unknown_run_is_named(self, harness: Harness) -> None:
        scene = Scene(harness)
        with pytest.raises(UnknownRun, match="nobody"):
            await scene.put("a.example/1", run="nobody")

    async def test_a_cancelled_run_takes_no_more(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        await scene.frontier.cancel_run("run")
        with pytest.raises(UsageError, match="cancelled"):
            await scene.put("a.example/1")
        assert (await scene.counters()).accepted == 0

    async def test_a_finished_run_becomes_running_again(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        await scene.frontier.seal_run("run")
        assert (await scene.reader.run("run")).state is RunState.FINISHED
        await scene.put("a.example/1")
        run = await scene.reader.run("run")
        assert (run.state, run.ended_at) == (RunState.RUNNING, None)
        await scene.drain()
        assert (await scene.reader.run("run")).state is RunState.FINISHED

    async def test_a_batch_is_accepted_whole_or_not_at_all(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        unusable = page("a.example/2", extra=Extra(data=object()))
        with pytest.raises(Exception):  # noqa: B017, PT011 - which error is the engine's own matter
            await scene.put("a.example/1", unusable)
        assert (await scene.counters()).accepted == 0
        assert await scene.put("a.example/1") == Enqueued(1, 0), "the key of a refused batch was remembered"

    async def test_wait_keeps_a_task_back_and_only_that_task(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0, concurrency=9)
        await scene.put(page("a.example/late", wait=5_000), "a.example/now")
        granted = await scene.exchange(want=9)
        assert names(granted.leases) == ["a.example/now"]
        assert granted.wake_at == granted.now + 5_000
        assert (await scene.counters()).waiting == 1
        await scene.advance(4_999)
        assert await scene.claim(9) == []
        await scene.advance(1)
        assert names(await scene.claim(9)) == ["a.example/late"]

    async def test_an_expired_task_is_never_handed_out_and_is_counted(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0, concurrency=9)
        await scene.put(page("a.example/short", ttl=1_000), page("a.example/long", ttl=60_000), "a.example/ever")
        await scene.advance(1_000)
        granted = await scene.exchange(want=9)
        assert sorted(names(granted.leases)) == ["a.example/ever", "a.example/long"]
        assert granted.left == 2
        counts = await scene.counters()
        assert (counts.expired, counts.waiting, counts.leased) == (1, 0, 2)

    async def test_a_task_can_be_claimed_until_its_last_moment(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        await scene.put(page("a.example/1", ttl=1_000))
        await scene.advance(999)
        assert len(await scene.claim()) == 1

    @pytest.mark.parametrize(("lane_ttl", "own_ttl"), [(1_000, 60_000), (60_000, 1_000), (1_000, None), (None, 1_000)])
    async def test_the_smaller_ttl_counts(self, harness: Harness, lane_ttl: int | None, own_ttl: int | None) -> None:
        scene = Scene(harness)
        await scene.open_run(lanes={"bulk": LanePolicy(ttl=lane_ttl)})
        await scene.put(page("a.example/1", ttl=own_ttl))
        await scene.advance(999)
        assert (await scene.frontier.sweep()).expired == 0
        await scene.advance(1)
        assert (await scene.frontier.sweep()).expired == 1
        assert (await scene.counters()).expired == 1
        assert await scene.claim() == []

    async def test_a_delayed_task_lives_from_when_it_may_be_fetched(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0, lanes={"priority": LanePolicy(ttl=1_000)})
        await scene.put(page("a.example/1", wait=5_000, ttl=1_000), page("a.example/2", wait=5_000, lane="priority"))
        await scene.advance(5_999)
        await scene.sweep_all()
        assert names(await scene.drain()) == ["a.example/2", "a.example/1"]
        await scene.put(page("a.example/3", wait=5_000, ttl=1_000), page("a.example/4", wait=5_000, lane="priority"))
        await scene.advance(6_000)
        assert await scene.claim() == []
        assert (await scene.counters()).expired == 2

    async def test_of_however_many_that_have_expired_none_is_handed_out(self, harness: Harness) -> None:
        """More than a claim ends on its way."""
        scene = Scene(harness)
        await scene.open_run(lanes={}, delay=0, concurrency=50)
        number = 2_500
        await scene.put(*pages("a.example", number, ttl=1_000), "a.example/lasting")
        await scene.advance(1_000)
        assert names(await scene.drain()) == ["a.example/lasting"]
        await scene.sweep_all()
        counts = await scene.counters()
        assert (counts.expired, counts.done, counts.remaining) == (number, 1, 0)

    async def test_what_expires_while_it_waits_takes_nothing_with_it(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0)
        await scene.put(page("a.example/2", ttl=1_000))
        await scene.settle(retried(await scene.claim_one(), 5_000))
        await scene.put("a.example/1", page("a.example/3", ttl=1_000))
        await scene.advance(1_000)
        await scene.sweep_all()
        assert names(await scene.drain()) == ["a.example/1"]
        assert (await scene.counters()).expired == 2

    async def test_a_retry_does_not_outlive_its_ttl(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0)
        await scene.put(page("a.example/1", ttl=1_000))
        lease = await scene.claim_one()
        await scene.settle(retried(lease, 10_000))
        await scene.advance(10_000)
        assert await scene.claim() == []
        counts = await scene.counters()
        assert (counts.expired, counts.waiting) == (1, 0)

    async def test_a_lease_outlives_the_ttl_of_its_task(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        await scene.put(page("a.example/1", ttl=1_000))
        lease = await scene.claim_one()
        await scene.advance(2_000)
        assert (await scene.frontier.sweep()).expired == 0
        await scene.settle(settle(lease, Done()))
        counts = await scene.counters()
        assert (counts.done, counts.expired) == (1, 0)

    async def test_many_calls_at_once_one_of_them_wrong(self, harness: Harness) -> None:
        """Group commit: whatever shares a transaction, a mistake of one caller is that caller's alone."""
        scene = Scene(harness)
        await scene.open_run()
        unusable = page("bad.example/1", extra=Extra(data=object()))

        def call(number: int) -> object:
            if number % 10 == 3:
                return scene.put("a.example/x", run="nobody")
            if number % 10 == 7:
                return scene.put(f"c.example/{number}", unusable)
            return scene.put(f"{number}.example/1")

        answers = await asyncio.gather(*(call(number) for number in range(100)), return_exceptions=True)  # type: ignore[call-overload]
        for number, answer in enumerate(answers):
            if number % 10 == 3:
                assert isinstance(answer, UnknownRun)
            elif number % 10 == 7:
                assert isinstance(answer, Exception)
                assert not isinstance(answer, UnknownRun)
            else:
                assert answer == Enqueued(1, 0)
        assert (await scene.counters()).accepted == 80
        assert len({lease.task.site for lease in await scene.drain()}) == 80
