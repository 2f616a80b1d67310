"""The checker of histories: it sees tasks, items and counters that do not end as they should (I1, I7, I8)."""

from __future__ import annotations

import msgspec

from shoal.core.outcome import Blame, Dead, Done, Reason, Retried, Snoozed
from shoal.core.task import RunState
from shoal.frontier.contract.reader import Item
from shoal.frontier.recording import Letters
from support.history_story import DELAY, RUN, Story, broken, item, new_task, page

REASON = Reason(Blame.HOST, "no")


def test_an_undisturbed_history_breaks_no_rule() -> None:
    verdict = Story().crawl(1, 2, 3).verdict(expected=[item(1), item(2), item(3)])
    assert verdict.breaches == []
    assert verdict.counted("I6")["tasks compared"] == 2
    assert verdict.counted("I4")["pairs of grants"] == 2


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
