"""Jobs: created whole or not at all, and each shown as it stands."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from shoal.core.task import Extra, Lease, NewTask, Policy, RunState
from shoal.errors import UsageError
from shoal.frontier.contract.frontier import NewRun
from shoal.frontier.contract.jobs import (
    ANY,
    Admission,
    Backlog,
    Callback,
    JobState,
    JobStatus,
    NewJob,
    Quota,
    Submitted,
)
from shoal.frontier.contract.mover import Move, MoveState
from shoal.testing.contract.harness import Capability, Harness, needs
from shoal.testing.contract.scene import SHOP, Scene, dead, done, dropped, given_back, names, page, retried

QUEUE = "jobs:shop"
HOUR = 3_600_000
DAY = 24 * HOUR


def new_job(job_id: str, *pages: str | NewTask, queue: str = QUEUE, ttl: int | None = HOUR, **more: Any) -> NewJob:
    """A job that fetches these pages; without delays, so that workers can take all at once."""
    policy = Policy(delay=0, concurrency=100, results_ttl=ttl)
    tasks = [page(each) if isinstance(each, str) else each for each in pages]
    return NewJob(NewRun(job_id, SHOP, policy, "distributed", queue, b'{"a": 1}'), tasks, **more)


def search(word: str) -> NewTask:
    """A page of a group."""
    return page(f"shop.example/{word}", extra=Extra(group=word))


class JobScene(Scene):
    """A scene with the verbs of jobs. Skips where the engine has none."""

    def __init__(self, harness: Harness) -> None:
        needs(harness, Capability.JOBS)
        super().__init__(harness)

    async def submit(self, *jobs: NewJob) -> list[Submitted]:
        return list(await self.engine.jobs.submit(jobs))

    async def status(self, job_id: str, known: int = ANY) -> JobStatus:
        """How the job that must be there stands."""
        (found,) = await self.engine.jobs.statuses({job_id: known})
        assert found.job_id == job_id
        return found

    async def results(
        self, *job_ids: str, most: int = 1000, most_bytes: int = 100_000
    ) -> dict[str, list[tuple[str | None, bytes]]]:
        found = await self.engine.jobs.results(job_ids, most, most_bytes)
        return {job_id: [(item.group, bytes(item.body)) for item in items] for job_id, items in found.items()}

    async def finish(self, *leases: Lease) -> None:
        await self.settle(*(done(lease, b'{"n":1}', group=lease.task.extra.group) for lease in leases))

    async def expire_all(self, remember: int = DAY) -> tuple[int, int]:
        """Until there is no more: how many expired, how many were forgotten."""
        expired = forgotten = 0
        for _ in range(100):
            step = await self.engine.jobs.expire(remember)
            expired, forgotten = expired + step.expired, forgotten + step.forgotten
            if not step.more:
                return expired, forgotten
        raise AssertionError("expire answers `more` without end")


@pytest.mark.asyncio
class JobContract:
    """What the gateway builds on."""

    async def test_a_job_is_a_sealed_run_with_its_tasks(self, harness: Harness) -> None:
        scene = JobScene(harness)
        now = await scene.now()
        (answer,) = await scene.submit(new_job("one", "a.example/1", "a.example/2", owner="me", fingerprint=b"f"))
        assert answer == Submitted("one", Admission.CREATED, 1, b"f")
        run = await scene.reader.run("one")
        assert (run.state, run.mode, run.queue, run.input) == (RunState.RUNNING, "distributed", QUEUE, b'{"a": 1}')
        assert (run.created_at, run.counters.waiting) == (now, 2)
        status = await scene.status("one")
        assert (status.state, status.scraper, status.owner, status.position) == (JobState.QUEUED, SHOP, "me", 1)
        assert (status.created_at, status.ended_at, status.expires_at) == (now, None, None)
        assert status.counters == run.counters
        leases = await scene.claim(9)
        assert names(leases) == ["a.example/1", "a.example/2"]
        await scene.finish(*leases)
        assert (await scene.reader.run("one")).state is RunState.FINISHED
        await scene.check_books()

    async def test_jobs_of_a_batch_are_in_the_order_they_came(self, harness: Harness) -> None:
        scene = JobScene(harness)
        first = await scene.submit(
            new_job("c", "a.example/c"), new_job("a", "a.example/a"), new_job("b", "a.example/b")
        )
        assert [(each.job_id, each.position) for each in first] == [("c", 1), ("a", 2), ("b", 3)]
        other = await scene.submit(new_job("x", "a.example/x", queue="jobs:other"), new_job("d", "a.example/d"))
        assert [each.position for each in other] == [1, 4]
        assert names(await scene.claim(9, queues=(QUEUE,))) == [f"a.example/{word}" for word in "cabd"]
        numbers = [(await scene.status(word)).number for word in "cabxd"]
        assert numbers == sorted(numbers)
        assert len(set(numbers)) == 5

    async def test_the_same_page_in_two_jobs_is_fetched_for_each(self, harness: Harness) -> None:
        scene = JobScene(harness)
        await scene.submit(new_job("one", search("milk")), new_job("two", search("milk")))
        leases = await scene.claim(9)
        assert [lease.task.run_id for lease in leases] == ["one", "two"]
        await scene.settle(
            done(leases[0], b'{"of":"one"}', group="milk"), done(leases[1], b'{"of":"two"}', group="milk")
        )
        assert await scene.results("two", "one") == {
            "one": [("milk", b'{"of":"one"}')],
            "two": [("milk", b'{"of":"two"}')],
        }

    async def test_a_page_twice_in_a_job_is_fetched_once(self, harness: Harness) -> None:
        scene = JobScene(harness)
        await scene.submit(new_job("one", "a.example/1", "a.example/1"))
        counts = (await scene.status("one")).counters
        assert (counts.waiting, counts.duplicates) == (1, 1)

    async def test_the_life_of_a_job_in_its_words(self, harness: Harness) -> None:
        scene = JobScene(harness)
        await scene.submit(new_job("one", search("milk"), search("eggs"), search("bread")))
        seen = [await scene.status("one")]
        lease, *others = await scene.claim(3)
        seen.append(await scene.status("one"))
        await scene.finish(lease)
        seen.append(await scene.status("one"))
        await scene.finish(*others)
        seen.append(await scene.status("one"))
        assert [each.state.value for each in seen] == ["queued", "processing", "processing", "complete"]
        assert [each.groups_left for each in seen] == [3, 3, 2, 0]
        assert [each.position for each in seen] == [1, 1, 1, 0]
        assert {each.groups for each in seen} == {("milk", "eggs", "bread")}
        assert len({each.version for each in seen}) == 4, "a version for everything that a client can tell apart"
        assert seen[-1].ended_at is not None
        assert seen[-1].expires_at == seen[-1].ended_at + HOUR

    async def test_what_is_known_already_is_not_told_again(self, harness: Harness) -> None:
        scene = JobScene(harness)
        await scene.submit(*(new_job(word, f"a.example/{word}") for word in "abc"))
        known = {word: (await scene.status(word)).version for word in "abc"}
        assert await scene.engine.jobs.statuses(known) == []
        (lease, *_) = await scene.claim(1)
        changed = await scene.engine.jobs.statuses({**known, "c": ANY, "nobody": ANY})
        assert sorted(each.job_id for each in changed) == ["a", "c"]
        assert await scene.engine.jobs.statuses({}) == []
        await scene.settle(given_back(lease))
        assert (await scene.status("a")).state is JobState.QUEUED, "nothing was asked of the site for it"

    async def test_a_job_whose_request_failed_has_begun(self, harness: Harness) -> None:
        scene = JobScene(harness)
        await scene.submit(new_job("one", "a.example/1"))
        await scene.settle(retried(await scene.claim_one(), 5_000))
        assert (await scene.status("one")).state is JobState.PROCESSING

    async def test_other_runs_are_not_jobs(self, harness: Harness) -> None:
        scene = JobScene(harness)
        await scene.open_run("plain", queue=QUEUE)
        await scene.put("a.example/1", run="plain")
        assert await scene.engine.jobs.statuses({"plain": ANY}) == []
        assert await scene.engine.jobs.results(["plain"], 9, 999) == {}
        assert await scene.engine.jobs.listed(None) == []
        (answer,) = await scene.submit(new_job("one", "a.example/2"))
        assert answer.position == 1, "places are counted among jobs"
        (taken,) = await scene.submit(new_job("plain", "a.example/3"))
        assert taken.admission is Admission.REPEATED
        assert (await scene.counters("plain")).accepted == 1

    async def test_groups_end_with_their_last_task(self, harness: Harness) -> None:
        scene = JobScene(harness)
        await scene.submit(new_job("one", search("milk"), search("eggs"), "shop.example/plain"))
        milk, eggs, plain = await scene.claim(3)
        assert (await scene.status("one")).groups_left == 2, "a page of no group is of no group"
        more = page("shop.example/milk/2", extra=Extra(group="milk"))
        await scene.settle(done(milk, b"{}", tasks=[more], group="milk"), done(plain, b"{}"))
        assert (await scene.status("one")).groups_left == 2, "milk goes on"
        await scene.settle(dead(eggs))
        assert (await scene.status("one")).groups_left == 1
        await scene.finish(*await scene.claim(3))
        status = await scene.status("one")
        assert (status.groups_left, status.state) == (0, JobState.COMPLETE)
        assert await scene.results("one") == {"one": [("milk", b"{}"), (None, b"{}"), ("milk", b'{"n":1}')]}

    async def test_a_dead_letter_that_waits_again_is_of_its_group(self, harness: Harness) -> None:
        scene = JobScene(harness)
        await scene.submit(new_job("one", search("milk"), search("eggs")))
        milk, eggs = await scene.claim(2)
        await scene.settle(dead(milk), done(eggs))
        assert (await scene.status("one")).state is JobState.COMPLETE
        await scene.frontier.requeue_dead("one")
        status = await scene.status("one")
        assert (status.groups_left, status.state, status.ended_at) == (1, JobState.PROCESSING, None)

    @pytest.mark.parametrize(("how", "state"), [(dead, "failed"), (dropped, "complete"), (done, "complete")])
    async def test_a_job_fails_if_nothing_was_done_and_something_died(
        self, harness: Harness, how: Any, state: str
    ) -> None:
        scene = JobScene(harness)
        await scene.submit(new_job("one", "a.example/1"))
        await scene.settle(how(await scene.claim_one()))
        assert (await scene.status("one")).state.value == state

    async def test_a_job_that_could_not_begin_has_failed_at_once(self, harness: Harness) -> None:
        scene = JobScene(harness)
        first, second = await scene.submit(new_job("bad", error="ValueError: no"), new_job("one", "a.example/1"))
        assert (first.position, second.position) == (0, 1)
        status = await scene.status("bad")
        assert (status.state, status.error, status.position) == (JobState.FAILED, "ValueError: no", 0)
        assert status.expires_at == await scene.now() + HOUR

    async def test_places_move_up_when_jobs_end(self, harness: Harness) -> None:
        scene = JobScene(harness)
        await scene.submit(*(new_job(word, f"a.example/{word}") for word in "abcd"))
        first, second, *_ = await scene.claim(2)
        await scene.finish(second)
        await scene.frontier.cancel_run("c")
        places = {each.job_id: each.position for each in await scene.engine.jobs.statuses(dict.fromkeys("abcd", ANY))}
        assert places == {"a": 1, "b": 0, "c": 0, "d": 2}
        await scene.finish(first)
        assert (await scene.status("d")).position == 1
        (answer,) = await scene.submit(new_job("e", "a.example/e"))
        assert answer.position == 2

    async def test_a_job_stays_where_its_client_asks_for_it(self, harness: Harness) -> None:
        scene = JobScene(harness)
        await scene.submit(new_job("one", "a.example/1"))
        with pytest.raises(UsageError, match="'one' is a job of the gateway: it stays"):
            await scene.engine.mover.turn("one", None, Move("one", 1, MoveState.LEAVING, "elsewhere"))
        assert len(await scene.claim(9)) == 1

    # Submitting twice

    async def test_a_key_creates_one_job(self, harness: Harness) -> None:
        scene = JobScene(harness)
        await scene.submit(new_job("zero", "a.example/0"))
        (first,) = await scene.submit(new_job("one", "a.example/1", owner="me", key="k", fingerprint=b"1"))
        await scene.submit(new_job("later", "a.example/6"))
        again, twice, others, none = await scene.submit(
            new_job("two", "a.example/2", owner="me", key="k", fingerprint=b"2"),
            new_job("three", "a.example/3", owner="me", key="new", fingerprint=b"3"),
            new_job("four", "a.example/4", owner="you", key="k", fingerprint=b"4"),
            new_job("five", "a.example/5", owner="me", fingerprint=b"5"),
        )
        assert first.admission is Admission.CREATED
        assert again == Submitted("one", Admission.REPEATED, 2, b"1")
        assert [each.admission.value for each in (twice, others, none)] == ["created"] * 3
        assert await scene.engine.jobs.statuses({"two": ANY}) == []
        (within,) = await scene.submit(new_job("six", key="k", owner="me"))
        assert within.job_id == "one"
        await scene.check_books()

    async def test_a_key_twice_in_a_batch_creates_one_job(self, harness: Harness) -> None:
        scene = JobScene(harness)
        answers = await scene.submit(new_job("one", "a.example/1", key="k"), new_job("two", "a.example/1", key="k"))
        assert [(each.job_id, each.admission.value) for each in answers] == [("one", "created"), ("one", "repeated")]
        assert (await scene.exchange(want=0)).left == 1

    async def test_a_key_used_by_many_at_once_creates_one_job(self, harness: Harness) -> None:
        needs(harness, Capability.SEVERAL_HANDLES)
        scene = JobScene(harness)
        handles = [scene.engine, await harness.another(), await harness.another()]
        calls = [
            handles[n % 3].jobs.submit([new_job(f"job-{n}", "a.example/1", key=f"k{n % 4}", owner="me")])
            for n in range(24)
        ]
        answers = [answer for (answer,) in await asyncio.gather(*calls)]
        assert Counter(each.admission.value for each in answers) == {"created": 4, "repeated": 20}
        assert len({each.job_id for each in answers}) == 4
        assert (await scene.exchange(want=0)).left == 4

    async def test_the_same_id_is_the_same_job(self, harness: Harness) -> None:
        scene = JobScene(harness)
        await scene.submit(new_job("one", "a.example/1", fingerprint=b"f"))
        (again,) = await scene.submit(new_job("one", "a.example/2"))
        assert again == Submitted("one", Admission.REPEATED, 1, b"f")
        assert (await scene.counters("one")).accepted == 1

    # Quotas

    async def test_a_quota_is_used_up_and_begins_anew(self, harness: Harness) -> None:
        scene = JobScene(harness)
        quota = Quota(2, 60_000)
        now = await scene.now()
        resets_at = now - now % 60_000 + 60_000
        answers = await scene.submit(
            *(new_job(f"job-{n}", f"a.example/{n}", owner="me", quota=quota, key=f"k{n}") for n in range(3)),
            new_job("other", "a.example/o", owner="you", quota=quota),
            new_job("free", "a.example/f", owner="me"),
        )
        assert [each.admission.value for each in answers] == ["created", "created", "limited", "created", "created"]
        assert [each.used for each in answers] == [1, 2, 2, 1, 0]
        assert {each.resets_at for each in answers[:4]} == {resets_at}
        assert await scene.engine.jobs.statuses({"job-2": ANY}) == []
        (repeated,) = await scene.submit(new_job("again", owner="me", key="k0", quota=quota))
        assert repeated.job_id == "job-0", "a repetition costs nothing"
        await scene.advance_to(resets_at)
        (later,) = await scene.submit(new_job("job-3", "a.example/3", owner="me", quota=quota, key="k2"))
        assert (later.admission, later.used, later.resets_at) == (Admission.CREATED, 1, resets_at + 60_000)

    async def test_a_quota_holds_for_many_at_once(self, harness: Harness) -> None:
        needs(harness, Capability.SEVERAL_HANDLES)
        scene = JobScene(harness)
        handles = [scene.engine, await harness.another()]
        calls = [
            handles[n % 2].jobs.submit([new_job(f"job-{n}", "a.example/1", owner="me", quota=Quota(5, HOUR))])
            for n in range(20)
        ]
        answers = [answer for (answer,) in await asyncio.gather(*calls)]
        assert Counter(each.admission.value for each in answers) == {"created": 5, "limited": 15}

    # Looking

    async def test_results_are_bounded_and_in_order(self, harness: Harness) -> None:
        scene = JobScene(harness)
        await scene.submit(new_job("one", "a.example/1", "a.example/2"), new_job("two", "a.example/1"))
        first, second, third = await scene.claim(3)
        await scene.settle(done(second, b'{"n":1}', b'{"n":2}'))
        await scene.settle(done(first, b'{"n":3}'), done(third))
        bodies = {job_id: [body for _, body in found] for job_id, found in (await scene.results("one", "two")).items()}
        assert bodies == {"one": [b'{"n":1}', b'{"n":2}', b'{"n":3}'], "two": []}
        assert len((await scene.results("one", most=1))["one"]) == 1
        assert await scene.results("nobody") == {}

    async def test_results_that_are_too_large_are_left_out(self, harness: Harness) -> None:
        scene = JobScene(harness)
        await scene.submit(
            new_job("small", "a.example/1"),
            new_job("large", "b.example/1"),
            new_job("many", *(f"c.example/{n}" for n in range(3))),
        )
        leases = {lease.task.url: lease for lease in await scene.claim(5)}
        body = b'{"text":"%b"}' % (b"x" * 600)
        large = [done(lease, body, body) for url, lease in leases.items() if "b.example" in url]
        others = [done(lease, body) for url, lease in leases.items() if "b.example" not in url]
        await scene.settle(*large, *others)
        found = await scene.results("small", "large", "many", most_bytes=1000)
        assert {job_id: len(items) for job_id, items in found.items()} == {"small": 1}
        found = await scene.results("small", "large", "many", most_bytes=10_000)
        assert {job_id: len(items) for job_id, items in found.items()} == {"small": 1, "large": 2, "many": 3}

    async def test_jobs_are_listed_newest_first_to_their_owner(self, harness: Harness) -> None:
        scene = JobScene(harness)
        await scene.submit(*(new_job(f"job-{n}", f"a.example/{n}", owner="me" if n % 2 else "you") for n in range(6)))
        mine = await scene.engine.jobs.listed("me")
        assert [each.job_id for each in mine] == ["job-5", "job-3", "job-1"]
        assert mine[0] == await scene.status("job-5")
        everything = await scene.engine.jobs.listed(None, limit=4)
        assert [each.job_id for each in everything] == ["job-5", "job-4", "job-3", "job-2"]
        rest = await scene.engine.jobs.listed(None, before=everything[-1].number, limit=4)
        assert [each.job_id for each in rest] == ["job-1", "job-0"]
        assert await scene.engine.jobs.listed("nobody") == []

    async def test_backlogs_count_what_waits_and_what_ended_lately(self, harness: Harness) -> None:
        scene = JobScene(harness)
        assert await scene.engine.jobs.backlogs() == []
        await scene.submit(*(new_job(word, f"a.example/{word}") for word in "abc"))
        await scene.submit(new_job("x", "a.example/x", queue="jobs:other"))
        await scene.finish(*await scene.claim(2, queues=(QUEUE,)))
        found = {each.queue: each for each in await scene.engine.jobs.backlogs()}
        assert found == {QUEUE: Backlog(QUEUE, 1, 2), "jobs:other": Backlog("jobs:other", 1, 0)}
        await scene.advance(60_000)
        assert Backlog(QUEUE, 1, 0) in await scene.engine.jobs.backlogs()

    async def test_callbacks_wait_for_the_end_of_their_job(self, harness: Harness) -> None:
        scene = JobScene(harness)
        await scene.submit(
            *(new_job(word, f"a.example/{word}", callback=word.encode()) for word in "abc"), new_job("d", "a.example/d")
        )
        assert await scene.engine.jobs.callbacks() == []
        await scene.frontier.cancel_run("c")
        a, *_, d = await scene.claim(3)
        await scene.finish(a, d)
        waiting = [Callback("a", b"a"), Callback("c", b"c")]
        assert list(await scene.engine.jobs.callbacks()) == waiting
        assert list(await scene.engine.jobs.callbacks(1)) == waiting[:1]
        for _ in range(2):
            await scene.engine.jobs.clear_callbacks(["a", "d", "nobody"])
        assert list(await scene.engine.jobs.callbacks()) == waiting[1:]
