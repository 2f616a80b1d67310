"""Documents of jobs that have ended, kept for a moment: they are asked for again, by many and soon."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import NamedTuple

from shoal.frontier.jobs import JobStatus

SECONDS = 2.0
"""Short, because an operator may have a job go on, and because results go when their time is over."""

BYTES = 32 * 1024 * 1024


class Kept(NamedTuple):
    """A job that has ended, and its document."""

    until: float
    status: JobStatus
    body: bytes


class KeptDocuments:
    """The newest ones, bounded in time and in bytes."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._bytes = 0

    def get(self, job_id: str) -> Kept | None:
        """What is kept of a job, if it is still good."""
        kept = self._kept.get(job_id)
        return kept if kept is not None and kept.until > time.monotonic() else None

    def put(self, status: JobStatus, body: bytes) -> None:
        """Keep a document, unless it is too large."""
        self.drop(status.job_id)
        now = time.monotonic()
        if len(body) <= BYTES // 8:
            self._kept[status.job_id] = Kept(now + SECONDS, status, body)
            self._bytes += len(body)
        while self._kept and (self._bytes > BYTES or next(iter(self._kept.values())).until < now):
            self.drop(next(iter(self._kept)))

    def drop(self, job_id: str) -> None:
        """Keep it no longer."""
        old = self._kept.pop(job_id, None)
        if old is not None:
            self._bytes -= len(old.body)
