"""A cache of finished jobs: their documents are asked for again, by many and soon."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from shoal.core.clock import Clock
from shoal.frontier.contract.jobs import JobStatus

KEPT = 2_000
"""Milliseconds. Short, because an operator may have a job go on, and because results go when their time is over."""

BYTES = 32 * 1024 * 1024


class FinishedJob(NamedTuple):
    """A job that has ended, and its document."""

    until: float
    status: JobStatus
    body: bytes


class FinishedCache:
    """The newest ones, bounded in time and in bytes."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: OrderedDict[str, FinishedJob] = OrderedDict()
        self._bytes = 0

    def get(self, job_id: str) -> FinishedJob | None:
        """What is kept of a job, if it is still good."""
        kept = self._kept.get(job_id)
        return kept if kept is not None and kept.until > self._clock.elapsed() else None

    def put(self, status: JobStatus, body: bytes) -> None:
        """Keep a document, unless it is too large."""
        self.drop(status.job_id)
        now = self._clock.elapsed()
        if len(body) <= BYTES // 8:
            self._kept[status.job_id] = FinishedJob(now + KEPT, status, body)
            self._bytes += len(body)
        while self._kept and (self._bytes > BYTES or next(iter(self._kept.values())).until < now):
            self.drop(next(iter(self._kept)))

    def drop(self, job_id: str) -> None:
        """Keep it no longer."""
        old = self._kept.pop(job_id, None)
        if old is not None:
            self._bytes -= len(old.body)
