"""A lease in the hands of a worker, and the line it may not start across too late or too soon."""

from __future__ import annotations

import asyncio
import math

from shoal.clock import Clock, Millis, Moment
from shoal.fetch.protocol import TooLate
from shoal.politeness import transit_allowance
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

    __slots__ = ("_clock", "_seen", "_shift", "expires_at", "lease", "received", "starts")

    def __init__(self, lease: Lease, clock: Clock, shift: float) -> None:
        self.lease = lease
        self.expires_at = lease.expires_at
        self.starts = 0
        self._seen = 0.0
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
        self._seen = now + transit_allowance(self.lease.delay)

    def answered(self, received: int) -> None:
        """An answer of so many bytes has come: the target has surely seen the request by now."""
        self.received += received
        self._seen = min(self._seen, self._clock.elapsed() + self._shift)

    def renewed(self, elapsed: float) -> None:
        """The store has extended the lease, at the latest from this moment of `elapsed` on."""
        self.expires_at = math.floor(elapsed + self._shift) + self.lease.expires_at - self.lease.claimed_at

    @property
    def started_at(self) -> Moment | None:
        """By when the target has seen the last request, which the pace is counted from. None = none was made."""
        return math.ceil(self._seen) + 1 if self.starts else None

    async def next_start(self) -> None:
        """Wait until the first or one more request of this lease may start. Raises NeedsAnotherLease if none may."""
        lease = self.lease
        if not self.starts:
            moment: float = lease.start_at
        elif not lease.delay:
            return
        elif lease.exclusive:
            moment = self._seen + lease.delay + 1
        else:
            raise NeedsAnotherLease
        while (wait := moment - self._clock.elapsed() - self._shift) > 0:  # noqa: ASYNC110 - timers may fire early
            await asyncio.sleep(wait / 1000)
