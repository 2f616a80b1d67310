"""Jobs and records: what the gateway asks of a store, as two more protocols beside those in `protocol`.

A job is a run whose id is handed to a web client. It is created with all of its tasks, sealed, in one transaction; from
then on workers treat it as any other run, and `Frontier.cancel_run` and `Reader.items` work on it.
A record is a small document that operators write and every gateway reads: an API key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Protocol

import msgspec

from shoal.core.clock import Millis, Moment
from shoal.core.task import NewTask, RunState
from shoal.frontier.contract.engine import Engine
from shoal.frontier.contract.frontier import Counters, NewRun
from shoal.frontier.contract.mover import Mover
from shoal.frontier.contract.reader import Item
from shoal.frontier.contract.schema import Schema

ANY = -1
"""In place of a version that is known: tell me, whatever it is."""

LATELY: Millis = 60_000
"""How far back `Backlog.ended` counts."""


class Quota(msgspec.Struct, frozen=True):
    """At most so many jobs of one owner in each window. Windows begin at multiples of `window` since the epoch."""

    most: int
    window: Millis


class NewJob(msgspec.Struct, frozen=True):
    """A job on its way into the store.

    `run.queue` is shared by the jobs of a scraper, so that they are served in the order in which they came.
    `owner`: who submitted it; nobody else is shown it. `key`: the owner's idempotency key; a second job with the same
    is not created. `fingerprint`: of what was asked for, so that a key used for something else is noticed.
    `error`: it failed before it began, and has no tasks. `callback`: carried for `Jobs.callbacks`, never looked into.
    """

    run: NewRun
    tasks: Sequence[NewTask] = ()
    owner: str = ""
    key: str | None = None
    fingerprint: bytes = b""
    quota: Quota | None = None
    error: str | None = None
    callback: bytes | None = None


class Admission(StrEnum):
    """What became of a submission."""

    CREATED = "created"
    REPEATED = "repeated"
    """The owner has used this key before: nothing was created."""
    LIMITED = "limited"
    """The owner's quota is used up: nothing was created."""


class Submitted(msgspec.Struct, frozen=True):
    """The answer to one NewJob.

    `job_id`: of the job that was created, or of the first one with this key. `fingerprint`: as given with that one.
    `position`: place in its queue; 0 = it has ended already, or was not created. `used`, `resets_at`: of the quota,
    this job included; 0 without one.
    """

    job_id: str
    admission: Admission
    position: int = 0
    fingerprint: bytes = b""
    used: int = 0
    resets_at: Moment = 0


class JobState(StrEnum):
    """How a job stands, in the words that web clients see."""

    QUEUED = "queued"
    PROCESSING = "processing"
    COMPLETE = "complete"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


class JobStatus(msgspec.Struct, frozen=True):
    """A job as one looks at it now.

    `number` grows with every job that comes. `version` changes whenever `state` or the number of ended tasks does; it
    means nothing else. `position`: place among the jobs of its queue that have not ended, in the order they came, from
    1; 0 = it has ended. `groups`: those of the tasks it was created with, in their order. `groups_left`: how many
    groups still have tasks that wait or are leased. `expires_at`: when its results go; None = it has not ended, or they
    never do. `expired`: its results have gone, and all that is left is the memory that there was such a job.
    """

    job_id: str
    number: int
    version: int
    scraper: str
    owner: str
    run_state: RunState
    counters: Counters
    created_at: Moment
    ended_at: Moment | None
    expires_at: Moment | None
    position: int
    groups: tuple[str, ...] = ()
    groups_left: int = 0
    error: str | None = None
    expired: bool = False

    @property
    def state(self) -> JobState:
        """Failed is a job that could not begin, or was given up; or that has nothing done while something died or came
        too late."""
        counts = self.counters
        if self.expired:
            return JobState.EXPIRED
        if self.run_state is RunState.CANCELLED:
            return JobState.CANCELLED if self.error is None else JobState.FAILED
        if self.run_state is RunState.FINISHED:
            failed = self.error is not None or (not counts.done and counts.dead + counts.expired > 0)
            return JobState.FAILED if failed else JobState.COMPLETE
        begun = counts.requests + counts.accepted - counts.waiting > 0
        return JobState.PROCESSING if begun else JobState.QUEUED

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will happen to it, except that it is forgotten."""
        return self.ended_at is not None


class Backlog(msgspec.Struct, frozen=True):
    """The jobs of one queue: how many have not ended, and how many have within the last minute (`LATELY`)."""

    queue: str
    unfinished: int
    ended: int


class Callback(msgspec.Struct, frozen=True):
    """What a job was created with for the moment of its end."""

    job_id: str
    body: bytes


class Expired(msgspec.Struct, frozen=True):
    """What `Jobs.expire` did. `more`: it stopped at its bound and should be called again soon."""

    expired: int = 0
    forgotten: int = 0
    more: bool = False


class Jobs(Protocol):
    """Runs for web clients, many at a time."""

    async def submit(self, jobs: Sequence[NewJob]) -> Sequence[Submitted]:
        """Create jobs with their tasks, sealed: all in one transaction, in this order. One answer for each.

        The quota is asked last: a repeated submission costs nothing. A run id that exists is answered as repeated.
        """
        ...

    async def statuses(self, known: Mapping[str, int]) -> Sequence[JobStatus]:
        """In one read, the jobs of these ids whose version is not the one that is known already (ANY = tell me).

        So an id that was asked with ANY and is not in the answer is unknown. In no particular order.
        """
        ...

    async def results(self, job_ids: Sequence[str], most: int, most_bytes: int) -> Mapping[str, Sequence[Item]]:
        """In one read, up to `most` items of each of these jobs, in the order they were settled.

        Absent: unknown jobs, and those whose items are more than `most_bytes` all together.
        """
        ...

    async def listed(self, owner: str | None, before: int | None = None, limit: int = 100) -> Sequence[JobStatus]:
        """The newest jobs first: those of one owner (None = of all) whose number is below `before`."""
        ...

    async def backlogs(self) -> Sequence[Backlog]:
        """Every queue that has jobs which have not ended, or which ended lately."""
        ...

    async def callbacks(self, limit: int = 100) -> Sequence[Callback]:
        """The callbacks of jobs that have ended, until they are cleared; those that came first, first."""
        ...

    async def clear_callbacks(self, job_ids: Sequence[str]) -> None:
        """These callbacks have been seen to. The second time, and for ids without one: nothing."""
        ...

    async def give_up(self, queue: str, age: Millis, reason: str) -> Sequence[str]:
        """Of the first jobs of a queue, a bounded number, those that came `age` ago or earlier and have not ended get
        this error. Answers their ids: each is to be ended with `Frontier.cancel_run`, and has failed then. A job that
        was not ended after all is answered again the next time."""
        ...

    async def expire(self, remember: Millis) -> Expired:
        """Delete jobs whose results have had their time; remember for so long that they existed. Bounded."""
        ...


class Registry(Protocol):
    """Small documents by kind and name, few and seldom written."""

    async def records(self, kind: str) -> Mapping[str, bytes]:
        """All documents of a kind, by name."""
        ...

    async def put_record(self, kind: str, name: str, body: bytes) -> None:
        """Keep a document until it is removed; replaces."""
        ...

    async def remove_record(self, kind: str, name: str) -> bool:
        """Forget a document. False = there was none."""
        ...


class Store(Engine, Protocol):
    """An engine with all that it can do. A worker needs only an `Engine`; the gateway and a move need this."""

    @property
    def losses(self) -> Sequence[str]:
        """What a crash of the store can cost, as it is set up, in whole sentences. Empty = nothing."""
        ...

    @property
    def schema(self) -> Schema:
        """The version of its store, and what it was before it was opened."""
        ...

    @property
    def jobs(self) -> Jobs: ...

    @property
    def registry(self) -> Registry: ...

    @property
    def mover(self) -> Mover: ...
