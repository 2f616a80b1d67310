"""The checker of histories: it sees leases that live twice or are settled wrongly, and leftovers (I2, I3, I10, I11)."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from shoal.core.outcome import Blame, Done, Reason, Snoozed
from shoal.frontier.contract.reader import DeadLetter, Item
from shoal.testing.history import Rest, Sighting, check
from support.history_story import DELAY, LEASE, POLICY, SITE, Story, broken, item, new_task, page

REASON = Reason(Blame.HOST, "no")


def test_a_lease_that_was_settled_twice_breaks_i2() -> None:
    story = Story()
    story.enqueue(new_task(1))
    lease = story.grant(1)
    story.settle(lease, Snoozed())
    story.settle(lease)
    assert "was settled 2 times" in story.verdict().text()
    assert "I2" in broken(story.verdict())


def test_a_settlement_after_the_task_went_to_another_breaks_i2() -> None:
    story = Story()
    story.enqueue(new_task(1))
    old = story.grant(1, pid=1)
    new = story.later(LEASE + 2000).grant(1, pid=2)
    story.settle(old, Snoozed(), pid=1)
    story.settle(new, pid=2)
    assert f"was settled after the task had gone to lease {new.token}" in story.verdict().text()


def test_a_token_that_nobody_was_given_breaks_i2() -> None:
    story = Story().crawl(1)
    story.exchange(1, story.settlement(story.lease(9), Done()))
    assert "settled with a token that nobody was given" in story.verdict().text()


def test_the_same_token_twice_breaks_i2() -> None:
    story = Story().crawl(1)
    lease = story.lease(2)
    story.exchange(leases=[lease])
    story.exchange(leases=[lease])
    assert f"the token {lease.token} was granted twice" in story.verdict().text()


def test_a_live_lease_that_is_refused_breaks_i2() -> None:
    story = Story()
    story.enqueue(new_task(1))
    lease = story.grant(1)
    story.later(LEASE // 2).settle(lease, late=[lease.token])
    assert "refused as late, though it cannot have run out" in story.verdict().text()


def test_a_lease_that_was_renewed_cannot_have_run_out() -> None:
    def told(*, renewed: bool) -> set[str]:
        story = Story()
        story.enqueue(new_task(1))
        lease = story.grant(1)
        story.later(LEASE - 500)
        story.renew(lease, lost=not renewed)
        story.later(1000).settle(lease, late=[lease.token])
        story.settle(story.later(3000).grant(1, pid=2), pid=2)
        return broken(story.verdict())

    assert told(renewed=True) == {"I2"}
    assert told(renewed=False) == set()


def test_a_second_try_may_be_late_where_the_first_was_not_answered() -> None:
    story = Story()
    story.enqueue(new_task(1))
    lease = story.grant(1)
    story.settle(lease, heard=False)
    story.settle(lease, late=[lease.token])
    story.items.append(Item(page(1), None, msgspec.Raw(item(1))))
    assert story.verdict({"done": 1, "requests": 1, "items": 1}).breaches == []


def test_two_live_leases_of_a_slot_break_i3() -> None:
    story = Story()
    story.enqueue(new_task(1), new_task(2))
    first, second = story.grant(1, pid=1), story.grant(2, pid=2, start_at=story.at + DELAY + 10)
    story.settle(first, pid=1)
    story.settle(second, pid=2)
    assert broken(story.verdict()) == {"I3"}
    assert story.verdict(policy=msgspec.structs.replace(POLICY, concurrency=2)).breaches == []


def test_leases_of_the_dead_and_those_that_ran_out_do_not_live() -> None:
    story = Story()
    story.enqueue(new_task(1))
    story.grant(1, pid=1)
    story.kill(1)
    story.later(DELAY).grant(1, pid=2)
    story.later(LEASE + 1500).settle(story.grant(1, pid=3), pid=3)
    assert story.verdict().breaches == []
    story.disturbances.clear()
    assert "I3" in broken(story.verdict())


def test_two_requests_of_a_slot_at_once_break_i3() -> None:
    def told(*lasting: float) -> set[str]:
        story = Story().crawl(1, 2)
        story.starts = [(SITE, 10.0), ("b.example", 10.0), (SITE, 11.0)]
        evidence = story.evidence()
        assert evidence.target is not None
        for entry, seconds in zip(evidence.target, lasting, strict=False):
            entry.finished = entry.started + seconds
        return broken(check(evidence))

    assert told(0.9, 0.9, 0.9) == set()
    assert told(1.05) == set(), "a target may need a moment to see that it was hung up on"
    assert told(1.2) == {"I3"}


def test_more_leases_than_wanted_break_i10() -> None:
    story = Story().crawl(1, 2)
    story.calls = [
        replace(call, given=msgspec.structs.replace(call.given, want=0)) if call.verb == "exchange" else call
        for call in story.calls
    ]
    assert broken(story.verdict()) == {"I10"}


def test_what_is_left_lying_about_breaks_i10() -> None:
    story = Story().crawl(1)
    assert story.verdict(rests=[Rest("connections", 2, 2)]).breaches == []
    assert broken(story.verdict(rests=[Rest("connections", 3, 2)])) == {"I10"}


def test_results_that_go_too_early_or_stay_too_long_break_i11() -> None:
    story = Story().crawl(1)
    policy = msgspec.structs.replace(POLICY, results_ttl=1000)
    over = story.at + 1000

    def told(*sightings: Sighting) -> set[str]:
        return broken(story.verdict(policy=policy, sightings=sightings))

    assert told(Sighting(over - 20, over - 1, 1), Sighting(over + 5, over + 9, 0, over)) == set()
    assert told(Sighting(over - 20, over - 1, 0)) == {"I11"}
    assert told(Sighting(over + 5, over + 9, 1, over)) == {"I11"}
    assert told(Sighting(over + 5, over + 9, 1, over - 1)) == set()


def test_a_dead_letter_is_an_end() -> None:
    story = Story()
    story.enqueue(new_task(1))
    story.grant(1)
    story.dead.append(DeadLetter(1, page(1), SITE, "bulk", None, 0, 3, REASON, story.at))
    assert story.verdict().breaches == []
