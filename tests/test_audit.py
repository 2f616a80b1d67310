"""The proof of politeness: each rule is seen to be kept, and seen to be broken."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from shoal.audit import RequestRecord, Robots, Rule, audit, read, written

RECORD = RequestRecord("a.example", "direct", 1000, 0, 50, 200, 1000, 0, 1, Robots.ALLOWED)


def request(at: int, **changes: Any) -> RequestRecord:
    values = {name: getattr(RECORD, name) for name in RECORD.__struct_fields__}
    return RequestRecord(**{**values, "at": at, **changes})


def test_a_polite_run() -> None:
    report = audit([request(3500), request(1000), request(2200), request(2200, exit="p1:80"), request(2201, site="b")])
    assert report.clean
    assert (report.requests, report.slots, report.sites, report.smallest_gap) == (5, 3, 2, 1200)
    assert report.tightest == ("a.example", "direct", 1000)
    assert report.answers == {200: 5}


def test_nothing_at_all() -> None:
    report = audit([])
    assert report.clean
    assert (report.requests, report.smallest_gap) == (0, None)


def test_a_start_too_close() -> None:
    report = audit([request(1000), request(1999)])
    assert not report.clean
    [breach] = report.breaches
    assert (breach.rule, breach.found, breach.allowed, breach.at) == (Rule.DELAY, 999, 1000, 1999)


def test_doubt_counts_against_us() -> None:
    assert audit([request(1000), request(2010, slack=10)]).clean
    assert not audit([request(1000), request(2010, slack=11)]).clean


def test_a_site_over_all_exits() -> None:
    slow = {"site_delay": 500, "delay": 1000}
    assert audit([request(1000, **slow), request(1500, exit="two", **slow)]).clean
    [breach] = audit([request(1000, **slow), request(1400, exit="two", **slow)]).breaches
    assert (breach.rule, breach.exit, breach.found) == (Rule.SITE_DELAY, None, 400)


def test_too_many_at_once() -> None:
    free = {"delay": 0, "concurrency": 2, "took": 100}
    assert audit([request(at, **free) for at in (0, 50, 100, 150)]).clean
    report = audit([request(at, **free) for at in (0, 50, 99)])
    [breach] = report.breaches
    assert (breach.rule, breach.found, breach.allowed, report.most_at_once) == (Rule.CONCURRENCY, 3, 2, 3)


def test_robots_that_were_not_asked_are_counted() -> None:
    assert audit([request(0, robots=Robots.IGNORED), request(5000)]).ignored == 1


@given(st.lists(st.integers(0, 100_000), max_size=40), st.integers(1, 3000))
def test_exactly_what_is_too_close_is_found(starts: list[int], delay: int) -> None:
    order = sorted(starts)
    truth = sum(later - earlier < delay for earlier, later in itertools.pairwise(order))
    assert audit(request(at, delay=delay, took=0, concurrency=99) for at in starts).broken == truth


def test_the_log_is_compact_and_comes_back() -> None:
    records = [request(1_790_000_000_000 + at) for at in range(100)]
    body = written(records)
    assert read(body) == records
    assert len(body) / len(records) < 80
