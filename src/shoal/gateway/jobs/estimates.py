"""How long a job will take, as far as can be told, and how often it is worth asking. Pure."""

from __future__ import annotations

from shoal.core.clock import Millis
from shoal.frontier.contract.jobs import LATELY, Backlog

PER_PAGE = 0.5
"""Seconds that a page takes at least, for want of anything better."""

ASK_AGAIN = (1.0, 30.0)
"""Seconds between two polls: between these, a tenth of what is still to be waited."""


def own_work(tasks: int, delay: Millis, concurrency: int) -> float:
    """Seconds that a job would take alone, if all of its pages are of one site."""
    return 1.0 + max(0, tasks - 1) * max(delay / 1000, PER_PAGE / max(1, concurrency))


def estimate(position: int, own: float, backlog: Backlog | None) -> float:
    """Seconds until a job at that place in its queue ends: by the pace of the last minute, if there was any."""
    before = max(0, position - 1)
    if not before:
        return own
    ended = backlog.ended if backlog is not None else 0
    return own + (before * LATELY / 1000 / ended if ended else before * own)


def ask_again(expected: float) -> float:
    """Seconds after which a client should ask again: the longer the wait, the less often."""
    least, most = ASK_AGAIN
    return round(min(most, max(least, expected / 10)), 1)
