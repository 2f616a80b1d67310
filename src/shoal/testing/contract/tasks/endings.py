"""How a page has ended: every way there is, and that an older end never speaks for a newer task."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.core.clock import Moment
from shoal.core.outcome import Blame, Dropped, Reason
from shoal.core.task import Extra, Kind, LanePolicy, NewTask, Policy, RunState, State
from shoal.frontier.contract.frontier import NewRun
from shoal.frontier.contract.reader import Whereabouts
from shoal.testing.contract.harness import Harness
from shoal.testing.contract.runs.jobs import HOUR, JobScene, new_job
from shoal.testing.contract.scene import REASON, SHOP, Scene, dead, done, page, pages, settle

ROBOTS = Reason(Blame.POLICY, "robots.txt disallows it")
UNWANTED = Reason(Blame.HANDLER, "sold out", "shop.detail, line 7")


@pytest.mark.asyncio
class EndingContract:
    """Expired, dropped, cancelled, dead and purged, or done: told exactly, for as long as the run knows its keys."""

    async def test_done_and_dropped_with_the_reason(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0, concurrency=3)
        await scene.put(*pages("a.example", 3))
        first, second, third = await scene.claim(3)
        now = (await scene.settle(done(first), settle(second, Dropped(ROBOTS)), settle(third, Dropped(UNWANTED)))).now
        found = await find(scene, "a.example/0")
        assert (found.state, found.reason, found.ended_at, found.url) == (State.DONE, None, None, None)
        found = await find(scene, "a.example/1")
        assert (found.state, found.reason, found.ended_at) == (State.DROPPED, ROBOTS, now)
        assert found.url == "https://a.example/1"
        found = await find(scene, "a.example/2")
        assert (found.state, found.reason, found.ended_at) == (State.DROPPED, UNWANTED, now)

    async def test_expired_in_line_aside_and_at_the_claim(self, harness: Harness) -> None:
        """It has expired when its time is over, whether or not anybody has noticed."""
        scene = Scene(harness)
        await scene.open_run(delay=60_000)
        await scene.put(
            *pages("a.example", 9), page("a.example/ready", ttl=500), page("b.example/late", wait=100, ttl=400)
        )
        await scene.put(page("c.example/0"), page("c.example/1", ttl=500))
        over = await scene.now() + 500
        await scene.advance(500)
        for noticed in (False, True):
            for name in ("a.example/ready", "b.example/late", "c.example/1"):
                found = await find(scene, name)
                assert (found.state, found.ended_at) == (State.EXPIRED, over), (name, noticed)
            await scene.advance(100)
            await scene.claim(9)
            await scene.sweep_all()
        assert (await scene.counters()).expired == 3
        assert (await find(scene, "a.example/8")).state is State.WAITING

    async def test_expired_far_behind_in_line(self, harness: Harness) -> None:
        """One by one, and many in a row; between those that wait, are done, or are cancelled with their run later."""
        for run, ends_as in (("drained", State.DONE), ("cancelled", State.CANCELLED)):
            scene = Scene(harness)
            await scene.open_run(run, delay=0)
            short = {place for place in range(100) if place % 2 or 20 < place < 60}
            await scene.put(
                *(page(f"a.example/{place}", ttl=500 if place in short else None) for place in range(100)), run=run
            )
            await scene.put(
                *(page(f"b.example/{place}", ttl=500 if place < 50 else None) for place in range(60)), run=run
            )
            await scene.advance(500)
            await scene.sweep_all()
            expected = {
                f"a.example/{place}": State.EXPIRED if place in short else State.WAITING for place in range(100)
            }
            expected |= {f"b.example/{place}": State.EXPIRED if place < 50 else State.WAITING for place in range(60)}
            assert {name: (await find(scene, name, run)).state for name in expected} == expected
            if ends_as is State.CANCELLED:
                await scene.frontier.cancel_run(run)
                await scene.sweep_all()
            else:
                await scene.drain()
            expected = {name: ends_as if state is State.WAITING else state for name, state in expected.items()}
            assert {name: (await find(scene, name, run)).state for name in expected} == expected

    @pytest.mark.parametrize("concurrency", [1, 20])
    async def test_expired_where_a_claim_meets_it(self, harness: Harness, concurrency: int) -> None:
        """More have expired than a claim looks through beforehand; what it meets at the head ends there."""
        scene = Scene(harness)
        await scene.open_run(delay=0, concurrency=concurrency)
        now = await scene.now()
        await scene.put(*(page(f"a.example/{place}", ttl=5_000 - place) for place in range(1_100)))
        await scene.advance(5_000)
        assert await scene.claim(20) == []
        for place in range(25):
            found = await find(scene, f"a.example/{place}")
            assert (found.state, found.ended_at) == (State.EXPIRED, now + 5_000 - place)

    async def test_cancelled_with_its_run(self, harness: Harness) -> None:
        """Ready, delayed, held back by a pause, leased and settled, leased and lost. What was done stays done."""
        scene = Scene(harness)
        await scene.open_run(delay=0, concurrency=9, lease=10_000)
        await scene.put(*pages("a.example", 60), page("b.example/late", wait=60_000))
        first, second, third, *_ = await scene.claim(3)
        await scene.settle(done(first))
        await scene.frontier.pause_run("run")
        await scene.frontier.cancel_run("run")
        await scene.settle(done(second))
        await scene.advance(10_000)
        await scene.sweep_all()
        assert third.task.url == "https://a.example/2"
        ends = {name: (await find(scene, name)).state for name in ("a.example/1", "a.example/2", "a.example/59")}
        assert set(ends.values()) == {State.CANCELLED}, ends
        assert (await find(scene, "b.example/late")).state is State.CANCELLED
        assert (await find(scene, "a.example/0")).state is State.DONE

    async def test_cancelled_in_a_shared_queue(self, harness: Harness) -> None:
        scene = Scene(harness)
        for run in ("run", "other"):
            await scene.open_run(run, queue="shared", delay=0)
            await scene.put(*pages("a.example", 5), page("b.example/late", wait=60_000), run=run)
        await scene.frontier.cancel_run("run")
        await scene.drain()
        for name in ("a.example/0", "a.example/4", "b.example/late"):
            assert (await find(scene, name)).state is State.CANCELLED
            assert (await find(scene, name, "other")).state is State.DONE

    async def test_cancelled_with_its_job(self, harness: Harness) -> None:
        """Before and after somebody comes by where its tasks stand in line. It goes with the keys of the job."""
        scene = JobScene(harness)
        others = [page(f"a.example/other{place}") for place in range(9)]
        tasks = [*pages("a.example", 9), page("a.example/short", ttl=500), page("b.example/late", wait=60_000)]
        await scene.submit(new_job("one", *tasks), new_job("two", *others))
        await scene.advance(500)
        await scene.frontier.cancel_run("one")
        await scene.sweep_all()
        for _ in range(2):
            for name in ("a.example/0", "a.example/8", "b.example/late"):
                assert (await find(scene, name, "one")).state is State.CANCELLED, name
            assert (await find(scene, "a.example/short", "one")).state is State.EXPIRED
            await scene.drain()
        assert (await find(scene, "a.example/other0", "two")).state is State.DONE
        await scene.advance(HOUR)
        await scene.expire_all()
        task = page("a.example/0")
        assert task.key is not None
        assert list(await scene.reader.whereabouts(task.site, task.url, task.key)) == []

    async def test_dead_letters_that_are_purged_stay_dead(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        await scene.put("a.example/0")
        now = (await scene.settle(dead(await scene.claim_one()))).now
        found = await find(scene, "a.example/0")
        assert (found.state, found.ended_at, found.url) == (State.DEAD, now, "https://a.example/0")
        assert found.task is not None
        await scene.frontier.purge_dead("run")
        found = await find(scene, "a.example/0")
        assert (found.state, found.reason, found.ended_at, found.task) == (State.DEAD, REASON, now, None)

    async def test_dead_letters_that_are_tried_again(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0)
        await scene.put("a.example/0")
        await scene.settle(dead(await scene.claim_one()))
        await scene.frontier.requeue_dead("run")
        assert (await find(scene, "a.example/0")).state is State.WAITING
        await scene.settle(settle(await scene.claim_one(), Dropped(ROBOTS)))
        assert (await find(scene, "a.example/0")).state is State.DROPPED

    async def test_a_page_that_is_let_in_again_begins_anew(self, harness: Harness) -> None:
        """By itself, or as a link. The last of its ends counts, and none while it waits or is leased."""
        scene = Scene(harness)
        await scene.open_run(delay=0)
        again = page("a.example/0", key=None)
        await scene.put("a.example/0")
        before = await self._drop(scene)
        await scene.put(again)
        assert (await find(scene, "a.example/0")).state is State.WAITING
        assert (await self._drop(scene)) == (await find(scene, "a.example/0")).ended_at != before
        await scene.put(again)
        lease = await scene.claim_one()
        assert (await find(scene, "a.example/0")).state is State.LEASED
        await scene.settle(done(lease))
        assert (await find(scene, "a.example/0")).state is State.DONE
        await scene.put(again, "a.example/1")
        await self._drop(scene)
        await scene.settle(done(await scene.claim_one(), tasks=[again]))
        assert (await find(scene, "a.example/0")).state is State.WAITING
        await scene.settle(dead(await scene.claim_one()))
        await scene.put(again)
        await self._drop(scene)
        assert (await find(scene, "a.example/0")).state is State.DROPPED, "it was dead before that"

    async def test_redirected_within_its_site(self, harness: Harness) -> None:
        """As version 0.1 left it: it is found by the URL that it was let in with, on its way and when it has ended."""
        scene = Scene(harness)
        await scene.open_run(delay=0)
        step = Extra(redirects=1, first_url="https://a.example/old")
        await scene.put(page("a.example/new", key=page("a.example/old").key, extra=step))
        assert (await find(scene, "a.example/old")).state is State.WAITING
        lease = await scene.claim_one()
        assert (await find(scene, "a.example/old")).state is State.LEASED
        await scene.settle(settle(lease, Dropped(ROBOTS)))
        found = await find(scene, "a.example/old")
        assert (found.state, found.url) == (State.DROPPED, "https://a.example/old")

    async def test_redirected_to_another_site(self, harness: Harness) -> None:
        """That is another task, and not the page that led there."""
        scene = Scene(harness)
        await scene.open_run(delay=0)
        await scene.put("a.example/old")
        link = page("b.example/new", extra=Extra(redirects=1, first_url="https://a.example/old"))
        await scene.settle(done(await scene.claim_one(), tasks=[link]))
        assert (await find(scene, "b.example/new")).state is State.WAITING
        await self._drop(scene)
        assert (await find(scene, "b.example/new")).state is State.DROPPED
        assert (await find(scene, "a.example/old")).state is State.DONE

    async def test_credentials_are_spelling(self, harness: Harness) -> None:
        """Waiting, leased, dead and dropped: it is the same page, and the accepted spelling is told."""
        scene = Scene(harness)
        await scene.open_run(delay=0)
        secret = NewTask("https://me:secret@a.example/0", "a.example", page("a.example/0").key)
        await scene.put(secret)
        found = await find(scene, "a.example/0")
        assert (found.state, found.url) == (State.WAITING, secret.url)
        lease = await scene.claim_one()
        found = await find(scene, "a.example/0")
        assert (found.state, found.url) == (State.LEASED, secret.url)
        await scene.settle(dead(lease))
        found = await find(scene, "a.example/0")
        assert (found.state, found.url) == (State.DEAD, secret.url)
        await scene.frontier.requeue_dead("run")
        await self._drop(scene)
        found = await find(scene, "a.example/0")
        assert (found.state, found.url) == (State.DROPPED, secret.url)

    async def test_a_file_or_a_form_is_not_the_page_of_its_address(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0)
        others = [Extra(kind=Kind.FILE), Extra(method="POST", body=b"q=1")]
        await scene.put(
            "a.example/0", *(page("a.example/0", key=bytes([n]) * 32, extra=e) for n, e in enumerate(others))
        )
        await scene.settle(done(await scene.claim_one()))
        assert (await find(scene, "a.example/0")).state is State.DONE
        for _ in others:
            await self._drop(scene)
        assert (await find(scene, "a.example/0")).state is State.DONE

    async def test_at_most_once_is_done_by_the_claim(self, harness: Harness) -> None:
        scene = Scene(harness)
        policy = Policy(lanes={"priority": LanePolicy(auto_ack=True)})
        await scene.frontier.create_run(NewRun("run", SHOP, policy))
        await scene.put(page("a.example/0", lane="priority"))
        lease = await scene.claim_one()
        assert (await find(scene, "a.example/0")).state is State.DONE
        await scene.settle(settle(lease, Dropped(ROBOTS)))
        assert (await find(scene, "a.example/0")).state is State.DONE, "it ended before that"

    async def test_each_run_has_its_own(self, harness: Harness) -> None:
        scene = Scene(harness)
        for run in ("one", "two"):
            await scene.open_run(run, delay=0)
            await scene.put("a.example/0", run=run)
        [lease] = await scene.claim(queues=["one"])
        await scene.settle(settle(lease, Dropped(ROBOTS)))
        assert (await find(scene, "a.example/0", "one")).state is State.DROPPED
        found = await find(scene, "a.example/0", "two")
        assert (found.state, found.run_state) == (State.WAITING, RunState.OPEN)

    async def _drop(self, scene: Scene) -> Moment:
        """Drop the next page; answers when."""
        await scene.advance(1)
        return (await scene.settle(settle(await scene.claim_one(), Dropped(ROBOTS)))).now


async def find(scene: Scene, name: str, run: str = "run", **options: Any) -> Whereabouts:
    """The one place where a page is, as `page` names it."""
    task = page(name, **options)
    assert task.key is not None
    [found] = await scene.reader.whereabouts(task.site, task.url, task.key, run)
    return found
