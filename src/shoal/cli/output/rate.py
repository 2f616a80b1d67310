"""Throughput and ETA of a run, from what was seen of it lately."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from shoal.frontier.contract.frontier import Counters


class _Sample(NamedTuple):
    at: float
    ended: int
    remaining: int


class Pace:
    """A window over the last snapshots. Times are seconds of one clock that never goes back."""

    def __init__(self, window: float = 15.0) -> None:
        self._window = window
        self._samples: deque[_Sample] = deque()

    def add(self, at: float, counters: Counters) -> None:
        """Take a snapshot into account and forget those that left the window."""
        self._samples.append(_Sample(at, counters.accepted - counters.remaining, counters.remaining))
        while len(self._samples) > 2 and self._samples[1].at < at - self._window:
            self._samples.popleft()

    @property
    def rate(self) -> float:
        """Tasks that ended, per second; 0 while nothing can be said."""
        first, last = self._ends()
        return (last.ended - first.ended) / (last.at - first.at) if last.at > first.at else 0.0

    @property
    def eta(self) -> float | None:
        """Seconds until nothing remains; None while more is found than finished, or too little was seen."""
        first, last = self._ends()
        shrunk, passed = first.remaining - last.remaining, last.at - first.at
        if passed < 1.0 or shrunk <= 0 or last.remaining == 0:
            return None
        return last.remaining * passed / shrunk

    def _ends(self) -> tuple[_Sample, _Sample]:
        if not self._samples:
            return _Sample(0, 0, 0), _Sample(0, 0, 0)
        return self._samples[0], self._samples[-1]
