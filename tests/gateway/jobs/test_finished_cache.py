"""Documents of jobs that have ended are kept for a moment, and not for longer."""

from __future__ import annotations

from shoal.core.task import RunState
from shoal.frontier.contract.frontier import Counters
from shoal.frontier.contract.jobs import JobStatus
from shoal.gateway.jobs.finished_cache import BYTES, KEPT, FinishedCache
from shoal.testing.jump_clock import JumpClock


def ended(job_id: str) -> JobStatus:
    return JobStatus(job_id, 1, 1, "cart", "", RunState.FINISHED, Counters(), 0, 0, None, 0)


def test_a_document_is_kept_for_a_moment() -> None:
    clock = JumpClock()
    cache = FinishedCache(clock)
    cache.put(ended("cart-1"), b"{}")
    clock.advance(KEPT - 1)
    found = cache.get("cart-1")
    assert found is not None
    assert found.body == b"{}"
    clock.advance(1)
    assert cache.get("cart-1") is None


def test_what_was_dropped_is_not_kept() -> None:
    cache = FinishedCache(JumpClock())
    cache.put(ended("cart-1"), b"{}")
    cache.drop("cart-1")
    cache.drop("cart-1")
    assert cache.get("cart-1") is None


def test_it_is_bounded_in_bytes_and_large_ones_are_not_kept_at_all() -> None:
    cache = FinishedCache(JumpClock())
    part = BYTES // 8
    cache.put(ended("large"), b"x" * (part + 1))
    assert cache.get("large") is None
    for number in range(9):
        cache.put(ended(f"cart-{number}"), b"x" * part)
    kept = [number for number in range(9) if cache.get(f"cart-{number}") is not None]
    assert kept == [1, 2, 3, 4, 5, 6, 7, 8]
