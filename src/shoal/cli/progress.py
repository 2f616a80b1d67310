"""What a person sees while a run goes on: a live line on a terminal, a plain line now and then in a log."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Protocol, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.text import Text

from shoal.cli.rate import Pace
from shoal.cli.text import count, duration
from shoal.clock import Clock, SystemClock

if TYPE_CHECKING:
    from shoal.cli.estimate import Estimate
    from shoal.eta import PoliteETA
    from shoal.frontier.protocol import Run
    from shoal.frontier.reading import Reader

OUTLOOK_EVERY = 3000.0
"""Milliseconds between two looks at all sites of a run."""


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
    """A bar and a line that are redrawn in place. Whatever else is written to stderr appears above them."""

    def __init__(self, console: Console, clock: Clock, *, interval: float = 0.25) -> None:
        self.interval = interval
        self._clock = clock
        self._pace = Pace()
        self._began = clock.elapsed()
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._live.start()

    def update(self, run: Run, eta: PoliteETA | None = None) -> None:
        now = self._clock.elapsed()
        self._pace.add(now / 1000, run.counters)
        line = progress_line(run, self._pace, (now - self._began) / 1000, eta)
        ended = run.counters.accepted - run.counters.remaining
        bar = ProgressBar(total=max(run.counters.accepted, 1), completed=ended, width=40)
        self._live.update(Group(bar, Text(f"{run.scraper}  {line}", overflow="ellipsis", no_wrap=True)), refresh=True)

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


def progress_line(run: Run, pace: Pace, seconds: float, eta: PoliteETA | None = None) -> str:
    """Where a run stands, in one line. What is zero and would worry nobody is left out."""
    counters = run.counters
    parts = [count(counters.done, "page"), f"{pace.rate:.1f}/s", count(counters.items, "item")]
    parts.append(f"{counters.waiting:,} waiting")
    parts += [
        f"{number:,} {word}" for number, word in ((counters.retries, "retried"), (counters.dead, "dead")) if number
    ]
    parts.append(duration(seconds))
    if pace.eta is not None:
        parts.append(f"about {duration(pace.eta)} left")
    if eta is not None and eta.left >= 1000:
        parts.append(f"at least {duration(eta.left / 1000)} for {eta.site}")
    return ", ".join(parts)


class _Outlook:
    """How long a run takes at least, looked at every few seconds, and for a small share of the time."""

    def __init__(self, estimate: Estimate | None, clock: Clock) -> None:
        self._estimate = estimate
        self._clock = clock
        self._next_at = -1.0
        self._known: PoliteETA | None = None

    async def of(self, run: Run) -> PoliteETA | None:
        began = self._clock.elapsed()
        if self._estimate is not None and began >= self._next_at:
            self._known = await self._estimate(run)
            ended = self._clock.elapsed()
            self._next_at = ended + max(OUTLOOK_EVERY, 20 * (ended - began))
        return self._known


async def follow(reader: Reader, run_id: str, display: Display, estimate: Estimate | None = None) -> None:
    """Feed a display with snapshots until cancelled. `estimate`: what says how long it takes at least."""
    outlook = _Outlook(estimate, SystemClock())
    while True:
        run = await reader.run(run_id)
        display.update(run, await outlook.of(run))
        await asyncio.sleep(display.interval)


async def follow_to_end(reader: Reader, run_id: str, display: Display, estimate: Estimate | None = None) -> Run:
    """Feed a display until the run has ended, whoever works on it. Answers the last snapshot."""
    interval = min(display.interval, 5.0)
    outlook = _Outlook(estimate, SystemClock())
    try:
        while True:
            run = await reader.run(run_id)
            display.update(run, await outlook.of(run))
            if run.ended_at is not None:
                return run
            await asyncio.sleep(interval)
    finally:
        display.close()
