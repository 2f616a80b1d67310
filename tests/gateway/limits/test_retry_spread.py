"""When those come back who are turned away."""

from __future__ import annotations

from shoal.gateway.http.answer import unavailable
from shoal.gateway.limits.retry_spread import RetrySpread
from shoal.testing.jump_clock import JumpClock


def test_those_who_are_turned_away_come_back_one_after_the_other() -> None:
    clock = JumpClock()
    spread = RetrySpread(500, clock)
    told = [spread.answer(unavailable("overloaded", "Too much.", 2)) for _ in range(3000)]
    seconds = [int(dict(answer.headers)[b"retry-after"]) for answer in told]
    assert (seconds[0], seconds[-1]) == (2, 6)
    assert max(seconds.count(second) for second in set(seconds) - {2}) <= 500
    clock.advance(60_000)
    assert dict(spread.answer(unavailable("overloaded", "Too much.")).headers)[b"retry-after"] == b"1"
