"""The checker of histories: it sees starts too soon, tasks that come back too late or out of turn (I4, I5, I6, I9)."""

from __future__ import annotations

import msgspec

from shoal.core.outcome import Blame, Done, Reason, Retried, Snoozed
from shoal.testing.history import Disturbance, History, Limits
from support.history_story import DELAY, LEASE, POLICY, SITE, Story, broken, new_task

REASON = Reason(Blame.HOST, "no")


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
