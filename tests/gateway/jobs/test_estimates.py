"""How long a job will take, and how often to ask."""

from __future__ import annotations

import pytest

from shoal.frontier.contract.jobs import Backlog
from shoal.gateway.jobs.estimates import ask_again, estimate, own_work


class TestPace:
    def test_by_the_pace_of_the_last_minute(self) -> None:
        assert estimate(601, 5, Backlog("q", 700, 300)) == pytest.approx(125)

    def test_without_any_pace_everybody_takes_as_long_as_oneself(self) -> None:
        assert estimate(4, 5, None) == estimate(4, 5, Backlog("q", 9, 0)) == 20
        assert estimate(1, 5, None) == 5

    def test_own_work_is_paced_by_the_delay(self) -> None:
        assert own_work(3, 1000, 1) == 3
        assert own_work(0, 1000, 1) == 1

    def test_hints_grow_with_the_wait(self) -> None:
        hints = [ask_again(seconds) for seconds in (0, 5, 20, 100, 299, 5000)]
        assert hints == sorted(hints)
        assert (hints[0], hints[2], hints[-1]) == (1, 2, 30)
