"""Who is away, the sites or this worker: by what was reached and what was not."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from shoal.core.politeness import OFFLINE_AFTER, OFFLINE_FIRST, OFFLINE_MOST
from shoal.work.connectivity import Connectivity, Reachability

SITES = st.sampled_from([f"{letter}.example" for letter in "abcdef"])
EVENTS = st.lists(st.tuples(st.booleans(), SITES, st.integers(0, 5000)), max_size=60)


def connectivity() -> Connectivity:
    return Connectivity(random.Random(1))


def test_several_sites_in_a_row_and_none_reached_is_this_worker() -> None:
    known = connectivity()
    verdicts = [known.failed(f"{n}.example", float(n)) for n in range(OFFLINE_AFTER + 2)]
    assert verdicts == [Reachability.UNKNOWN] * (OFFLINE_AFTER - 1) + [Reachability.WORKER] * 3
    assert known.is_offline


def test_a_site_that_is_out_of_reach_again_is_away_itself() -> None:
    known = connectivity()
    assert [known.failed("a.example", float(n)) for n in range(3)] == [
        Reachability.UNKNOWN,
        Reachability.SITE,
        Reachability.SITE,
    ]


def test_where_others_are_reached_the_site_is_away() -> None:
    known = connectivity()
    for n in range(20):
        known.failed(f"{n}.example", float(n))
        known.reached("here.example")
    assert not known.is_offline
    assert [known.failed(f"{n}.example", 99.0) for n in range(20)] == [Reachability.SITE] * 20


def test_it_looks_again_more_and_more_rarely_until_it_reaches_one() -> None:
    known, now, waits = connectivity(), 0.0, list[float]()
    for n in range(OFFLINE_AFTER + 9):
        known.failed(f"{n}.example", now)
        if known.is_offline:
            waits.append(known.look_at - now)
            known.failed("together.example", now)  # one that was under way: no second look
            assert known.look_at - now == waits[-1]
            now = known.look_at
    assert OFFLINE_FIRST <= waits[0] <= 1.25 * OFFLINE_FIRST
    assert all(OFFLINE_MOST <= wait <= 1.25 * OFFLINE_MOST for wait in waits[6:])
    known.reached("a.example")
    assert (known.is_offline, known.look_at, known.missed) == (False, 0.0, 0)


@given(EVENTS)
def test_it_is_offline_exactly_while_enough_sites_fail_and_none_is_reached(
    events: list[tuple[bool, str, int]],
) -> None:
    """Against the plain words of it, for sites that had not failed before something was last reached."""
    known, now = connectivity(), 0.0
    stale: set[str] = set()
    fresh: set[str] = set()
    for reaches, site, later in events:
        now += later
        if reaches:
            known.reached(site)
            stale = (stale | fresh) - {site}
            fresh = set()
            assert not known.is_offline
            continue
        verdict = known.failed(site, now)
        if site in stale:
            assert verdict is Reachability.SITE
        else:
            again = site in fresh
            fresh.add(site)
            if len(fresh) >= OFFLINE_AFTER:
                assert verdict is Reachability.WORKER
            else:
                assert verdict is (Reachability.SITE if again else Reachability.UNKNOWN)
        assert known.is_offline == (len(fresh) >= OFFLINE_AFTER)
        assert known.missed == len(fresh)
