"""A lease in hand, and the line that its requests may not start across too late or too soon."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from shoal.core.clock import Clock, Millis, Moment
from shoal.core.outcome import Outcome, Settlement
from shoal.core.politeness import transit_allowance
from shoal.core.task import Lease, NewTask, Task
from shoal.core.url import dedup_key, join, site_of
from shoal.errors import NeedsAnotherLease, TooLate, UsageError

EXPIRY_MARGIN: Millis = 1000
"""A further request of one lease starts at least this long before the lease can expire."""

PATIENCE: Millis = 30_000
"""A lease that would have to wait longer than this for its next request is given back instead."""

RENEW_EVERY: Millis = 30_000
"""How often a lease is renewed, unless told otherwise; three times in its life if that is more often."""


class Start(NamedTuple):
    """A request start, by the store's clock. `slack`: it may have been so much earlier. `took`: until it was over."""

    at: Moment
    slack: Millis
    took: Millis


class HeldLease:
    """One lease, with its request starts measured by the store's clock.

    `shift` is what turns this machine's `elapsed` into the store's time. Where it is not known exactly it is too high,
    by at most `slack`: so that a start is never believed to be earlier than it was, and never made earlier than it may.
    `delay`: the least time between two starts of this lease; it may be raised while the lease is held.
    `renew_at`: when the lease is to be renewed, by `elapsed`. `received`: bytes of all answers together.
    `far`: what is sent may be seconds on its way, one time more than another; so the pace counts from the answer.
    `is_over`: it was settled, given back, or lost: no request may start any more.
    """

    __slots__ = (
        "_accounted", "_clock", "_renew_every", "_seen", "_sent", "_shift", "_slack", "_tried",
        "delay", "expires_at", "far", "is_over", "lease", "received", "renew_at", "starts",
    )  # fmt: skip

    def __init__(
        self,
        lease: Lease,
        clock: Clock,
        shift: float,
        slack: float = 0.0,
        *,
        far: bool = False,
        renew_every: Millis = RENEW_EVERY,
    ) -> None:
        self.lease = lease
        self.far = far
        self.is_over = False
        self.delay = lease.delay
        self.expires_at = lease.expires_at
        self.starts = 0
        self.received = 0
        self._renew_every = renew_every
        self.renew_at = lease.claimed_at - shift + self._life_before_renewal
        self._accounted = 0
        self._sent: list[float] = []
        self._seen = 0.0
        self._tried = False
        self._clock = clock
        self._shift = shift
        self._slack = slack

    @property
    def task(self) -> Task:
        return self.lease.task

    # Requests

    @asynccontextmanager
    async def request(self) -> AsyncIterator[None]:
        """One request, made within the block: waits until it may start, and starts it. For clients that cannot call
        `start` at the moment of sending: what they do before they send makes the next start later, never too early.

        Raises TooLate or NeedsAnotherLease if it may not start: give the lease back then.
        """
        await self.next_start()
        self.start()
        answered = False
        try:
            yield
            answered = True
        finally:
            self.end_request(0 if answered else None)

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
        while (wait := moment - self._clock.elapsed() - self._shift) > 0:  # timers may fire early
            await self._clock.sleep(wait / 1000)

    def start(self) -> None:
        """The gate: a request starts now, on its connection. Raises TooLate if it may not: no longer, or not so soon
        after the last one; UsageError if `next_start` was not awaited before the first.

        A fetcher comes here twice for one request if a connection that it had kept turns out to be closed. It is not
        known whether the target saw the first of the two, so the second has to keep the delay like any other.
        """
        now = self._clock.elapsed() + self._shift
        if self.is_over:
            raise TooLate
        if not self.starts:
            if now > self.lease.start_by:
                raise TooLate
            if now < self.lease.start_at + self._slack:
                raise UsageError("The request would start too early: await `next_start()` of its lease first.")
        elif now > self.expires_at - EXPIRY_MARGIN or (
            self.delay and (now < self._seen + self.delay or not self.lease.exclusive)
        ):
            raise TooLate
        self.starts += 1
        self._sent.append(now)
        self._seen = now + transit_allowance(self.delay)

    def end_request(self, received: int | None) -> Sequence[Start]:
        """The request that was started last is over. `received`: bytes of its answer, by which the target has surely
        seen it; None = there was no answer. Answers the starts since the last time.

        Of several that are one request, only the last can have been answered. Only the first of a lease is in doubt by
        `slack`: the others are so long after it by one clock.
        """
        now = self._clock.elapsed() + self._shift
        if self.far and self._sent:
            self._seen = now
        starts = [
            Start(math.ceil(sent), 0 if self._accounted + n else math.ceil(self._slack), round(now - sent))
            for n, sent in enumerate(self._sent)
        ]
        self._accounted += len(starts)
        self._sent.clear()
        if received is not None:
            self.received += received
            # Without a delay nothing was allowed for the way there; but one may be asked for yet, and counts from here.
            self._seen = min(self._seen, now) if self.delay else now
        return starts

    def try_failed(self) -> None:
        """The target could not be connected to: for its pace, that is as much as a request."""
        self._tried = True
        self._seen = max(self._seen, self._clock.elapsed() + self._shift)

    # What is known of it

    @property
    def now(self) -> Moment:
        """The store's time, as well as it is known here."""
        return math.floor(self._clock.elapsed() + self._shift)

    @property
    def started_at(self) -> Moment | None:
        """By when the target has seen the last request, or try, which the pace counts from. None = there was none."""
        return math.ceil(self._seen) + 1 if self.starts or self._tried else None

    @property
    def may_start(self) -> bool:
        """Whether it is not too late for its first request."""
        return not self.is_over and self._clock.elapsed() + self._shift <= self.lease.start_by

    def settlement(self, outcome: Outcome, **learned: Any) -> Settlement:
        """The end of this lease, with its requests; `learned`: further fields of a Settlement, as `crawl_delay`."""
        task = self.lease.task
        numbers = (self.started_at, self.starts, self.received)
        return Settlement(task.run_id, task.id, self.lease.token, outcome, *numbers, **learned)

    def link(self, url: str, to: str | None = None) -> NewTask:
        """A page that this one leads to, as a task for `Done.tasks`: relative to the task's URL, in its lane; `to`: the
        label of its handler. Its run takes each page once. Raises BadURL for what cannot be fetched."""
        task = self.lease.task
        address = join(task.url, url)
        host = site_of(address)
        site = task.site if host == site_of(task.url) else host
        return NewTask(address, site, dedup_key(address), task.lane, to, task.priority, task.depth + 1)

    def renewed(self, elapsed: float) -> None:
        """The store has extended the lease, at the latest from this moment of `elapsed` on."""
        life = self.lease.expires_at - self.lease.claimed_at
        self.expires_at = math.floor(elapsed + self._shift - self._slack) + life
        self.renew_at = elapsed + self._life_before_renewal

    @property
    def _life_before_renewal(self) -> float:
        return min(self._renew_every, (self.lease.expires_at - self.lease.claimed_at) / 3)
