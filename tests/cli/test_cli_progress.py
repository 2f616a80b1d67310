"""Progress: what is said about a run while it goes on, and when."""

from __future__ import annotations

import io

import msgspec
import pytest
from rich.console import Console

from shoal.cli.output.progress import (
    LiveLine,
    Outlook,
    PlainLines,
    Silent,
    display_for,
    fitting,
    progress_line,
    progress_parts,
)
from shoal.cli.output.rate import Pace
from shoal.cli.output.summary import summary
from shoal.cli.output.text import duration, plain, size, table
from shoal.core.task import Policy, RunState
from shoal.frontier.contract.frontier import Counters, Run
from shoal.insight.polite_eta import PoliteETA
from shoal.runs.command_line import CommandLine
from shoal.runs.results import ResultStatus, RunResult, status_of
from shoal.testing.jump_clock import JumpClock


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


ETA = PoliteETA("a-rather-long-name.shop.example:8080", 1200, 5000, 1000, 1)


@pytest.mark.parametrize("width", [40, 60, 80, 120, 300])
def test_a_line_is_never_cut_whatever_the_width(width: int) -> None:
    pace = Pace()
    pace.add(0, Counters(done=0, waiting=2_400_000))
    pace.add(10, Counters(done=1_200_000, waiting=1_200_000))
    run = run_with(done=1_234_567, items=1_234_567, waiting=1_200_000, retries=12_345, dead=12_345)
    parts = progress_parts(run, pace, 8000, ETA)
    line = fitting("books", parts, width)
    assert len(line) <= width
    assert set(line.removeprefix("books  ").split(", ")) <= set(parts), "parts are whole or not there"
    assert "1,234,567 pages" in line
    assert "about 10s left" in line, "the end matters more than retries"
    assert (line == f"books  {', '.join(parts)}") == (width == 300)


def test_the_live_line_fits_its_terminal() -> None:
    terminal = Terminal()
    live = LiveLine(Console(file=terminal, width=40, force_terminal=True), JumpClock())
    live.update(run_with(done=12_345, items=12_345, waiting=67_890, retries=5), ETA)
    live.close()
    assert "…" not in terminal.getvalue()
    assert "12,345 pages, 67,890 waiting" in terminal.getvalue()


def test_about_is_never_less_than_at_least() -> None:
    pace = Pace()
    pace.add(0, Counters(done=0, waiting=100))
    pace.add(10, Counters(done=70, waiting=30))
    line = progress_line(run_with(done=70, waiting=30), pace, 10, ETA)
    assert pace.eta == pytest.approx(4.3, abs=0.1)
    assert "about 5.0s left, at least 5.0s for" in line


def test_a_paused_run_has_no_end_in_sight() -> None:
    pace = Pace()
    pace.add(0, Counters(done=0, waiting=100))
    pace.add(10, Counters(done=70, waiting=30))
    line = progress_line(msgspec.structs.replace(run_with(done=70, waiting=30), state=RunState.PAUSED), pace, 10, ETA)
    assert line == "70 pages, paused, 0 items, 30 waiting, 10s"


def test_the_bar_never_goes_back() -> None:
    shares: list[float] = []
    live = LiveLine(Console(file=Terminal(), width=80), JumpClock())
    for done, waiting in ((0, 1), (1, 1), (2, 40), (30, 12)):
        live.update(run_with(done=done, waiting=waiting))
        shares.append(live.share)
    live.close()
    assert shares == [0, 0.5, 0.5, pytest.approx(30 / 42)]


async def test_what_it_takes_at_least_shrinks_between_two_looks() -> None:
    clock, looks = JumpClock(), []

    async def estimate(_run: Run) -> PoliteETA:
        looks.append(clock.elapsed())
        return ETA

    outlook = Outlook(estimate, clock)
    first = await outlook.of(run_with(waiting=5))
    clock.advance(2000)
    second = await outlook.of(run_with(waiting=5))
    assert first is not None
    assert second is not None
    assert (first.left, second.left, len(looks)) == (5000, 3000, 1)


def test_what_was_left_out_is_told_by_its_reason() -> None:
    run = status_of(run_with(done=10, refused=12, dropped=3))
    result = RunResult(
        status=ResultStatus.FINISHED,
        enqueued=1,
        run=run,
        refused_by={"outside of allow": 7, "deeper than max_depth": 2},
        dropped_by={"robots.txt": 3},
    )
    text = summary(run, CommandLine(), result=result, seconds=5.0)
    assert "refused   12  (2 deeper than max_depth; 7 outside of allow; 3 by others or before)" in text
    assert "dropped   3  (robots.txt)" in text


def test_a_log_gets_whole_lines() -> None:
    stream, clock = io.StringIO(), JumpClock()
    display = PlainLines(stream, clock)
    display.update(run_with(waiting=1))
    assert stream.getvalue() == "", "nothing has happened yet"
    clock.advance(5000)
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
    text = summary(
        status_of(run_with(done=10, dead=2, dropped=1, snoozes=3, received=2_500_000, requests=13)),
        CommandLine(),
        seconds=5.0,
    )
    assert "dead             2  (see `shoal dead list books-1`)" in text
    assert "limited or down  3 times, waited for" in text
    once = summary(status_of(run_with(done=1, snoozes=1)), CommandLine(), seconds=5.0)
    assert "limited or down  1 time, waited for" in once
    assert "2.5 MB in 13 requests" in text
    assert "(2.0 pages/s)" in text
    assert "expired" not in text
    waiting = summary(status_of(run_with({"files": 4}, done=1, waiting=4)), CommandLine(), seconds=None)
    assert "files waiting  4" in waiting
    assert "4 waiting, 0 in work (files 4)" in waiting


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.05, "0.05s"),
        (0.44, "0.4s"),
        (9.94, "9.9s"),
        (12.4, "12s"),
        (65, "1m 05s"),
        (7810, "2h 10m"),
        (90000, "1d 1h"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_sizes_tables_and_foreign_text() -> None:
    assert [size(999), size(1000), size(10**7), size(10**13)] == ["999 B", "1.0 kB", "10.0 MB", "10.0 TB"]
    assert table(("name", "n"), [("a", 1), ("long", 20)]) == "NAME   N\na      1\nlong  20"
    assert plain("a\x1b[2Jb\nc\u202ed") == "a·[2Jb·c·d"
