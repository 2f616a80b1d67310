from __future__ import annotations

import random
from datetime import UTC, datetime
from email.utils import format_datetime, formatdate

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shoal.core.politeness import (
    BACKOFF_FIRST,
    BACKOFF_MOST,
    MAX_BACKOFF,
    RETRY_FIRST,
    RETRY_MOST,
    backoff,
    retry_after,
    retry_wait,
    start_window,
    transit_allowance,
)

NOW = 1_700_000_000_000
LONG = 10**13
"""More than anybody asks for."""
PACES = st.integers(0, 10**9)
SEEDS = st.integers().map(random.Random)
NUMBERS = st.integers(1, 10**6)


class Fixed(random.Random):
    """Chance that always falls to the same side."""

    def __init__(self, side: float) -> None:
        super().__init__(0)
        self._side = side

    def uniform(self, a: float, b: float) -> float:
        return a + (b - a) * self._side


LOW, MIDDLE, HIGH = Fixed(0.0), Fixed(0.5), Fixed(1.0)


@given(PACES)
def test_the_window_is_a_twentieth_within_bounds(pace: int) -> None:
    assert 20 <= start_window(pace) <= 200
    if 400 <= pace <= 4000:
        assert start_window(pace) == pace // 20


@given(PACES, PACES)
def test_windows_and_allowances_grow_with_the_pace(one: int, other: int) -> None:
    slow, fast = max(one, other), min(one, other)
    assert start_window(fast) <= start_window(slow)
    assert transit_allowance(fast) <= transit_allowance(slow)


@given(st.integers(1, 10**9))
def test_an_allowance_is_a_quarter_of_its_delay_or_more(delay: int) -> None:
    assert transit_allowance(delay) == max(250, delay // 4)


def test_without_a_delay_nothing_is_allowed_for() -> None:
    assert transit_allowance(0) == 0


@given(NUMBERS, SEEDS)
def test_a_retry_waits_within_a_quarter_of_its_doubling(attempts: int, chance: random.Random) -> None:
    exact = min(RETRY_FIRST * 2 ** min(attempts - 1, 30), RETRY_MOST)
    assert 0.75 * exact - 1 <= retry_wait(attempts, chance) <= 1.25 * exact + 1


@given(NUMBERS, SEEDS)
def test_a_backoff_is_never_shorter_than_its_doubling_and_at_most_a_tenth_longer(
    penalty: int, chance: random.Random
) -> None:
    exact = min(BACKOFF_FIRST * 2 ** min(penalty - 1, 30), BACKOFF_MOST)
    assert exact <= backoff(penalty, chance) <= 1.1 * exact + 1


@given(NUMBERS)
def test_waits_never_shrink(number: int) -> None:
    assert retry_wait(number, MIDDLE) <= retry_wait(number + 1, MIDDLE)
    assert backoff(number, MIDDLE) <= backoff(number + 1, MIDDLE)


def test_the_jitter_reaches_both_ends() -> None:
    assert (retry_wait(1, LOW), retry_wait(1, HIGH)) == (1500, 2500)
    assert (backoff(1, LOW), backoff(1, HIGH)) == (60_000, 66_000)
    assert len({retry_wait(1, random.Random(seed)) for seed in range(50)}) > 40


@given(st.integers(0, 10**9))
def test_seconds_are_taken_at_their_word(seconds: int) -> None:
    assert retry_after(str(seconds), NOW, LONG) == seconds * 1000
    assert retry_after(f"  {seconds}\t", NOW, LONG) == seconds * 1000


@pytest.mark.parametrize("asked", [str(10**12), "9" * 500, "Fri, 31 Dec 2058 23:59:59 GMT"])
def test_no_answer_closes_a_site_for_years(asked: str) -> None:
    assert retry_after(asked, NOW) == MAX_BACKOFF == 24 * 3_600_000
    assert retry_after(asked, NOW, 5_000) == 5_000


@given(st.integers(-(10**8), 10**9))
def test_a_date_is_waited_for_and_never_undercut(seconds: int) -> None:
    wait = retry_after(formatdate(NOW / 1000 + seconds, usegmt=True), NOW, LONG)
    assert wait is not None
    assert max(0, seconds * 1000) <= wait <= max(0, seconds * 1000) + 1


@given(st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1), timezones=st.timezones()))  # noqa: DTZ001
def test_a_date_of_any_time_zone(moment: datetime) -> None:
    wait = retry_after(format_datetime(moment), NOW, LONG)
    assert wait is not None
    exact = (moment.astimezone(UTC).replace(microsecond=0) - datetime.fromtimestamp(NOW / 1000, UTC)).total_seconds()
    assert abs(wait - max(0, exact * 1000)) <= 60_000  # zones of long ago have seconds, which the header cannot say


@given(st.text())
@example("1" * 5000)
@example("٣")
@example("²")
@example("Mon, 99 Foo 0000 99:99:99 GMT")
@example("Fri, 31 Dec 9999 23:59:59 -2359")
@example("Mon, 01 Jan 0001 00:00:00 +2359")
@example("Thu, 01 Jan 1970 00:00:00 +99999999999")
@example("\ud800")
def test_a_retry_after_is_something_or_nothing_but_never_an_error(value: str) -> None:
    wait = retry_after(value, NOW)
    assert wait is None or 0 <= wait < 2**53


@pytest.mark.parametrize("value", [None, "", " ", "-5", "1.5", "soon", "5 s", "+5"])
def test_what_says_nothing_usable(value: str | None) -> None:
    assert retry_after(value, NOW) is None


def test_a_year_that_no_number_can_hold() -> None:
    assert retry_after("Tue, 01 Jan 99999999999999999999 00:00:00 GMT", NOW) is None
