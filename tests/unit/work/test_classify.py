from __future__ import annotations

import random
from email.utils import formatdate
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from shoal.api.blocked import Blocked
from shoal.api.scraper import Scraper
from shoal.core.outcome import Blame, Dead, Outcome, Reason, Retried, Snoozed
from shoal.core.politeness import BACKOFF_FIRST, BACKOFF_MOST, RETRY_FIRST
from shoal.core.storable import MAX_TEXT, cleaned
from shoal.core.task import NO_EXTRA, Lease, Task
from shoal.delivery.held_lease import HeldLease
from shoal.errors import BadScraper
from shoal.fetch.protocol import FetchError
from shoal.testing.jump_clock import JumpClock
from shoal.work.exits.adaptive_pace import LEAST, SLOWEST, Paces
from shoal.work.task.attempt import Attempt
from shoal.work.task.classify import (
    LEAST_BACKOFF,
    MOST_DETOURS,
    WORTH_RETRYING,
    Classifier,
    because,
)

NOW = 1_700_000_000_000
CLASSIFIER = Classifier(3, random.Random(1))
SEEDS = st.integers().map(random.Random)


def lease(attempts: int = 0, penalty: int = 0) -> Lease:
    url = "http://x.example/"
    task = Task(1, "run", "test", url, "x.example", "bulk", None, 0, 0, attempts, 0, NO_EXTRA)
    return Lease(task, 7, "direct", NOW, NOW, NOW + 1000, NOW + 300_000, 1000, True, penalty)


def attempt(lease: Lease) -> Attempt:
    return Attempt(HeldLease(lease, JumpClock(NOW), float(NOW)))


def answer(status: int, *, after: str | None = None, attempts: int = 0, penalty: int = 0) -> Outcome | None:
    headers = CIMultiDict[str]() if after is None else CIMultiDict({"retry-after": after})
    return CLASSIFIER.answer(lease(attempts, penalty), status, headers, NOW)


@pytest.mark.parametrize("status", range(200, 300))
def test_2xx_is_for_the_handler(status: int) -> None:
    assert answer(status) is None
    assert answer(status, after="5") is None


@pytest.mark.parametrize("status", [*range(100, 200), *range(300, 600), 999])
def test_everything_else_is_retried_or_dead(status: int) -> None:
    outcome = answer(status)
    if status == 429:
        assert isinstance(outcome, Snoozed)
        return
    assert isinstance(outcome, Retried if status in WORTH_RETRYING else Dead)
    assert outcome.reason == Reason(Blame.HOST if status >= 500 else Blame.URL, f"HTTP {status}")


@pytest.mark.parametrize("status", [404, 403, 500, 502, 504, 200])
def test_retry_after_means_nothing_elsewhere(status: int) -> None:
    assert not isinstance(answer(status, after="5"), Snoozed)


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("attempts", [0, 2, 50])
@pytest.mark.parametrize(
    ("value", "wait"),
    [("120", 120_000), (" 7 ", 7000), ("86400", 86_400_000), (formatdate(NOW / 1000 + 90, usegmt=True), 90_001)],
)
def test_a_rate_limit_is_honoured_in_full_and_is_never_a_failure(
    status: int, attempts: int, value: str, wait: int
) -> None:
    outcome = answer(status, attempts=attempts, penalty=2, after=value)
    assert isinstance(outcome, Snoozed)
    assert (outcome.wait, outcome.penalty) == (wait, 3)
    assert outcome.reason is not None
    assert f"HTTP {status}, Retry-After" in outcome.reason.text


@pytest.mark.parametrize("value", ["0", "00", formatdate(0, usegmt=True), formatdate(NOW / 1000, usegmt=True)])
def test_a_limit_that_is_over_already_is_waited_for_a_little(value: str) -> None:
    outcome = answer(429, after=value)
    assert isinstance(outcome, Snoozed)
    assert outcome.wait == LEAST_BACKOFF


@pytest.mark.parametrize("after", [None, "soon", "-1", ""])
def test_429_that_does_not_say_how_long_grows(after: str | None) -> None:
    waits = []
    for penalty in range(10):
        outcome = answer(429, penalty=penalty, after=after)
        assert isinstance(outcome, Snoozed)
        assert outcome.penalty == penalty + 1
        waits.append(outcome.wait)
    assert waits[0] >= BACKOFF_FIRST
    assert waits[1] > 1.8 * waits[0]
    assert BACKOFF_MOST <= waits[9] <= BACKOFF_MOST * 1.1


@pytest.mark.parametrize("after", [None, "soon"])
def test_503_that_does_not_say_how_long_is_a_failure(after: str | None) -> None:
    assert isinstance(answer(503, after=after), Retried)


@given(allowed=st.integers(1, 10), failed=st.integers(0, 12), permanent=st.booleans(), chance=SEEDS)
def test_so_many_failures_make_a_dead_letter(allowed: int, failed: int, permanent: bool, chance: random.Random) -> None:
    outcome = Classifier(allowed, chance).failure(lease(failed), Reason(Blame.URL, "x"), permanent=permanent)
    assert isinstance(outcome, Dead) == (permanent or failed + 1 >= allowed)


def test_the_wait_between_attempts_grows_unless_it_is_given() -> None:
    first, second = (Classifier(9, random.Random(1)).failure(lease(n), Reason(Blame.URL, "x")) for n in (0, 3))
    assert isinstance(first, Retried)
    assert isinstance(second, Retried)
    assert RETRY_FIRST * 0.75 <= first.wait <= RETRY_FIRST * 1.25 < second.wait
    given_wait = CLASSIFIER.failure(lease(), Reason(Blame.URL, "x"), wait=0)
    assert isinstance(given_wait, Retried)
    assert given_wait.wait == 0


def test_no_answer_is_charged_to_what_is_to_blame() -> None:
    retried = CLASSIFIER.no_answer(attempt(lease()), FetchError("timed out", Blame.HOST))
    assert isinstance(retried, Retried)
    assert retried.reason == Reason(Blame.HOST, "timed out")
    dead = CLASSIFIER.no_answer(attempt(lease()), FetchError("too large", Blame.URL, permanent=True))
    assert dead == Dead(Reason(Blame.URL, "too large"))


@given(st.one_of(st.text(st.characters(codec=None)), st.integers(), st.none(), st.binary()))
def test_any_reason_can_be_stored(text: object) -> None:
    reason = because(Blame.HANDLER, text, str(text))
    assert reason.text.encode().decode() == reason.text
    assert len(reason.text) <= MAX_TEXT + 1


def test_words_are_left_alone() -> None:
    assert cleaned("naïve 鮭") == "naïve 鮭"
    assert because(Blame.URL, "x").detail is None


def test_a_failure_of_the_exit_costs_the_task_nothing() -> None:
    given = attempt(lease())
    outcome = CLASSIFIER.no_answer(given, FetchError("the proxy cannot be reached", Blame.EXIT))
    assert isinstance(outcome, Snoozed)
    assert (outcome.wait, outcome.penalty, given.exits_failed) == (0, 0, (given.lease.exit,))


def test_in_doubt_other_exits_decide() -> None:
    doubt = FetchError("connection reset (through a proxy)", Blame.EXIT, doubtful=True)
    given = lease()
    for made in range(MOST_DETOURS - 1):
        one = attempt(given)
        outcome = CLASSIFIER.no_answer(one, doubt)
        assert isinstance(outcome, Snoozed)
        assert outcome.extra is not None
        assert (one.exits_failed, outcome.extra.detours) == ((), (given.exit,) * (made + 1))
        task = msgspec.structs.replace(given.task, extra=outcome.extra)
        given = msgspec.structs.replace(given, task=task)
    last = CLASSIFIER.no_answer(attempt(given), doubt)
    assert isinstance(last, Retried)
    assert last.reason.blame is Blame.HOST


def test_what_else_means_a_rate_limit() -> None:
    classify = Classifier(3, random.Random(1), Blocked.of([403, "are you a ROBOT"]))
    limited = classify.answer(lease(), 403, {}, 0)
    assert isinstance(limited, Snoozed)
    assert (limited.penalty, limited.wait >= BACKOFF_FIRST) == (1, True)
    page = classify.looks_blocked(lease(), b"<h1>Are you a robot?</h1>")
    assert isinstance(page, Snoozed)
    assert page.penalty == 1
    assert classify.looks_blocked(lease(), b"<h1>Welcome</h1>") is None
    assert isinstance(CLASSIFIER.answer(lease(), 403, {}, 0), Dead)


@pytest.mark.parametrize("wrong", [[99], [600], ["("], [None], [True], [""], 403, "captcha"])
def test_what_cannot_mean_a_rate_limit(wrong: Any) -> None:
    with pytest.raises(BadScraper, match="blocked"):
        Scraper("shop", blocked=wrong)


def test_a_site_that_fails_or_grows_slow_is_visited_more_slowly() -> None:
    paces = Paces()
    assert paces.advise("a", 1000, 1000, 80.0) is None
    assert paces.advise("a", 1000, 1000, 120.0) is None, "a little slower is nothing"
    assert paces.advise("a", 1000, 1000, 900.0) == 1500
    assert paces.advise("a", 1000, 1500, None) == 2250
    assert paces.advise("a", 1000, 2250, 90.0) == 2025, "it recovers"
    assert paces.advise("a", 1000, 1050, 90.0) == 0, "back to the delay"
    assert paces.advise("a", 0, 0, None) == LEAST
    assert paces.advise("a", 1000, SLOWEST, None) == SLOWEST


@given(st.lists(st.one_of(st.none(), st.floats(0, 60_000)), max_size=60), st.integers(0, 5_000))
def test_the_pace_is_never_faster_than_the_delay(answers: list[float | None], delay: int) -> None:
    paces, pace = Paces(), 0
    for took in answers:
        in_force = max(delay, pace)
        advice = paces.advise("a", delay, in_force, took)
        pace = pace if advice is None else advice
        assert advice is None or advice == 0 or delay <= advice <= SLOWEST
