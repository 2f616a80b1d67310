"""How a lease ends: once, with its token, and with everything it brings or nothing (I1, I2, I7)."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from shoal.core.outcome import Blame, Dead, Done, Reason, Settlement, Snoozed
from shoal.core.task import Extra
from shoal.frontier.contract.frontier import Renewal
from shoal.testing.contract.harness import Capability, Harness, needs
from shoal.testing.contract.scene import (
    REASON,
    Scene,
    dead,
    done,
    dropped,
    given_back,
    names,
    page,
    pages,
    retried,
    settle,
    snoozed,
    worker,
)


@pytest.mark.asyncio
class SettlementContract:
    """Outcomes, and settlements that have no right to any."""

    async def test_done_brings_items_links_and_counters_together(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0)
        await scene.put("a.example/1")
        lease = await scene.claim_one()
        outcome = Done((b'{"n":1}', b'{"n":2}'), (page("a.example/2"), page("b.example/1")), "https://a.example/x", "g")
        ended = settle(lease, outcome, started=lease.claimed_at, requests=3, received=12_345, refused=2, duplicates=4)
        granted = await scene.exchange(ended, want=9)
        assert sorted(names(granted.leases)) == ["a.example/2", "b.example/1"], "links can be claimed in the same round"
        assert [(i.url, i.group, bytes(i.body)) for i in await scene.items()] == [
            ("https://a.example/x", "g", b'{"n":1}'),
            ("https://a.example/x", "g", b'{"n":2}'),
        ]
        counts = await scene.counters()
        assert (counts.done, counts.items, counts.leased, counts.waiting) == (1, 2, 2, 0)
        assert (counts.requests, counts.received, counts.refused, counts.duplicates) == (3, 12_345, 2, 4)

    async def test_every_outcome_leads_to_its_state(self, harness: Harness) -> None:
        """I1: each accepted task is in exactly one place, and ends in exactly one final state."""
        scene = Scene(harness)
        await scene.open_run(delay=0, concurrency=9)
        await scene.put(*pages("a.example", 6), page("a.example/ttl", ttl=500))
        await scene.advance(500)
        a, b, c, d, e, f = await scene.claim(9)
        await scene.settle(done(a), dead(b), dropped(c), retried(d, 1_000), snoozed(e, 1_000), given_back(f))
        counts = await scene.counters()
        assert (counts.done, counts.dead, counts.dropped, counts.expired) == (1, 1, 1, 1)
        assert (counts.waiting, counts.leased, counts.accepted) == (3, 0, 7)
        assert (counts.retries, counts.snoozes) == (1, 1)
        await scene.check_books()
        assert sorted(names(await scene.drain())) == ["a.example/3", "a.example/4", "a.example/5"]
        counts = await scene.counters()
        assert (counts.done, counts.accepted, counts.remaining) == (4, 7, 0)
        await scene.check_books()

    async def test_attempts_are_raised_by_failures_only(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0)
        await scene.put("a.example/1")
        for back, attempts in ((given_back, 0), (lambda lease: snoozed(lease, 10), 0), (retried, 1), (retried, 2)):
            await scene.settle(back(await scene.claim_one()))
            await scene.advance(10)
            lease = await scene.claim_one()
            assert lease.task.attempts == attempts
            await scene.settle(given_back(lease))
        await scene.settle(dead(await scene.claim_one()))
        [letter] = await scene.reader.dead("run")
        assert (letter.attempts, letter.crashes) == (3, 0)

    async def test_what_policy_forbids_was_not_tried(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0)
        await scene.put("a.example/1", "a.example/2")
        for tried in (0, 1):
            lease = await scene.claim_one()
            if tried:
                await scene.settle(retried(lease))
                await scene.advance(10)
                lease = await scene.claim_one()
            await scene.settle(settle(lease, Dead(Reason(Blame.POLICY, "not there"))))
            letter = (await scene.reader.dead("run"))[-1]
            assert (letter.reason.blame, letter.attempts) == (Blame.POLICY, tried)
        await scene.check_books()

    async def test_a_dead_letter_says_what_and_why(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        await scene.put(page("a.example/1", lane="files", handler="detail"))
        lease = await scene.claim_one()
        await scene.advance(7)
        reason = Reason(Blame.HANDLER, "KeyError: 'price'", "shop.py:12", 'File "shop.py", line 12\n    é["price"]\n')
        granted = await scene.settle(settle(lease, Dead(reason), started=lease.claimed_at))
        [letter] = await scene.reader.dead("run")
        assert (letter.task, letter.url, letter.site) == (lease.task.id, "https://a.example/1", "a.example")
        assert (letter.lane, letter.handler, letter.reason, letter.died_at) == ("files", "detail", reason, granted.now)

    async def test_what_a_task_remembers_is_kept_and_it_is_the_next_of_its_site(self, harness: Harness) -> None:
        """As between two steps of a redirect."""
        scene = Scene(harness)
        await scene.open_run()
        await scene.put(page("a.example/old", extra=Extra(group="g")), "a.example/other")
        lease = await scene.claim_one()
        step = Extra(group="g", halfway=True)
        await scene.settle(settle(lease, Snoozed(extra=step), started=lease.claimed_at, requests=1))
        await scene.advance(999)
        assert await scene.claim() == []
        await scene.advance(1)
        again = await scene.claim_one()
        assert (again.task.id, again.task.url, again.task.extra) == (lease.task.id, lease.task.url, step)
        assert again.task.attempts == 0
        await scene.settle(given_back(again))
        assert (await scene.claim_one()).task.extra == step, "a step that was taken is not taken back"

    @pytest.mark.parametrize("anew", [None, Extra(data={"n": [1, {}]}, group="g")], ids=["as it was", "begins anew"])
    async def test_what_a_dead_letter_remembers_when_it_is_requeued(self, harness: Harness, anew: Extra | None) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0)
        before = Extra(data={"n": [1, {}]}, group="g", limits=4, set_back_since=99)
        await scene.put(page("a.example/1", handler="detail", depth=3, extra=before))
        await scene.settle(settle(await scene.claim_one(), Dead(REASON, anew)))
        assert await scene.frontier.requeue_dead("run") == 1
        task = (await scene.claim_one()).task
        assert (task.extra, task.handler, task.depth) == (anew or before, "detail", 3)

    async def test_without_the_right_token_nothing_happens(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        await scene.put("a.example/1", "a.example/2")
        lease = await scene.claim_one()
        wrong = msgspec.structs.replace(done(lease, b"{}", tasks=[page("b.example/1")]), token=lease.token ^ 1)
        await self._assert_refused(scene, wrong)
        assert (await scene.settle(done(lease))).late == []

    async def test_a_token_is_good_for_its_own_task_and_run_only(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        await scene.open_run("other")
        await scene.put("a.example/1", "b.example/1")
        one, two = await scene.claim(2)
        right = done(one, b"{}", tasks=[page("c.example/1")])
        await self._assert_refused(scene, msgspec.structs.replace(right, task=two.task.id))
        await self._assert_refused(scene, msgspec.structs.replace(right, task=10**12))
        late = (await scene.counters()).late
        granted = await scene.settle(msgspec.structs.replace(right, run_id="other"))
        assert granted.late == [one.token]
        granted = await scene.settle(msgspec.structs.replace(right, run_id="nobody"))
        assert granted.late == [one.token]
        assert (await scene.counters("other")).late == 1
        assert (await scene.counters("other")).accepted == 0
        counts = await scene.counters()
        assert (counts.late, counts.leased, counts.items) == (late, 2, 0)
        assert (await scene.settle(right)).late == []

    async def test_a_second_settlement_is_refused(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        await scene.put("a.example/1")
        lease = await scene.claim_one()
        await scene.settle(done(lease, b'{"n":1}'))
        await self._assert_refused(scene, done(lease, b'{"n":2}', tasks=[page("b.example/1")]))
        await self._assert_refused(scene, dead(lease))
        assert await scene.bodies() == [b'{"n":1}']

    async def test_the_same_lease_twice_in_one_exchange_counts_once(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0, concurrency=2)
        await scene.put("a.example/1", "a.example/2", "a.example/3")
        lease, _ = await scene.claim(2)
        first, second = done(lease, b'{"n":1}'), done(lease, b'{"n":2}', tasks=[page("b.example/1")])
        granted = await scene.settle(first, second)
        assert granted.late == [lease.token]
        counts = await scene.counters()
        assert (counts.done, counts.items, counts.late, counts.leased, counts.waiting) == (1, 1, 1, 1, 1)
        assert await scene.bodies() == [b'{"n":1}']
        assert len(await scene.claim(9)) == 1, "one lease ended, so there is room for one"
        await scene.check_books()

    async def test_a_settlement_after_the_lease_was_lost_is_refused(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(lease=10_000, hard_timeout=0)
        await scene.put("a.example/1")
        lease = await scene.claim_one()
        await scene.advance(10_000)
        await scene.sweep_all()
        await self._assert_refused(scene, done(lease, b"{}", tasks=[page("b.example/1")]))
        await scene.advance(1_000)
        again = await scene.claim_one(by="w2")
        assert again.task.id == lease.task.id
        assert again.token != lease.token
        await self._assert_refused(scene, done(lease, b"{}"))
        await scene.settle(done(again, b'{"by":2}'))
        await self._assert_refused(scene, done(lease, b"{}"))
        assert await scene.bodies() == [b'{"by":2}']
        await scene.check_books()

    async def test_a_lease_that_ran_out_stands_until_it_is_swept(self, harness: Harness) -> None:
        """What ends a lease is a settlement or a sweep, so that a slow worker whom nobody missed loses nothing."""
        scene = Scene(harness)
        await scene.open_run(lease=10_000)
        await scene.put("a.example/1", "b.example/1")
        one, two = await scene.claim(2)
        await scene.advance(10_001)
        assert await scene.claim(9) == []
        assert await scene.frontier.renew(worker(), [Renewal(two.task.id, two.token)]) == []
        assert (await scene.settle(done(one))).late == []
        await scene.sweep_all()
        assert (await scene.settle(done(two))).late == []
        assert (await scene.counters()).done == 2

    async def test_a_refused_settlement_does_not_hurt_its_neighbours(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0, concurrency=3)
        await scene.put(*pages("a.example", 3))
        a, b, c = await scene.claim(3)
        wrong = msgspec.structs.replace(done(b, b'{"n":2}'), token=b.token ^ 1)
        granted = await scene.settle(done(a, b'{"n":1}'), wrong, done(c, b'{"n":3}'))
        assert granted.late == [b.token ^ 1]
        assert await scene.bodies() == [b'{"n":1}', b'{"n":3}']
        counts = await scene.counters()
        assert (counts.done, counts.leased, counts.late) == (2, 1, 1)

    async def test_two_workers_settle_one_lease_at_once(self, harness: Harness) -> None:
        needs(harness, Capability.SEVERAL_HANDLES)
        scene = Scene(harness)
        other = await harness.another()
        await scene.open_run(delay=0)
        await scene.put("a.example/1")
        lease = await scene.claim_one()
        ask = scene.ask(done(lease, b"{}"))
        answers = await asyncio.gather(*(engine.frontier.exchange(ask) for engine in (scene.engine, other) * 4))
        assert sorted(len(answer.late) for answer in answers) == [0] + [1] * 7
        counts = await scene.counters()
        assert (counts.done, counts.items, counts.late) == (1, 1, 7)

    async def test_many_claims_at_once_never_share_a_task(self, harness: Harness) -> None:
        needs(harness, Capability.SEVERAL_HANDLES)
        scene = Scene(harness)
        other = await harness.another()
        await scene.open_run(delay=0, concurrency=40)
        await scene.put(*pages("a.example", 30), *pages("b.example", 30))
        engines = (scene.engine, other)
        asks = [engines[n % 2].frontier.exchange(scene.ask(want=3, by=f"w{n}")) for n in range(20)]
        leases = [lease for granted in await asyncio.gather(*asks) for lease in granted.leases]
        assert len(leases) == 60
        assert len({lease.task.id for lease in leases}) == 60

    async def test_what_one_handle_does_the_other_sees(self, harness: Harness) -> None:
        needs(harness, Capability.SEVERAL_HANDLES)
        scene = Scene(harness)
        other = await harness.another()
        await scene.open_run()
        await scene.put("a.example/1")
        granted = await other.frontier.exchange(scene.ask(by="w2", want=5))
        assert names(granted.leases) == ["a.example/1"]
        assert await scene.claim(5) == []
        assert (await scene.counters()).leased == 1
        await scene.settle(done(granted.leases[0], b"{}"))
        assert (await other.reader.run("run")).counters.done == 1

    async def test_dead_letters_by_pages(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0, concurrency=9)
        await scene.open_run("other", delay=0, concurrency=9)
        await scene.put(*pages("a.example", 7))
        await scene.put(*pages("a.example", 2), run="other")
        await scene.settle(*(dead(lease) for lease in await scene.claim(9)))
        every = [letter.task for letter in await scene.reader.dead("run")]
        assert len(every) == 7
        assert every == sorted(every)
        by_pages: list[int] = []
        while part := await scene.reader.dead("run", by_pages[-1] if by_pages else 0, limit=3):
            assert len(part) <= 3
            by_pages += [letter.task for letter in part]
        assert by_pages == every

    async def test_dead_letters_can_be_tried_again(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0, concurrency=9)
        await scene.put(*pages("a.example", 3))
        await scene.frontier.seal_run("run")
        await scene.settle(*(dead(lease) for lease in await scene.claim(9)))
        letters = await scene.reader.dead("run")
        assert await scene.frontier.requeue_dead("run", [letters[1].task, 10**9]) == 1
        run = await scene.reader.run("run")
        assert (run.state, run.counters.dead, run.counters.waiting) == ("running", 2, 1)
        lease = await scene.claim_one()
        assert (lease.task.id, lease.task.url) == (letters[1].task, letters[1].url)
        assert (lease.task.attempts, lease.task.crashes) == (0, 0)
        await scene.settle(done(lease))
        assert await scene.frontier.requeue_dead("run") == 2
        assert await scene.frontier.requeue_dead("run") == 0
        assert len(await scene.drain()) == 2
        counts = await scene.counters()
        assert (counts.done, counts.dead, counts.accepted) == (3, 0, 3)
        await scene.check_books()

    async def test_requeued_letters_bring_the_rules_of_their_run(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run("slow", delay=60_000)
        await scene.put(*pages("a.example", 1), run="slow")
        await scene.settle(dead(await scene.claim_one()))
        await scene.open_run("fast", delay=100)
        await scene.put(*pages("a.example", 2), run="fast")
        await scene.drain()
        await scene.frontier.requeue_dead("slow")
        await scene.advance(60_000)
        assert (await scene.claim_one()).delay == 60_000

    async def test_purged_letters_are_forgotten_and_stay_counted(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(delay=0, concurrency=9)
        await scene.put(*pages("a.example", 3))
        await scene.settle(*(dead(lease) for lease in await scene.claim(9)))
        first, second, third = [letter.task for letter in await scene.reader.dead("run")]
        assert await scene.frontier.purge_dead("run", [second, 10**9]) == 1
        assert [letter.task for letter in await scene.reader.dead("run")] == [first, third]
        assert await scene.frontier.purge_dead("run") == 2
        assert await scene.frontier.purge_dead("run") == 0
        assert await scene.reader.dead("run") == []
        assert await scene.frontier.requeue_dead("run") == 0
        assert (await scene.counters()).dead == 3

    async def test_letters_of_another_run_are_not_touched(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run()
        await scene.open_run("other")
        await scene.put("a.example/1")
        await scene.settle(dead(await scene.claim_one()))
        [letter] = await scene.reader.dead("run")
        assert await scene.frontier.requeue_dead("other", [letter.task]) == 0
        assert await scene.frontier.purge_dead("other", [letter.task]) == 0
        assert len(await scene.reader.dead("run")) == 1

    async def _assert_refused(self, scene: Scene, settlement: Settlement) -> None:
        """Its token comes back as late, it is counted, and nothing else has changed."""
        before = await scene.counters()
        items, letters = await scene.bodies(), await scene.reader.dead("run")
        sites = await scene.reader.sites()
        granted = await scene.settle(settlement)
        assert granted.late == [settlement.token]
        assert await scene.counters() == msgspec.structs.replace(before, late=before.late + 1)
        assert (await scene.bodies(), await scene.reader.dead("run")) == (items, letters)
        assert await scene.reader.sites() == sites
