from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from shoal.delivery.store_time import DRIFT, StoreTime

AHEAD = 1_700_000_000_000.0
span = st.floats(0, 500, allow_nan=False)
answers = st.lists(st.tuples(span, span, span, st.floats(-DRIFT / 2, DRIFT / 2)), min_size=1, max_size=30)


@given(answers)
def test_the_true_time_is_never_outside_of_what_is_believed(answers: list[tuple[float, float, float, float]]) -> None:
    """Whatever each way took, however long it was quiet in between, and while the store's clock is being corrected."""
    believed, elapsed, ahead = StoreTime(), 1000.0, AHEAD
    for quiet, there, back, drift in answers:
        sent = elapsed + quiet
        received = sent + there + back
        ahead += drift * (received - elapsed)
        elapsed = received
        believed.hear(sent, received, math.floor(sent + there + ahead))
        assert believed.shift - believed.slack - 0.5 <= ahead <= believed.shift + 0.5


@given(answers)
def test_no_answer_makes_less_known_than_it_tells_itself(answers: list[tuple[float, float, float, float]]) -> None:
    believed, elapsed = StoreTime(), 1000.0
    for quiet, there, back, _ in answers:
        sent, elapsed = elapsed + quiet, elapsed + quiet + there + back
        believed.hear(sent, elapsed, math.floor(sent + there + AHEAD))
        assert believed.slack <= there + back + 1.001


def test_a_slow_answer_does_not_make_unknown_what_a_quick_one_has_told() -> None:
    believed = StoreTime()
    believed.hear(1000, 1002, 5001)
    believed.hear(1010, 1510, 5011)
    assert believed.slack < 5
    assert 3998 <= believed.shift - believed.slack <= 4000 <= believed.shift <= 4003


def test_what_was_heard_before_the_stores_clock_was_set_is_forgotten() -> None:
    believed = StoreTime()
    believed.hear(1000, 1002, 5001)
    believed.hear(1010, 1020, 95_015)
    assert (believed.shift, believed.slack) == (94_006, 11)


def test_several_clocks_tell_nothing_about_each_other() -> None:
    believed = StoreTime()
    believed.hear(1000, 1002, 5001)
    believed.hear(1010, 1030, 5020, alone=True)
    assert (believed.shift, believed.slack) == (4011, 21)
