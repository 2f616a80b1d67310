"""How a worker suits its steps to its store: a quick one is asked at once, a slow one in groups and early."""

from __future__ import annotations

from shoal.core.clock import Millis

LINGER = (0.004, 0.25)
"""Seconds that the first of a group of settlements waits for company, at least and at most: as long as the store took
for its last answer. An idle store is asked at once, a busy one in groups."""

AHEAD: tuple[Millis, Millis] = (20, 100)
"""How early a lease is taken, at least and at most, so that the way to the store and back costs nothing of the pace.
Not earlier: what was taken is not given back when the site asks for a pause meanwhile."""


def linger(took: float) -> float:
    """Seconds to wait for company, where the last answer took so many milliseconds."""
    least, most = LINGER
    return min(max(least, took / 1000), most)


def ahead(took: float) -> Millis:
    """How early to take leases, where the last answer took so many milliseconds: as long as this one and the time until
    it is asked for may take."""
    least, most = AHEAD
    return min(max(least, round(2 * took)), most)
