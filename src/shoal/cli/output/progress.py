"""The progress line: live on a terminal, a plain line now and then in a log."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, TextIO

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from shoal.cli.output.rate import Pace
from shoal.cli.output.text import count, duration
from shoal.core.clock import Clock, SystemClock
from shoal.core.task import RunState
from shoal.runs.follow import snapshots

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shoal.frontier.contract.frontier import Run
    from shoal.frontier.contract.reader import Reader
    from shoal.insight.polite_eta import PoliteETA
    from shoal.insight.run_eta import Estimate

OUTLOOK_EVERY = 3000.0
"""Milliseconds between two looks at all sites of a run."""

LONGEST_WAIT = 5.0
"""Seconds after which somebody who waits for the end of a run hears of it, at the latest."""


class Display(Protocol):
    """Shows snapshots of a run. `interval`: seconds between two that are worth taking."""

    interval: float

    def update(self, run: Run, eta: PoliteETA | None = None) -> None:
        """Show how it stands, and how long it takes at least, if that is known."""
        ...

    def close(self) -> None:
        """Clear what is not meant to stay. The second time: nothing."""
        ...


class Silent:
    """Shows nothing."""

    interval = 3600.0

    def update(self, run: Run, eta: PoliteETA | None = None) -> None: ...

    def close(self) -> None: ...


class Part(str):
    """Something that is said of a run. `rank`: the higher, the sooner it is left out; 0 = never."""

    __slots__ = ("rank",)

    rank: int

    def __new__(cls, text: str, rank: int) -> Part:
        part = super().__new__(cls, text)
        part.rank = rank
        return part


class PlainLines:
    """One line every few seconds, for a log or a pipe."""

    def __init__(self, stream: TextIO, clock: Clock, *, interval: float = 5.0) -> None:
        self.interval = interval
        self._stream = stream
        self._clock = clock
        self._pace = Pace()
        self._began = clock.elapsed()

    def update(self, run: Run, eta: PoliteETA | None = None) -> None:
        now = self._clock.elapsed()
        seconds = (now - self._began) / 1000
        self._pace.add(now / 1000, run.counters)
        if seconds >= 1:  # there is nothing to say yet
            self._stream.write(f"{run.scraper}: {progress_line(run, self._pace, seconds, eta)}\n")
            self._stream.flush()

    def close(self) -> None: ...


class LiveLine:
    """A bar and a line that are redrawn in place. Whatever else is written to stderr appears above them.

    The bar never goes back: while more is found than done it stands still.
    """

    def __init__(self, console: Console, clock: Clock, *, interval: float = 0.25) -> None:
        self.interval = interval
        self._clock = clock
        self._pace = Pace()
        self._began = clock.elapsed()
        self._console = console
        self.share = 0.0
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._live.start()

    def update(self, run: Run, eta: PoliteETA | None = None) -> None:
        now = self._clock.elapsed()
        self._pace.add(now / 1000, run.counters)
        width = self._console.width
        parts = progress_parts(run, self._pace, (now - self._began) / 1000, eta)
        line = fitting(run.scraper, parts, width - 1)
        accepted = max(run.counters.accepted, 1)
        self.share = max(self.share, (accepted - run.counters.remaining) / accepted if run.counters.accepted else 0.0)
        bar = ProgressBar(total=1.0, completed=self.share, width=min(40, width - 1))
        lines = Table.grid()  # a bar does not end its line: what follows it in a Group stands beside it
        lines.add_row(bar)
        lines.add_row(Text(line, overflow="ellipsis", no_wrap=True))
        self._live.update(lines, refresh=True)

    def close(self) -> None:
        self._live.stop()


def display_for(stream: TextIO | None = None, *, quiet: bool = False, clock: Clock | None = None) -> Display:
    """The display that suits where stderr leads to."""
    stream = stream or sys.stderr
    clock = clock or SystemClock()
    if quiet:
        return Silent()
    if stream.isatty():
        return LiveLine(Console(file=stream), clock)
    return PlainLines(stream, clock)


def progress_parts(run: Run, pace: Pace, seconds: float, eta: PoliteETA | None = None) -> list[Part]:
    """Where a run stands, in parts of one line. What is zero and would worry nobody is left out.

    A run that is paused has no rate and no end. What it takes "about" is never less than what it takes "at least".
    """
    counters = run.counters
    parts = [Part(count(counters.done, "page"), 0)]
    if run.state is RunState.PAUSED:
        parts.append(Part("paused", 0))
    else:
        parts.append(Part(f"{pace.rate:.1f}/s", 3))
    parts += [Part(count(counters.items, "item"), 2), Part(f"{counters.waiting:,} waiting", 1)]
    parts += [
        Part(f"{number:,} {word}", rank)
        for number, word, rank in ((counters.retries, "retried", 4), (counters.dead, "dead", 1))
        if number
    ]
    parts.append(Part(duration(seconds), 5))
    if run.state is RunState.PAUSED:
        return parts
    least = 0.0 if eta is None or eta.left < 1000 else eta.left / 1000
    if pace.eta is not None:
        parts.append(Part(f"about {duration(max(pace.eta, least))} left", 1))
    if eta is not None and least:
        parts.append(Part(f"at least {duration(least)} for {eta.site}", 6))
    return parts


def progress_line(run: Run, pace: Pace, seconds: float, eta: PoliteETA | None = None) -> str:
    """The same in one line, however long."""
    return ", ".join(progress_parts(run, pace, seconds, eta))


def fitting(head: str, parts: Sequence[Part], width: int) -> str:
    """As many parts in one line as there is room for: those go first that matter least, and then the head."""
    kept = list(parts)
    while True:
        line = f"{head}  {', '.join(kept)}" if head else ", ".join(kept)
        if len(line) <= width:
            return line
        if (least := max(kept, key=lambda part: part.rank)).rank > 0:
            kept.remove(least)
        elif head:
            head = ""
        else:
            return line


class Outlook:
    """How long a run takes at least, looked at every few seconds, and for a small share of the time."""

    def __init__(self, estimate: Estimate | None, clock: Clock) -> None:
        self._estimate = estimate
        self._clock = clock
        self._next_at = -1.0
        self._known: PoliteETA | None = None
        self._known_at = 0.0

    async def of(self, run: Run) -> PoliteETA | None:
        began = self._clock.elapsed()
        if self._estimate is not None and began >= self._next_at:
            self._known = await self._estimate(run)
            self._known_at = ended = self._clock.elapsed()
            self._next_at = ended + max(OUTLOOK_EVERY, 20 * (ended - began))
        if self._known is None:
            return None
        passed = round(self._clock.elapsed() - self._known_at)
        return replace(self._known, left=max(0, self._known.left - passed))


async def follow(reader: Reader, run_id: str, display: Display, clock: Clock, estimate: Estimate | None = None) -> None:
    """Feed a display with snapshots until cancelled. `estimate`: what says how long it takes at least."""
    outlook = Outlook(estimate, clock)
    async for run in snapshots(reader, run_id, clock, display.interval):
        display.update(run, await outlook.of(run))


async def follow_to_end(
    reader: Reader, run_id: str, display: Display, clock: Clock, estimate: Estimate | None = None
) -> Run:
    """Feed a display until the run has ended, whoever works on it. Answers the last snapshot."""
    outlook = Outlook(estimate, clock)
    try:
        async for run in snapshots(reader, run_id, clock, min(display.interval, LONGEST_WAIT)):
            display.update(run, await outlook.of(run))
            if run.ended_at is not None:
                return run
    finally:
        display.close()
    raise AssertionError("snapshots never end")
