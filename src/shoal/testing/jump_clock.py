"""A clock that stands still until it is told to jump, so that hours pass in no time and nothing depends on speed."""

from __future__ import annotations

import asyncio

from shoal.core.clock import Millis, Moment, millis

NOON: Moment = 1_700_000_000_000
"""Where a jumping clock starts unless told otherwise: an ordinary moment, far from 0."""


class JumpClock:
    """A `Clock` for tests: `now` and `elapsed` move by `advance` only, and always together.

    Who sleeps by it wakes when the clock has been moved far enough, and not before. A test that waits until somebody
    sleeps, and then moves the clock, depends on no speed: `await until(lambda: clock.sleeping)`, `clock.advance(…)`.
    """

    def __init__(self, start: Moment = NOON) -> None:
        self._start = start
        self._now = start
        self._sleepers: dict[asyncio.Future[None], Moment] = {}

    def now(self) -> Moment:
        return self._now

    def elapsed(self) -> float:
        return float(self._now - self._start)

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        awake: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers[awake] = self._now + millis(seconds)
        try:
            await awake
        finally:
            self._sleepers.pop(awake, None)

    @property
    def sleeping(self) -> tuple[Millis, ...]:
        """How long each sleeper has still to sleep, the next to wake first; empty while nobody sleeps."""
        return tuple(sorted(due - self._now for due in self._sleepers.values()))

    def advance(self, ms: Millis) -> None:
        """Jump ahead. Those whose time has come wake at the next turn of their loop. A clock never goes back."""
        if ms < 0:
            raise ValueError(f"A clock cannot go back by {-ms} ms.")
        self._now += ms
        for awake, due in list(self._sleepers.items()):
            if due <= self._now:
                del self._sleepers[awake]
                awake.get_loop().call_soon_threadsafe(_wake, awake)


def _wake(awake: asyncio.Future[None]) -> None:
    if not awake.done():
        awake.set_result(None)
