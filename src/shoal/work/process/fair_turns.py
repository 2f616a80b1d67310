"""Cooperative yielding: between two handlers that compute for long, everything else in the loop gets its turn."""

from __future__ import annotations

import asyncio

from shoal.core.clock import Clock, Millis

LONG: Millis = 20
"""A handler that takes longer than this has used up the turn of all."""


class FairTurns:
    """Answers that come in together would have their handlers run one after the other without a pause. If each of them
    computes for seconds, no lease is renewed and no answer is read meanwhile: so only one of that kind runs per turn.
    """

    __slots__ = ("_clock", "_used")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._used = False

    async def begin(self) -> float:
        """Wait for a turn. Answers when it began, to be handed to `end`."""
        while self._used:  # noqa: ASYNC110 - one round of the loop at a time is the point
            await asyncio.sleep(0)
        return self._clock.elapsed()

    def end(self, began: float) -> None:
        """Give up the turn."""
        if self._clock.elapsed() - began > LONG and not self._used:
            self._used = True
            asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        self._used = False
