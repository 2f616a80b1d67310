"""Progress: what is said about a run while it goes on, and when."""

from __future__ import annotations

import io

import pytest

from shoal.cli.progress import LiveLine, PlainLines, Silent, display_for, progress_line
from shoal.cli.rate import Pace
from shoal.cli.summary import summary
from shoal.cli.text import duration, plain, size, table
from shoal.frontier.protocol import Counters, Run
from shoal.task import Policy, RunState


class SetClock:
    """A clock that stands where it is put. Milliseconds."""

    def __init__(self) -> None:
        self.at = 0.0

    def now(self) -> int:
        return int(self.at)

    def elapsed(self) -> float:
        return self.at


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def run_with(lanes: dict[str, int] | None = None, **counters: int) -> Run:
    return Run(
        "books-1", "books", "single", RunState.RUNNING, "q", Policy(), None, 0, None, Counters(**counters), lanes or {}
    )


def test_the_rate_is_that_of_the_last_seconds() -> None:
    pace = Pace(window=10)
    pace.add(0, Counters(done=0, waiting=100))
    pace.add(100, Counters(done=1000, waiting=100))
    pace.add(105, Counters(done=1010, waiting=100))
    pace.add(110, Counters(done=1020, waiting=100))
    pace.add(111, Counters(done=1022, waiting=100))
    assert pace.rate == pytest.approx(2.0)


def test_how_long_it_takes_is_known_only_while_the_work_shrinks() -> None:
    growing, shrinking = Pace(), Pace()
    for second in range(5):
        growing.add(second, Counters(done=second, waiting=10 + second))
        shrinking.add(second, Counters(done=second, waiting=100 - second * 2))
    assert growing.eta is None
    assert shrinking.eta == pytest.approx(92 / 2)
    assert Pace().eta is None
    assert Pace().rate == 0


def test_a_line_says_what_matters_and_leaves_out_what_is_zero() -> None:
    pace = Pace()
    assert (
        progress_line(run_with(done=1, items=0, waiting=1200), pace, 3) == "1 page, 0.0/s, 0 items, 1,200 waiting, 3.0s"
    )
    line = progress_line(run_with(done=5, retries=2, dead=1), pace, 75)
    assert "2 retried, 1 dead, 1m 15s" in line


def test_a_log_gets_whole_lines() -> None:
    stream, clock = io.StringIO(), SetClock()
    display = PlainLines(stream, clock)
    display.update(run_with(waiting=1))
    assert stream.getvalue() == "", "nothing has happened yet"
    clock.at = 5000
    display.update(run_with(done=10, items=9, waiting=3))
    assert stream.getvalue() == "books: 10 pages, 2.0/s, 9 items, 3 waiting, 5.0s\n"


def test_the_display_suits_where_it_is_shown() -> None:
    assert isinstance(display_for(io.StringIO()), PlainLines)
    assert isinstance(display_for(Terminal(), quiet=True), Silent)
    terminal = Terminal()
    live = display_for(terminal)
    assert isinstance(live, LiveLine)
    live.update(run_with(done=7))
    live.close()
    live.close()
    assert "7 pages" in terminal.getvalue()
    assert terminal.getvalue().rindex("\x1b[?25h") > terminal.getvalue().rindex("\x1b[?25l"), "the cursor is back"


def test_the_summary_names_what_needs_attention() -> None:
    text = summary(run_with(done=10, dead=2, dropped=1, snoozes=3, received=2_500_000, requests=13), seconds=5.0)
    assert "dead          2  (see `shoal dead list books-1`)" in text
    assert "rate limited  3 times, waited for" in text
    assert "2.5 MB in 13 requests" in text
    assert "(2.0 pages/s)" in text
    assert "expired" not in text
    waiting = summary(run_with({"files": 4}, done=1, waiting=4), seconds=None)
    assert "files waiting  4" in waiting
    assert "4 waiting, 0 in work (files 4)" in waiting


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.44, "0.4s"), (9.94, "9.9s"), (12.4, "12s"), (65, "1m 05s"), (7810, "2h 10m"), (90000, "1d 1h")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_sizes_tables_and_foreign_text() -> None:
    assert [size(999), size(1000), size(10**7), size(10**13)] == ["999 B", "1.0 kB", "10.0 MB", "10.0 TB"]
    assert table(("name", "n"), [("a", 1), ("long", 20)]) == "NAME   N\na      1\nlong  20"
    assert plain("a\x1b[2Jb\nc\u202ed") == "a·[2Jb·c·d"
