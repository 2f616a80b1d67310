"""A lease in the hands of a worker, and the line it may not start across too late or too soon."""

from __future__ import annotations

import asyncio
import math

from shoal.clock import Clock, Millis, Moment
from shoal.fetch.protocol import TooLate
from shoal.politeness import pace_margin
from shoal.task import Lease

EXPIRY_MARGIN: Millis = 1000
"""A further request of one lease starts at least this long before the lease can expire."""


class NeedsAnotherLease(Exception):
    """One lease allows one request start here; the next step has to wait for its turn like any other."""


class HeldLease:
    """One lease, with its request starts measured by the store's clock.

    `shift` is what turns this machine's `elapsed` into the store's time. Where it is not known exactly it is too high,
    so that a start is never believed to be earlier than it was.
    """

    __slots__ = ("_clock", "_shift", "expires_at", "lease", "received", "started", "starts")

    def __init__(self, lease: Lease, clock: Clock, shift: float) -> None:
        self.lease = lease
        self.expires_at = lease.expires_at
        self.starts = 0
        self.started = 0.0
        self.received = 0
        self._clock = clock
        self._shift = shift

    def __call__(self) -> None:
        """The gate: a request starts now. Raises TooLate if it no longer may."""
        now = self._clock.elapsed() + self._shift
        latest = self.lease.start_by if not self.starts else self.expires_at - EXPIRY_MARGIN
        if now > latest:
            raise TooLate
        self.starts += 1
        self.started = now

    def renewed(self, elapsed: float) -> None:
        """The store has extended the lease, at the latest from this moment of `elapsed` on."""
        self.expires_at = math.floor(elapsed + self._shift) + self.lease.expires_at - self.lease.claimed_at

    @property
    def started_at(self) -> Moment | None:
        """What the store is told: when the last request started, on the safe side. None = there was none."""
        return math.ceil(self.started) + 1 + pace_margin(self.lease.delay) if self.starts else None

    async def next_start(self) -> None:
        """Wait until one more request of this lease may start. Raises NeedsAnotherLease if none may."""
        if not self.starts or not self.lease.delay:
            return
        if not self.lease.exclusive:
            raise NeedsAnotherLease
        now = self._clock.elapsed() + self._shift
        wait = self.started + self.lease.delay + pace_margin(self.lease.delay) - now
        if wait > 0:
            await asyncio.sleep(wait / 1000)
