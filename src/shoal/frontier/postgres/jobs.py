"""Jobs: submitted in groups, looked at in groups, and forgotten when their time is over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shoal.core.clock import Clock, Millis, Moment
from shoal.core.storable import findable, is_storable
from shoal.frontier.contract.frontier import Counters
from shoal.frontier.contract.jobs import (
    ANY,
    LATELY,
    Admission,
    Backlog,
    Callback,
    Expired,
    JobStatus,
    NewJob,
    Submitted,
)
from shoal.frontier.contract.reader import Item
from shoal.frontier.postgres.enqueue import task_columns
from shoal.frontier.postgres.runs import run_fields
from shoal.frontier.postgres.store.columns import Composite, NewJobs, RunKinds, as_sent, encode
from shoal.frontier.postgres.store.connections import Connections
from shoal.frontier.shared.item_rows import items_by_job
from shoal.frontier.shared.job_batch import groups_of, kinds_of
from shoal.frontier.shared.job_status import StoredJob, newest_first
from shoal.frontier.shared.refusals import storable_only
from shoal.frontier.shared.repeated_jobs import apart_from_repeats

MOST_ROWS = 5000
"""How many rows of each kind one `expire` deletes."""

MOST_JOBS = 500


class PostgresJobs:
    """The `Jobs` of this engine."""

    def __init__(self, connections: Connections, clock: Clock | None) -> None:
        self._connections = connections
        self._clock = clock

    async def submit(self, jobs: Sequence[NewJob]) -> Sequence[Submitted]:
        different, answers = apart_from_repeats(jobs)
        if not different:
            return []
        with storable_only(self._connections.name):
            columns = _job_columns(different)
        rows = await self._connections.rows("submit_jobs", self._now(), *columns)
        return answers([_submitted(*row) for row in rows])

    async def statuses(self, known: Mapping[str, int]) -> Sequence[JobStatus]:
        known = {job_id: version for job_id, version in known.items() if is_storable(job_id)}
        if not known:
            return []
        rows = await self._connections.rows("read_jobs", self._now(), list(known), list(known.values()))
        return [_status(*row) for row in rows]

    async def results(self, job_ids: Sequence[str], most: int, most_bytes: int) -> Mapping[str, Sequence[Item]]:
        asked = list(filter(is_storable, job_ids))
        rows = await self._connections.rows("read_results", self._now(), asked, most_bytes)
        return items_by_job(rows, most)

    async def listed(self, owner: str | None, before: int | None = None, limit: int = 100) -> Sequence[JobStatus]:
        found = await self._connections.rows("find_jobs", None if owner is None else findable(owner), before, limit)
        return newest_first(await self.statuses({row[0]: ANY for row in found}))

    async def backlogs(self) -> Sequence[Backlog]:
        return [Backlog(*row) for row in await self._connections.rows("read_backlogs", self._now(), LATELY)]

    async def callbacks(self, limit: int = 100) -> Sequence[Callback]:
        return [Callback(*row) for row in await self._connections.rows("read_callbacks", limit)]

    async def clear_callbacks(self, job_ids: Sequence[str]) -> None:
        await self._connections.rows("clear_callbacks", list(filter(is_storable, job_ids)))

    async def give_up(self, queue: str, age: Millis, reason: str) -> Sequence[str]:
        rows = await self._connections.rows("give_up_jobs", self._now(), queue, age, reason, MOST_JOBS)
        return [row[0] for row in rows]

    async def expire(self, remember: Millis) -> Expired:
        return Expired(*await self._connections.row("expire_jobs", self._now(), remember, MOST_JOBS, MOST_ROWS))

    def _now(self) -> Moment | None:
        return self._clock.now() if self._clock else None


class PostgresRegistry:
    """The `Registry` of this engine."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def records(self, kind: str) -> Mapping[str, bytes]:
        return dict(await self._connections.rows("read_records", findable(kind)))

    async def put_record(self, kind: str, name: str, body: bytes) -> None:
        await self._connections.rows("write_record", kind, name, body)

    async def remove_record(self, kind: str, name: str) -> bool:
        return bool(await self._connections.value("delete_record", findable(kind), findable(name)))


def _job_columns(jobs: Sequence[NewJob]) -> tuple[Composite | list[int], ...]:
    """The kinds of runs among them, the jobs, and their tasks behind the position of the job that each belongs to."""
    examples, kind_of = kinds_of(jobs)
    different = [run_fields(job.run) for job in examples]
    new = NewJobs(
        kind=kind_of,
        run_id=[job.run.run_id for job in jobs],
        input=as_sent([job.run.input for job in jobs]),
        busy=[bool(job.tasks) for job in jobs],
        owner=[job.owner for job in jobs],
        key=as_sent([job.key for job in jobs]),
        fingerprint=[job.fingerprint for job in jobs],
        most=as_sent([None if job.quota is None else job.quota.most for job in jobs]),
        window=as_sent([None if job.quota is None else job.quota.window for job in jobs]),
        groups=as_sent([_groups_of(job) for job in jobs]),
        error=as_sent([job.error for job in jobs]),
        callback=as_sent([job.callback for job in jobs]),
    )
    return (
        RunKinds(**{field: [getattr(run, field) for run in different] for field in RunKinds.__struct_fields__}),
        new,
        [position for position, job in enumerate(jobs, 1) for _ in job.tasks],
        task_columns([task for job in jobs for task in job.tasks]),
    )


def _groups_of(job: NewJob) -> str | None:
    groups = groups_of(job)
    return encode(groups).decode() if groups else None


def _submitted(job_id: str, admission: str, place: int, fingerprint: bytes, used: int, resets_at: Moment) -> Submitted:
    return Submitted(job_id, Admission(admission), place, fingerprint, used, resets_at)


def _status(*row: Any) -> JobStatus:
    *what, counts = row
    return StoredJob(*what).status(Counters(*counts))
