"""Jobs as one looks at them: how a status is read from a store, what its version is made of, in which order they are
listed. The same on every engine; PostgreSQL and SQLite reckon the version where the counters are."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple

import msgspec

from shoal.core.clock import Moment
from shoal.core.task import RunState
from shoal.frontier.contract.frontier import Counters
from shoal.frontier.contract.jobs import JobStatus

_groups = msgspec.json.Decoder(tuple[str, ...]).decode

_STEPS = 8
"""A version is so many times the number of ended tasks, and the step."""


class JobStep(IntEnum):
    """The steps of a job's life, as versions have them."""

    QUEUED = 0
    BEGUN = 1
    PAUSED = 2
    FINISHED = 3
    CANCELLED = 4
    GONE = 5


_STEP_OF = {
    RunState.PAUSED: JobStep.PAUSED,
    RunState.FINISHED: JobStep.FINISHED,
    RunState.CANCELLED: JobStep.CANCELLED,
}


def version_of(state: RunState, counters: Counters, *, expired: bool) -> int:
    """The version of a job."""
    begun = JobStep.BEGUN if counters.leased + counters.requests > 0 else JobStep.QUEUED
    step = JobStep.GONE if expired else _STEP_OF.get(state, begun)
    return _STEPS * (counters.accepted - counters.remaining) + step


def whole_version(parts: Iterable[int]) -> int:
    """A version of the whole from those of its parts: ended tasks add up, the last step of a life counts."""
    known = list(parts)
    return _STEPS * sum(version // _STEPS for version in known) + max(version % _STEPS for version in known)


def may_have_expired(version: int) -> bool:
    """Whether nothing but time is needed for another version."""
    return version % _STEPS in (JobStep.FINISHED, JobStep.CANCELLED)


class StoredJob(NamedTuple):
    """A job as it is read. `groups`: a JSON array."""

    job_id: str
    number: int
    version: int
    scraper: str
    owner: str
    state: str
    created_at: Moment
    ended_at: Moment | None
    expires_at: Moment | None
    position: int
    groups: str | bytes
    groups_left: int
    error: str | None
    expired: bool | int

    def status(self, counters: Counters) -> JobStatus:
        """With its counters."""
        return JobStatus(
            self.job_id,
            self.number,
            self.version,
            self.scraper,
            self.owner,
            RunState(self.state),
            counters,
            self.created_at,
            self.ended_at,
            self.expires_at,
            self.position,
            _groups(self.groups),
            self.groups_left,
            self.error,
            bool(self.expired),
        )


def newest_first(statuses: Iterable[JobStatus]) -> list[JobStatus]:
    """As jobs are listed."""
    return sorted(statuses, key=lambda status: -status.number)
