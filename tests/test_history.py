"""The checker of histories: it accepts what was right, and sees each rule broken."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from history_story import DELAY, LEASE, POLICY, RUN, SITE, Story, broken, item, new_task, page
from shoal.events import Letters
from shoal.frontier.reading import DeadLetter, Item
from shoal.outcome import Blame, Dead, Done, Reason, Retried, Snoozed
from shoal.task import RunState
from shoal.testing.history import Disturbance, History, Limits, Rest, Sighting, check

REASON = Reason(Blame.HOST, "no")


def test_an_undisturbed_history_breaks_no_rule() -> None:
    verdict = Story().crawl(1, 2, 3).verdict(expected=[item(1), item(2), item(3)])
    assert verdict.breaches == []
    assert verdict.counted("I6")["tasks compared"] == 2
    assert verdict.counted("I4")["pairs of grants"] == 2


# I1: every task ends once


def test_a_run_that_is_not_finished_breaks_i1() -> None:
    verdict = Story().crawl(1).verdict({"waiting": 1}, state=RunState.RUNNING)
    assert broken(verdict) == {"I1", "I7"}


def test_a_task_that_never_ended_breaks_i1() -> None:
    story = Story().crawl(1)
    story.enqueue(new_task(2))
    story.settle(story.grant(2), Snoozed())
    assert "task 2 (http://a.example/2), lease 2 never ended" in story.verdict({"done": 2}).text()


def test_a_task_that_ended_twice_breaks_i1() -> None:
    story = Story().crawl(1)
    story.settle(story.grant(1), Done())
    assert {"I1"} <= broken(story.verdict())
    assert "ended 2 times" in story.verdict().text()


def test_a_task_that_was_granted_after_its_end_breaks_i1() -> None:
    story = Story().crawl(1)
    story.settle(story.grant(1), Snoozed())
    assert "was granted after its task had ended" in story.verdict().text()


def test_a_requeued_dead_letter_may_live_again() -> None:
    story = Story()
    story.enqueue(new_task(1))
    story.settle(story.grant(1), Dead(REASON))
    story.call(1, "requeue_dead", Letters(RUN), 1)
    story.later(DELAY).settle(story.grant(1))
    assert story.verdict().breaches == []


def test_an_end_that_nobody_confirmed_may_have_been_the_end() -> None:
    story = Story()
    story.enqueue(new_task(1))
    story.settle(story.grant(1), heard=False)
    story.items.append(Item(page(1), None, msgspec.Raw(item(1))))
    assert story.verdict({"done": 1, "requests": 1, "items": 1}).breaches == []


def test_items_that_are_lost_or_come_twice_break_i1() -> None:
    lost = Story().crawl(1).verdict(expected=[item(1), item(2)])
    assert broken(lost) == {"I1"}
    assert 'lost: 1 of {"page":2}' in lost.text()
    twice = Story().crawl(1)
    twice.items *= 2
    assert 'too often: 1 of {"page":1}' in twice.verdict(expected=[item(1)]).text()


# I2: every lease is settled once


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


# I3: few leases per slot


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


# I4: the delay


def test_starts_too_close_at_the_target_break_i4() -> None:
    story = Story().crawl(1, 2)
    story.starts = [(SITE, 10.0), ("b.example", 10.05), (SITE, 10.2)]
    assert story.verdict().breaches == []
    story.starts.append((SITE, 10.399))
    assert broken(story.verdict()) == {"I4"}
    assert story.verdict().counted("I4")["smallest gap in s"] < DELAY / 1000


def test_a_grant_that_allows_a_start_too_soon_breaks_i4() -> None:
    story = Story()
    story.enqueue(new_task(1), new_task(2))
    story.settle(story.grant(1))
    story.settle(story.grant(2))
    assert broken(story.verdict()) == {"I4"}
    assert "ms too soon after task 1" in story.verdict().text()


def test_a_rate_limit_that_is_not_waited_for_breaks_i4() -> None:
    story = Story()
    story.enqueue(new_task(1))
    story.settle(story.grant(1), Snoozed(1000, 1, REASON))
    story.later(DELAY).settle(story.grant(1))
    assert broken(story.verdict()) == {"I4"}


def test_a_start_before_its_time_breaks_i4() -> None:
    story = Story()
    story.enqueue(new_task(1))
    lease = story.grant(1)
    early = msgspec.structs.replace(story.settlement(lease, Done()), started_at=lease.start_at - 1)
    story.exchange(1, early)
    assert "was started before its time" in story.verdict().text()


def test_a_slot_that_is_taken_over_while_its_owners_request_may_be_out_breaks_i4() -> None:
    def told(waited: int, *, by_the_dead: bool = False) -> set[str]:
        story = Story()
        story.enqueue(new_task(1), new_task(2))
        lost = story.grant(1, pid=1)
        story.later(waited).settle(story.grant(1, pid=2), pid=2)
        if not by_the_dead:
            story.settle(lost, pid=1, late=[lost.token])
        story.later(DELAY).settle(story.grant(2, pid=2), pid=2)
        return broken(story.verdict())

    in_time = LEASE + POLICY.hard_timeout + DELAY
    assert told(in_time) == set()
    assert told(in_time - 10) == {"I4"}
    assert told(LEASE + 10, by_the_dead=True) == set()


# I5: lost tasks come back


def _lost(story: Story, back_after: int | None) -> Story:
    story.enqueue(new_task(1))
    story.grant(1, pid=1)
    story.kill(1)
    if back_after is not None:
        story.later(back_after).settle(story.grant(1, pid=2), pid=2)
    return story


def test_a_lost_task_that_never_comes_back_breaks_i5() -> None:
    assert broken(_lost(Story(), None).verdict({"done": 1})) == {"I1", "I5", "I7"}


def test_a_lost_task_that_comes_back_too_late_breaks_i5() -> None:
    limits = Limits(sweep=2000, slack=1000)
    in_time = LEASE + 1000 + DELAY + limits.sweep + limits.slack
    assert _lost(Story(), in_time - 10).verdict(limits=limits).breaches == []
    late = _lost(Story(), in_time + 10)
    assert broken(late.verdict(limits=limits)) == {"I5"}
    outage = late.disturbances[0].at + 10
    late.disturbances.append(Disturbance(outage, outage + 20, "store restart"))
    assert late.verdict(limits=limits).breaches == []


def test_outages_at_the_same_time_count_once() -> None:
    away = [Disturbance(10, 20, "store restart"), Disturbance(12, 25, "store stalls"), Disturbance(30, 40, "cut")]
    history = History([], [*away, Disturbance(50, 60, "store refuses")])
    assert history.store_away(0, 100) == 25
    assert history.store_away(15, 55) == 15


# I6: first come, first served


def test_an_earlier_task_that_is_granted_later_breaks_i6() -> None:
    story = Story()
    story.enqueue(new_task(1))
    story.enqueue(new_task(2))
    for number in (2, 1):
        story.settle(story.grant(number))
        story.later(DELAY)
    assert broken(story.verdict()) == {"I6"}


def test_the_order_within_a_batch_counts_too() -> None:
    story = Story()
    story.enqueue(new_task(1), new_task(2))
    for number in (2, 1):
        story.settle(story.grant(number))
        story.later(DELAY)
    assert broken(story.verdict()) == {"I6"}


def test_links_of_a_page_come_in_the_order_they_stand() -> None:
    def told(*order: int) -> set[str]:
        story = Story()
        story.enqueue(new_task(1))
        story.settle(story.grant(1), Done((), (new_task(2), new_task(3))))
        for number in order:
            story.later(DELAY).settle(story.grant(number))
        return broken(story.verdict())

    assert told(2, 3) == set()
    assert told(3, 2) == {"I6"}


def test_another_priority_is_another_line() -> None:
    story = Story()
    story.enqueue(new_task(1))
    story.enqueue(new_task(2, priority=5))
    urgent = story.lease(2)
    urgent = msgspec.structs.replace(urgent, task=msgspec.structs.replace(urgent.task, priority=5))
    story.exchange(leases=[urgent])
    story.settle(urgent)
    story.later(DELAY).settle(story.grant(1))
    assert story.verdict().breaches == []


def test_a_retry_does_not_count_as_out_of_turn() -> None:
    story = Story()
    story.enqueue(new_task(1))
    story.enqueue(new_task(2))
    story.settle(story.grant(1), Retried(1000, REASON))
    story.later(DELAY).settle(story.grant(2))
    story.later(1000).settle(story.grant(1))
    assert story.verdict().breaches == []


def test_what_may_have_been_accepted_first_is_not_out_of_turn() -> None:
    story = Story()
    story.enqueue(new_task(1), heard=False)
    story.enqueue(new_task(2))
    story.enqueue(new_task(1))
    for number in (2, 1):
        story.settle(story.grant(number))
        story.later(DELAY)
    assert story.verdict().breaches == []


# I7: counters


def test_each_counter_that_is_not_the_truth_breaks_i7() -> None:
    for name in ("waiting", "leased", "done", "dropped", "retries", "requests", "late", "items", "dead"):
        story = Story().crawl(1, 2)
        verdict = story.verdict({name: story._counted().get(name, 0) + 1})
        assert broken(verdict) == {"I7"}, name


def test_what_was_never_answered_leaves_room_in_the_counters() -> None:
    story = Story().crawl(1)
    story.enqueue(new_task(2))
    story.settle(story.grant(2), Retried(10, REASON), heard=False)
    story.later(DELAY).settle(story.grant(2))
    assert story.verdict({"retries": 1, "requests": 3}).breaches == []
    assert story.verdict({"retries": 0, "requests": 2}).breaches == []
    assert broken(story.verdict({"retries": 2})) == {"I7"}


# I8: what was accepted survives


def test_an_accepted_url_that_is_never_seen_breaks_i8() -> None:
    story = Story().crawl(1)
    story.enqueue(new_task(2))
    assert broken(story.verdict()) == {"I8"}
    assert "http://a.example/2 was accepted, and never seen again" in story.verdict().text()


def test_a_url_whose_acceptance_was_not_acknowledged_may_be_lost() -> None:
    story = Story().crawl(1)
    story.enqueue(new_task(2), heard=False)
    assert story.verdict().breaches == []


def test_a_url_that_was_let_in_twice_breaks_i8() -> None:
    story = Story().crawl(1)
    lease = story.lease(7)
    again = msgspec.structs.replace(lease, task=msgspec.structs.replace(lease.task, url=page(1)))
    story.exchange(leases=[again])
    story.settle(again)
    assert broken(story.verdict()) == {"I8"}


def test_an_acknowledged_item_that_is_not_there_breaks_i8() -> None:
    story = Story().crawl(1, 2)
    del story.items[0]
    assert broken(story.verdict({"items": 1})) == {"I8"}


# I9: nobody starves


def test_a_due_site_that_is_passed_over_breaks_i9() -> None:
    def told(visits: int) -> set[str]:
        story = Story()
        story.enqueue(new_task(1), new_task(2))
        story.enqueue(*(new_task(number, "b.example") for number in range(10, 10 + visits)))
        story.settle(story.grant(1))
        story.later(DELAY)
        for number in range(10, 10 + visits):
            story.settle(story.grant(number, site="b.example"))
            story.later(DELAY)
        story.settle(story.grant(2))
        return broken(story.verdict(limits=Limits(overtakes=3)))

    assert told(3) == set()
    assert told(4) == {"I9"}


# I10 and I11


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
