"""How often the holder of a key may look."""

from __future__ import annotations

import pytest

from shoal.gateway.http.answer import Problem
from shoal.gateway.limits.keys import ANYBODY, ApiKey, Scope
from shoal.gateway.limits.read_quota import ReadQuota
from shoal.testing.jump_clock import JumpClock


def test_looks_begin_anew_with_each_minute() -> None:
    clock = JumpClock(600_000)
    reads = ReadQuota(clock)
    key = ApiKey("key_1", "ada", "", (Scope.READ,), 0, reads=2)
    for _ in range(2):
        reads.spend(key)
    clock.advance(59_900)
    with pytest.raises(Problem) as caught:
        reads.spend(key)
    assert (b"retry-after", b"1") in caught.value.headers
    assert reads.spend(ANYBODY) == ()
    clock.advance(100)
    assert reads.spend(key)[1] == (b"ratelimit", b'"reads";r=1;t=60')
