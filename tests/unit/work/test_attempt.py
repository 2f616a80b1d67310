"""The requests that are made within one attempt."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from multidict import CIMultiDict, CIMultiDictProxy

from shoal.api.scraper import Scraper
from shoal.core.clock import Millis
from shoal.core.outcome import Blame, Dead, Reason, Snoozed
from shoal.core.task import NO_EXTRA, Extra, Lease, Task
from shoal.delivery.held_lease import HeldLease
from shoal.errors import TooLate
from shoal.fetch.protocol import Fetch, FetchError, Gate, Response, Stage
from shoal.insight.audit import Robots
from shoal.intake.admission import Refusal
from shoal.testing.jump_clock import NOON, JumpClock
from shoal.work.task.attempt import Attempt
from shoal.work.task.recollection import headers_of

URL = "http://x.example/"


def attempt(clock: JumpClock, *, delay: Millis = 1000, window: Millis = 150_000, extra: Extra = NO_EXTRA) -> Attempt:
    now = clock.now()
    task = Task(1, "run", "test", URL, "x.example", "bulk", None, 0, 0, 0, 0, extra)
    lease = Lease(task, 7, "direct", now, now, now + window, now + 300_000, delay, True)
    return Attempt(HeldLease(lease, clock, float(NOON)))


@dataclass
class Wire:
    """A network that takes its time, breaks off so many times before it answers, or never does."""

    clock: JumpClock
    takes: Millis = 0
    breaks: int = 0
    answers: bool = True
    asked: list[Fetch] = field(default_factory=list)

    async def fetch(self, fetch: Fetch, gate: Gate) -> Response:
        for _ in range(self.breaks + 1):
            gate()
            self.asked.append(fetch)
        self.clock.advance(self.takes)
        if not self.answers:
            raise FetchError("no data", Blame.EXIT)
        return Response(fetch.url, 200, CIMultiDictProxy(CIMultiDict()), b"x", 5)

    async def close(self) -> None:
        """Nothing to close."""


class Unreachable:
    """A network on which no connection is ever made."""

    def __init__(self, error: FetchError) -> None:
        self._error = error

    async def fetch(self, _fetch: Fetch, _gate: Gate) -> Response:
        raise self._error

    async def close(self) -> None:
        """Nothing to close."""


async def test_a_request_is_written_down_with_its_answer() -> None:
    clock = JumpClock()
    one = attempt(clock)
    await one.fetch(Wire(clock, takes=40), Fetch(URL), Robots.FILE)
    [made] = one.made
    assert made == (NOON, 0, 40, 200, 1000, Robots.FILE)
    assert (one.pages_asked, one.held.received, one.held.started_at) == (0, 5, NOON + 40 + 1)


async def test_one_that_was_not_answered_is_written_down_too() -> None:
    clock = JumpClock()
    one = attempt(clock)
    with pytest.raises(FetchError):
        await one.fetch(Wire(clock, takes=40, answers=False), Fetch(URL))
    assert [(made.took, made.status) for made in one.made] == [(40, 0)]
    assert (one.pages_asked, one.held.received) == (1, 0)


async def test_of_two_that_are_one_request_the_second_was_answered() -> None:
    clock = JumpClock()
    one = attempt(clock, delay=0)
    await one.fetch(Wire(clock, breaks=1), Fetch(URL))
    assert [made.status for made in one.made] == [0, 200]


async def test_a_repeated_request_keeps_the_delay_or_fails() -> None:
    """The fetcher wants to repeat at once what broke off on a kept connection."""
    clock = JumpClock()
    one = attempt(clock)
    with pytest.raises(FetchError, match="connection closed before an answer"):
        await one.fetch(Wire(clock, breaks=1), Fetch(URL))
    assert one.held.starts == len(one.made) == 1


async def test_a_request_that_was_never_made_is_too_late_and_no_failure() -> None:
    clock = JumpClock()
    one = attempt(clock, window=10)
    clock.advance(11)
    with pytest.raises(TooLate):
        await one.fetch(Wire(clock), Fetch(URL))
    assert one.made == []


@pytest.mark.parametrize(
    ("error", "is_paced"),
    [
        (FetchError("connection refused", Blame.HOST, stage=Stage.CONNECTION), True),
        (FetchError("the proxy says: host unreachable", Blame.EXIT, doubtful=True), True),
        (FetchError("network not reachable", Blame.HOST, stage=Stage.NETWORK), False),
        (FetchError("the proxy cannot be reached", Blame.EXIT), False),
    ],
    ids=lambda value: value.text if isinstance(value, FetchError) else "",
)
async def test_a_try_to_connect_moves_the_clock_if_the_target_may_have_seen_it(
    error: FetchError, is_paced: bool
) -> None:
    """The next request of its slot comes a delay later, as after a request that was answered."""
    clock = JumpClock()
    one = attempt(clock)
    with pytest.raises(FetchError):
        await one.fetch(Unreachable(error), Fetch(URL))
    assert (one.held.starts, one.held.started_at is not None) == (0, is_paced)


async def test_cut_short_only_its_requests_count() -> None:
    clock = JumpClock()
    one = attempt(clock)
    await one.fetch(Wire(clock), Fetch(URL))
    one.refusals[Refusal.OUTSIDE], one.crawl_delay = 3, 5000
    settlement = one.given_back()
    assert settlement.outcome == Snoozed()
    assert (settlement.requests, settlement.refused, settlement.crawl_delay) == (1, 0, None)
    assert one.settlement(Snoozed()).refused == 3


@pytest.mark.parametrize(
    "setbacks",
    [{"limits": 4, "set_back_since": 9}, {"detours": ("a", "b")}, {"halfway": True}],
    ids=" ".join,
)
def test_a_dead_letter_remembers_nothing_of_its_setbacks(setbacks: dict[str, Any]) -> None:
    """So that it begins anew when it is requeued: with what it had, it would die again at once."""
    asked, why = Extra(data={"n": 1}, group="g", method="POST", body=b"x", visits=2), Reason(Blame.URL, "limited")
    set_back = attempt(JumpClock(), extra=msgspec.structs.replace(asked, **setbacks))
    assert set_back.settlement(Dead(why)).outcome == Dead(why, asked)
    assert attempt(JumpClock(), extra=asked).settlement(Dead(why)).outcome == Dead(why), "nothing is to be written"


def test_a_header_of_a_request_goes_before_the_scrapers_however_it_is_spelled() -> None:
    scraper = Scraper("test", headers={"X-Mine": "scraper", "Cookie": "a=1", "Accept": "text/html"})
    sent = headers_of(Extra(headers={"x-mine": "request", "cookie": "b=2"}), scraper)
    assert sent == {"x-mine": "request", "cookie": "b=2", "Accept": "text/html"}
