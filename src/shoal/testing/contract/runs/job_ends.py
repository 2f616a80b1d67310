"""The ends of jobs: cancelled in bounded time, expired when theirs is over, forgotten in two steps. And records."""

from __future__ import annotations

import pytest

from shoal.core.task import Extra
from shoal.frontier.contract.jobs import ANY, JobState
from shoal.testing.contract.harness import Capability, Harness, needs
from shoal.testing.contract.runs.jobs import DAY, HOUR, JobScene, new_job, search
from shoal.testing.contract.scene import dead, names, page, retried


@pytest.mark.asyncio
class JobEndContract:
    """What becomes of jobs, and of what they leave behind."""

    async def test_a_cancelled_job_ends_in_bounded_time_among_others(self, harness: Harness) -> None:
        scene = JobScene(harness)
        far = page("a.example/3", pool="tor")
        await scene.submit(new_job("one", search("milk"), "a.example/1", far), new_job("two", "a.example/2"))
        await scene.frontier.cancel_run("one")
        status = await scene.status("one")
        assert (status.state, status.position) == (JobState.CANCELLED, 0)
        await scene.sweep_all()
        counts = await scene.counters("one")
        assert (counts.waiting, counts.cancelled) == (0, 3), "no worker has to come for that"
        assert names(await scene.drain(exits={"default": ["direct"], "tor": ["t1"]})) == ["a.example/2"]
        await scene.check_books()

    async def test_jobs_that_have_had_their_time_fail_with_that_reason(self, harness: Harness) -> None:
        scene = JobScene(harness)
        await scene.submit(new_job("old", "a.example/1", "a.example/2"), new_job("over", "a.example/3"))
        await scene.frontier.cancel_run("over")
        await scene.advance(HOUR // 2)
        await scene.submit(new_job("new", "a.example/4"))
        queue = (await scene.reader.run("old")).queue
        for _ in range(2):  # asked again before it is ended, it is answered again
            assert list(await scene.engine.jobs.give_up(queue, HOUR // 2, "too late")) == ["old"]
        assert not await scene.engine.jobs.give_up("another queue", HOUR // 2, "too late")
        await scene.frontier.cancel_run("old")
        status = await scene.status("old")
        assert (status.state, status.error, status.position) == (JobState.FAILED, "too late", 0)
        assert (await scene.status("over")).state is JobState.CANCELLED
        assert not await scene.engine.jobs.give_up(queue, HOUR // 2, "too late")
        assert names(await scene.drain()) == ["a.example/4"]
        await scene.check_books()

    async def test_tasks_of_a_cancelled_job_end_once_wherever_they_are(self, harness: Harness) -> None:
        scene = JobScene(harness)
        waiting = [page(f"a.example/{n}", ttl=5_000 if n % 2 else None) for n in range(20)]
        await scene.submit(
            new_job("one", "a.example/leased", "a.example/retried", *waiting, page("a.example/later", wait=9_000)),
            new_job("two", "a.example/other"),
        )
        leased, again = await scene.claim(2)
        await scene.settle(retried(again, 5_000))
        await scene.frontier.cancel_run("one")
        await scene.sweep_all()
        counts = await scene.counters("one")
        assert (counts.waiting, counts.leased, counts.cancelled) == (0, 1, 22)
        await scene.submit(new_job("three", "a.example/after"))
        assert names(await scene.drain()) == ["a.example/other", "a.example/after"], "others go on, in their order"
        await scene.advance(10_000)
        await scene.sweep_all()
        await scene.finish(leased)
        counts = await scene.counters("one")
        assert (counts.remaining, counts.cancelled, counts.expired) == (0, 23, 0)
        await scene.check_books()

    async def test_groups_end_where_tasks_expire_or_are_lost(self, harness: Harness) -> None:
        scene = JobScene(harness)
        short = [page(f"shop.example/{word}", ttl=1_000, extra=Extra(group=word)) for word in ("milk", "eggs")]
        later = page("shop.example/bread", ttl=100, wait=900, extra=Extra(group="bread"))
        await scene.submit(new_job("one", search("salt"), *short, later))
        assert (await scene.status("one")).groups_left == 4
        await scene.claim_one()
        await scene.advance(1_000)
        await scene.sweep_all()
        status = await scene.status("one")
        assert (status.groups_left, status.counters.expired) == (1, 3), "salt is leased"

    async def test_a_cancelled_job_is_kept_until_its_last_lease_has_ended(self, harness: Harness) -> None:
        scene = JobScene(harness)
        await scene.submit(new_job("one", "a.example/1", ttl=1_000))
        lease = await scene.claim_one()
        await scene.frontier.cancel_run("one")
        await scene.advance(1_000)
        assert await scene.expire_all(0) == (0, 0)
        assert (await scene.status("one")).state is JobState.EXPIRED
        await scene.finish(lease)
        assert (await scene.counters("one")).cancelled == 1
        assert await scene.expire_all(0) == (1, 0)
        await scene.check_books()

    @pytest.mark.parametrize("sweeping", [True, False])
    async def test_results_expire_and_then_the_job_is_forgotten(self, harness: Harness, sweeping: bool) -> None:
        scene = JobScene(harness)
        await scene.submit(new_job("one", search("milk"), owner="me", key="k"), new_job("two", search("eggs")))
        await scene.finish(await scene.claim_one())
        await scene.advance(HOUR - 1)
        assert await scene.expire_all() == (0, 0)
        assert len((await scene.results("one"))["one"]) == 1
        before = await scene.status("one")
        await scene.advance(1)
        assert await scene.results("one") == {}, "gone on time, whoever sweeps"
        after = await scene.status("one", before.version)
        assert (after.state, after.owner) == (JobState.EXPIRED, "me")
        if sweeping:
            await scene.sweep_all()
        assert await scene.expire_all() == (1, 0)
        assert (await scene.status("one")).state is JobState.EXPIRED
        assert (await scene.submit(new_job("again", owner="me", key="k")))[0].job_id == "one"
        await scene.advance(DAY - 1)
        assert (await scene.expire_all())[1] == 0
        await scene.advance(1)
        assert (await scene.expire_all())[1] == 1
        assert await scene.engine.jobs.statuses({"one": ANY}) == []
        assert "one" not in {run.run_id for run in await scene.reader.runs()}
        assert (await scene.status("two")).state is JobState.QUEUED
        await scene.finish(*await scene.claim(9))
        await scene.check_books()

    async def test_sweeps_delete_the_results_of_jobs_as_those_of_runs(self, harness: Harness) -> None:
        """On the stroke and not before, whether or not anybody calls `expire`; what is known of the job stays."""
        scene = JobScene(harness)
        await scene.submit(new_job("one", search("milk")), new_job("two", search("eggs")))
        milk, eggs = await scene.claim(2)
        await scene.finish(milk)
        await scene.advance(HOUR - 1)
        await scene.finish(eggs)
        assert (await scene.frontier.sweep()).items_deleted == 0
        assert len(await scene.items("one")) == 1
        await scene.advance(1)
        assert (await scene.frontier.sweep()).items_deleted == 1, "of the first, by whoever sweeps"
        assert await scene.items("one") == []
        status = await scene.status("one")
        assert (status.state, status.expired) == (JobState.EXPIRED, True)
        assert len(await scene.items("two")) == 1
        assert await scene.expire_all() == (1, 0)
        assert (await scene.frontier.sweep()).items_deleted == 0
        assert (await scene.counters("one")).items == 1

    async def test_a_job_whose_dead_letter_is_requeued_keeps_its_results(self, harness: Harness) -> None:
        scene = JobScene(harness)
        await scene.submit(new_job("one", search("milk"), search("eggs")))
        milk, eggs = await scene.claim(2)
        await scene.finish(milk)
        await scene.settle(dead(eggs))
        await scene.advance(HOUR - 1)
        assert await scene.frontier.requeue_dead("one") == 1
        await scene.advance(HOUR)
        assert (await scene.frontier.sweep()).items_deleted == 0
        assert await scene.expire_all() == (0, 0)
        await scene.finish(await scene.claim_one())
        await scene.advance(HOUR - 1)
        await scene.sweep_all()
        assert len((await scene.results("one"))["one"]) == 2
        await scene.advance(1)
        assert (await scene.frontier.sweep()).items_deleted == 2

    async def test_many_jobs_expire_in_steps(self, harness: Harness) -> None:
        scene = JobScene(harness)
        number = 1200
        await scene.submit(*(new_job(f"job-{n}", f"a.example/{n}") for n in range(number)))
        while leases := await scene.claim(100):
            await scene.finish(*leases)
        await scene.advance(HOUR)
        assert await scene.expire_all(DAY) == (number, 0)
        await scene.advance(DAY)
        assert await scene.expire_all(DAY) == (0, number)
        assert await scene.reader.runs() == []

    async def test_results_without_a_time_stay(self, harness: Harness) -> None:
        scene = JobScene(harness)
        await scene.submit(new_job("one", "a.example/1", ttl=None))
        await scene.finish(await scene.claim_one())
        await scene.advance(365 * DAY)
        assert await scene.expire_all() == (0, 0)
        status = await scene.status("one")
        assert (status.state, status.expires_at) == (JobState.COMPLETE, None)

    async def test_jobs_survive_reopening(self, harness: Harness) -> None:
        needs(harness, Capability.REOPENING)
        scene = JobScene(harness)
        await scene.submit(new_job("one", search("milk"), owner="me", key="k", fingerprint=b"f", callback=b"c"))
        before = await scene.status("one")
        await scene.engine.registry.put_record("key", "k1", b"{}")
        await harness.reopen()
        assert await scene.status("one") == before
        assert (await scene.submit(new_job("two", owner="me", key="k")))[0].fingerprint == b"f"
        assert await scene.engine.registry.records("key") == {"k1": b"{}"}

    async def test_what_one_handle_submits_every_other_sees_at_once(self, harness: Harness) -> None:
        needs(harness, Capability.SEVERAL_HANDLES)
        scene = JobScene(harness)
        other = await harness.another()
        for n in range(5):
            await scene.submit(new_job(f"job-{n}", f"a.example/{n}"))
            assert [each.job_id for each in await other.jobs.statuses({f"job-{n}": ANY})] == [f"job-{n}"]

    # Records

    async def test_records_are_kept_by_kind_and_name(self, harness: Harness) -> None:
        scene = JobScene(harness)
        registry = scene.engine.registry
        assert await registry.records("key") == {}
        await registry.put_record("key", "a", b"\x00\xff")
        await registry.put_record("key", "b", b"2")
        await registry.put_record("other", "a", b"3")
        await registry.put_record("key", "b", b"4")
        assert await registry.records("key") == {"a": b"\x00\xff", "b": b"4"}
        assert await registry.remove_record("key", "a") is True
        assert await registry.remove_record("key", "a") is False
        assert await registry.records("key") == {"b": b"4"}
        assert await registry.records("other") == {"a": b"3"}
