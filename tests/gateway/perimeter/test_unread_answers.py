"""Answers that nobody takes: how many bytes of them, and for how long."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.gateway.perimeter.unread_answers import DROPPED_AFTER, SLOWEST, TAKE_WITHIN, TakingWatch, UnreadAnswers
from shoal.testing.jump_clock import JumpClock


class Line:
    """As much of a transport as is asked about unread bytes."""

    def __init__(self, unread: int) -> None:
        self.unread = unread
        self.aborted = False

    def get_write_buffer_size(self) -> int:
        return self.unread

    def abort(self) -> None:
        self.aborted = True


def test_there_is_room_for_so_many_bytes() -> None:
    unread = UnreadAnswers(JumpClock(), most=1000)
    line: Any = Line(600)
    unread.stalled(line)
    assert unread.room_for(400)
    assert not unread.room_for(401)
    unread.taken(line)
    assert unread.room_for(401)
    assert not line.aborted


def test_who_is_behind_for_long_makes_room_for_others_the_longest_first() -> None:
    clock = JumpClock()
    unread = UnreadAnswers(clock, most=1000)
    lines: list[Any] = [Line(400), Line(400), Line(100)]
    for line in lines[:2]:
        unread.stalled(line)
    clock.advance(int(DROPPED_AFTER * 1000))
    unread.stalled(lines[2])
    assert unread.room_for(500)
    assert [line.aborted for line in lines] == [True, False, False]
    assert not unread.room_for(901), "not at the expense of who has only just fallen behind"
    assert [line.aborted for line in lines] == [True, True, False]


WHILE = TAKE_WITHIN * 1000


@pytest.mark.parametrize(
    ("looks", "over"),
    [
        ([(0, 100_000), (WHILE - 1, 100_000)], False),
        ([(0, 100_000), (WHILE, 100_000)], True),
        ([(0, 100_000), (WHILE, 100_000 - SLOWEST * TAKE_WITHIN)], False),
        ([(0, 100_000), (WHILE, 100_001 - SLOWEST * TAKE_WITHIN)], True),
        ([(0, 100), (WHILE / 2, 0), (WHILE, 100)], False),
        ([(0, 100), (WHILE, 99)], True),
    ],
)
def test_a_client_takes_enough_or_its_time_is_over(looks: list[tuple[float, int]], over: bool) -> None:
    watch = TakingWatch()
    assert [watch.is_over(int(unread), now) for now, unread in looks][-1] is over


def test_a_stream_that_flows_is_never_over() -> None:
    watch = TakingWatch()
    for look in range(10):
        assert not watch.is_over(60_000, look * WHILE)
        watch.caught_up()
