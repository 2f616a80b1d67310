"""How an outage goes on: since when, how often, until when."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from shoal.core.politeness import (
    ASIDE_FIRST,
    ASIDE_MOST,
    OUTAGE_FIRST,
    OUTAGE_MOST,
    Outage,
    aside,
    goes_on,
    outage_wait,
)

NOW = 1_700_000_000_000
SEEDS = st.integers().map(random.Random)


@given(SEEDS)
def test_each_look_that_has_waited_doubles_the_wait_up_to_the_most(chance: random.Random) -> None:
    outage, now, waits = None, NOW, []
    for _ in range(10):
        outage = goes_on(outage, now, chance)
        waits.append(outage.until - now)
        now = outage.until
    assert outage is not None
    assert (outage.since, outage.times) == (NOW, 10)
    for number, wait in enumerate(waits):
        plain = min(OUTAGE_FIRST << number, OUTAGE_MOST)
        assert plain <= wait <= 1.25 * plain


@given(SEEDS, st.lists(st.integers(0, OUTAGE_FIRST - 1), max_size=20))
def test_failures_that_were_under_way_together_count_once(chance: random.Random, after: list[int]) -> None:
    outage = goes_on(None, NOW, chance)
    for moment in sorted(after):
        outage = goes_on(outage, NOW + moment, chance)
    assert (outage.since, outage.times) == (NOW, 1)
    assert outage.until <= NOW + max([0, *after]) + 1.25 * OUTAGE_FIRST


@given(SEEDS, st.integers(1, 10**6), st.integers(0, 10**12))
def test_it_never_ends_earlier_and_began_when_it_began(chance: random.Random, times: int, later: int) -> None:
    before = Outage(NOW, times, NOW + 1000)
    after = goes_on(before, NOW + later, chance)
    assert after.since == NOW
    assert after.until >= max(before.until, NOW + later)
    assert after.times - before.times == (1 if later >= 1000 else 0)


@given(st.integers(1, 10**9), SEEDS, st.integers(0, 10**7), st.integers(0, 10**9))
def test_waits_are_bounded_whatever_is_counted(times: int, chance: random.Random, delay: int, limits: int) -> None:
    assert OUTAGE_FIRST <= outage_wait(times, chance) <= 1.25 * OUTAGE_MOST
    assert max(delay, ASIDE_FIRST) <= aside(delay, limits) <= max(delay, ASIDE_MOST)
