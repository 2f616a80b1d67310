"""A lease in the hands of a worker, and the line it may not start across too late or too soon."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace
from typing import NamedTuple

from shoal.audit import Robots
from shoal.clock import Clock, Millis, Moment
from shoal.fetch.protocol import Fetch, Fetcher, FetchError, Response, TooLate
from shoal.kept import Entry
from shoal.outcome import Blame
from shoal.politeness import transit_allowance
from shoal.task import Lease

EXPIRY_MARGIN: Millis = 1000
"""A further request of one lease starts at least this long before the lease can expire."""

PATIENCE: Millis = 30_000
"""A lease that would have to wait longer than this for its next request is given back instead."""

RENEW_EVERY: Millis = 30_000
"""How often a lease is renewed; three times in its life if that is more often."""


class Made(NamedTuple):
    """A request that was made, as a RequestRecord has it."""

    at: Moment
    slack: Millis
    took: Millis
    status: int
    delay: Millis
    robots: Robots


class NeedsAnotherLease(Exception):
    """One lease allows one request start here; the next step has to wait for its turn like any other."""


class HeldLease:
    """One lease, with its request starts measured by the store's clock.

    `shift` is what turns this machine's `elapsed` into the store's time. Where it is not known exactly it is too high,
    by at most `slack`: so that a start is never believed to be earlier than it was, and never made earlier than it may.
    `delay`: the least time between two starts of this lease; it may be raised while the lease is held.
    `renew_at`: when the lease is to be renewed, by `elapsed`. `made`: the requests that are over, for the log.
    `flight`: what it holds so that nobody else asks for the same page; None = nothing.
    `far`: what is sent may be seconds on its way, one time more than another; so the pace counts from the answer.
    """

    __slots__ = (
        "_clock", "_seen", "_sent", "_shift", "_slack",
        "delay", "expires_at", "far", "flight", "lease", "made", "received", "renew_at", "starts",
    )  # fmt: skip

    def __init__(self, lease: Lease, clock: Clock, shift: float, slack: float = 0.0, *, far: bool = False) -> None:
        self.lease = lease
        self.far = far
        self.flight: Entry | None = None
        self.delay = lease.delay
        self.expires_at = lease.expires_at
        self.renew_at = lease.claimed_at - shift + self._life_before_renewal
        self.starts = 0
        self.received = 0
        self.made: list[Made] = []
        self._sent: list[float] = []
        self._seen = 0.0
        self._clock = clock
        self._shift = shift
        self._slack = slack

    def __call__(self) -> None:
        """The gate: a request starts now. Raises TooLate if it may not: no longer, or not so soon after the last one.

        The fetcher comes here twice for one request if a connection that it had kept turns out to be closed. It is not
        known whether the target saw the first of the two, so the second has to keep the delay like any other.
        """
        now = self._clock.elapsed() + self._shift
        if not self.starts:
            if not self.may_start:
                raise TooLate
        elif now > self.expires_at - EXPIRY_MARGIN or (self.delay and now < self._seen + self.delay):
            raise TooLate
        self.starts += 1
        self._sent.append(now)
        self._seen = now + transit_allowance(self.delay)

    async def fetch(self, fetcher: Fetcher, request: Fetch, robots: Robots = Robots.ALLOWED) -> Response:
        """Make one request within this lease, guarded if its task is. Raises TooLate only if none was made."""
        if self.lease.task.extra.guarded:
            request = replace(request, guarded=True)
        before = self.starts
        status = 0
        try:
            response = await fetcher.fetch(request, self)
            status = response.status
        except TooLate:
            if self.starts == before:
                raise
            raise FetchError("connection closed before an answer", Blame.HOST) from None
        finally:
            self._note(status, robots)
        self._answered(response.received)
        return response

    def _note(self, status: int, robots: Robots) -> None:
        """Write down what was sent since the last time. Of two that are one request, the first had no answer.

        Only the first request of a lease is in doubt by `slack`: the others are so long after it by one clock.
        """
        now = self._clock.elapsed() + self._shift
        if self.far and self._sent:
            self._seen = now
        for sent in self._sent:
            last = sent is self._sent[-1]
            slack = 0 if self.made else math.ceil(self._slack)
            self.made.append(Made(math.ceil(sent), slack, round(now - sent), status if last else 0, self.delay, robots))
        self._sent.clear()

    def renewed(self, elapsed: float) -> None:
        """The store has extended the lease, at the latest from this moment of `elapsed` on."""
        life = self.lease.expires_at - self.lease.claimed_at
        self.expires_at = math.floor(elapsed + self._shift - self._slack) + life
        self.renew_at = elapsed + self._life_before_renewal

    @property
    def pages_asked(self) -> int:
        """The requests that were made for the page itself."""
        return sum(made.robots is not Robots.FILE for made in self.made)

    @property
    def now(self) -> Moment:
        """The store's time, as well as it is known here."""
        return math.floor(self._clock.elapsed() + self._shift)

    @property
    def started_at(self) -> Moment | None:
        """By when the target has seen the last request, which the pace is counted from. None = none was made."""
        return math.ceil(self._seen) + 1 if self.starts else None

    @property
    def may_start(self) -> bool:
        """Whether it is not too late for its first request."""
        return self._clock.elapsed() + self._shift <= self.lease.start_by

    async def next_start(self) -> None:
        """Wait until the first or one more request of this lease may start. Raises NeedsAnotherLease if none may."""
        lease = self.lease
        if not self.starts:
            moment: float = lease.start_at + self._slack
        elif not self.delay:
            return
        elif lease.exclusive and self.delay <= PATIENCE:
            moment = self._seen + self.delay + 1
        else:
            raise NeedsAnotherLease
        while (wait := moment - self._clock.elapsed() - self._shift) > 0:  # noqa: ASYNC110 - timers may fire early
            await asyncio.sleep(wait / 1000)

    def _answered(self, received: int) -> None:
        """The target has surely seen the request by now."""
        self.received += received
        now = self._clock.elapsed() + self._shift
        # Without a delay nothing was allowed for the way there; but one may be asked for yet, and counts from here.
        self._seen = min(self._seen, now) if self.delay else now

    @property
    def _life_before_renewal(self) -> float:
        return min(RENEW_EVERY, (self.lease.expires_at - self.lease.claimed_at) / 3)
