"""Jitter for Retry-After: clients that are turned away come back one after the other, and not all at once."""

from __future__ import annotations

from shoal.core.clock import Clock
from shoal.gateway.http.answer import Answer, Problem, retry_after

SUBMISSIONS, LOOKS = 500.0, 2000.0
"""How many of those who were turned away one process asks to come back in each second: looks are cheaper, and whoever
looks has waited already."""

LONGEST = 60.0
RETRY_AFTER = b"retry-after"


class RetrySpread:
    """Gives everybody who is turned away a moment of their own, as far ahead as need be."""

    def __init__(self, per_second: float, clock: Clock) -> None:
        self._step = 1 / per_second
        self._clock = clock
        self._next = 0.0

    def answer(self, problem: Problem) -> Answer:
        """The problem as it is sent, with when to come back: not before it says itself."""
        answer = problem.answer()
        least = next((int(value) for name, value in answer.headers if name == RETRY_AFTER), 1)
        others = tuple(pair for pair in answer.headers if pair[0] != RETRY_AFTER)
        return answer._replace(headers=(*others, retry_after(max(least, self.seconds()))))

    def seconds(self) -> float:
        """When the next one should come back."""
        now = self._clock.elapsed() / 1000
        self._next = min(max(self._next, now) + self._step, now + LONGEST)
        return self._next - now
