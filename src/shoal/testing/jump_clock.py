"""A clock that stands still until it is told to jump, so that hours pass in no time and nothing depends on speed."""

from __future__ import annotations

from shoal.clock import Millis, Moment

NOON: Moment = 1_700_000_000_000
"""Where a jumping clock starts unless told otherwise: an ordinary moment, far from 0."""


class JumpClock:
    """A `Clock` for tests: `now` and `elapsed` move by `advance` only, and always together."""

    def __init__(self, start: Moment = NOON) -> None:
        self._start = start
        self._now = start

    def now(self) -> Moment:
        return self._now

    def elapsed(self) -> float:
        return float(self._now - self._start)

    def advance(self, ms: Millis) -> None:
        """Jump ahead. A clock never goes back."""
        if ms < 0:
            raise ValueError(f"A clock cannot go back by {-ms} ms.")
        self._now += ms
