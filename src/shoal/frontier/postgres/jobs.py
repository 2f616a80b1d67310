"""Jobs: submitted in groups, looked at in groups, and forgotten when their time is over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from shoal.clock import Clock, Millis, Moment
from shoal.frontier.jobs import (
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
from shoal.frontier.postgres.connections import Connections
from shoal.frontier.postgres.payload import as_sent, encode, run_values, task_columns
from shoal.frontier.protocol import Counters
from shoal.frontier.reading import Item
from shoal.frontier.repeats import apart_from_repeats
from shoal.task import RunState

MOST_ROWS = 5000
"""How many rows of each kind one `expire` deletes."""

MOST_JOBS = 500

_raw_items = msgspec.json.Decoder(list[msgspec.Raw])
_groups = msgspec.json.Decoder(tuple[str, ...])


class PostgresJobs:
    """The `Jobs` of this engine."""

    def __init__(self, connections: Connections, clock: Clock | None) -> None:
        self._connections = connections
        self._clock = clock

    async def submit(self, jobs: Sequence[NewJob]) -> Sequence[Submitted]:
        different, answers = apart_from_repeats(jobs)
        if not different:
            return []
        rows = await self._connections.rows("submit_jobs", self._now(), *_job_columns(different))
        return answers([_submitted(*row) for row in rows])

    async def statuses(self, known: Mapping[str, int]) -> Sequence[JobStatus]:
        if not known:
            return []
        rows = await self._connections.rows("read_jobs", self._now(), list(known), list(known.values()))
        return [_status(*row) for row in rows]

    async def results(self, job_ids: Sequence[str], most: int) -> Mapping[str, Sequence[Item]]:
        results: dict[str, list[Item]] = {}
        for job_id, url, group, body in await self._connections.rows("read_results", self._now(), list(job_ids)):
            items = results.setdefault(job_id, [])
            if body is not None and len(items) < most:
                items += [Item(url, group, raw) for raw in _raw_items.decode(body)[: most - len(items)]]
        return results

    async def listed(self, owner: str | None, before: int | None = None, limit: int = 100) -> Sequence[JobStatus]:
        found = await self._connections.rows("find_jobs", owner, before, limit)
        statuses = await self.statuses({row[0]: ANY for row in found})
        return sorted(statuses, key=lambda status: -status.number)

    async def backlogs(self) -> Sequence[Backlog]:
        return [Backlog(*row) for row in await self._connections.rows("read_backlogs", self._now(), LATELY)]

    async def callbacks(self, limit: int = 100) -> Sequence[Callback]:
        return [Callback(*row) for row in await self._connections.rows("read_callbacks", limit)]

    async def clear_callbacks(self, job_ids: Sequence[str]) -> None:
        await self._connections.rows("clear_callbacks", list(job_ids))

    async def expire(self, remember: Millis) -> Expired:
        return Expired(*await self._connections.row("expire_jobs", self._now(), remember, MOST_JOBS, MOST_ROWS))

    def _now(self) -> Moment | None:
        return self._clock.now() if self._clock else None


class PostgresRegistry:
    """The `Registry` of this engine."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def records(self, kind: str) -> Mapping[str, bytes]:
        return dict(await self._connections.rows("read_records", kind))

    async def put_record(self, kind: str, name: str, body: bytes) -> None:
        await self._connections.rows("write_record", kind, name, body)

    async def remove_record(self, kind: str, name: str) -> bool:
        return bool(await self._connections.value("delete_record", kind, name))


def _job_columns(jobs: Sequence[NewJob]) -> list[list[Any]]:
    """The kinds of runs among them, the jobs, and their tasks with the position of the job that each belongs to."""
    kinds: dict[tuple[object, ...], int] = {}
    columns: list[list[Any]] = [[] for _ in range(15)]
    kind_of: list[int] = []
    for job in jobs:
        run = job.run
        kind = (run.scraper, run.mode, run.queue or run.run_id, id(run.policy))
        if kind not in kinds:
            kinds[kind] = len(kinds) + 1
            _, scraper, mode, queue, policy, _, *rules = run_values(run)
            for column, value in zip(columns, (scraper, mode, queue, policy, *rules), strict=True):
                column.append(value)
        kind_of.append(kinds[kind])
    return [
        *columns,
        kind_of,
        [job.run.run_id for job in jobs],
        as_sent([job.run.input for job in jobs]),
        [bool(job.tasks) for job in jobs],
        [job.owner for job in jobs],
        as_sent([job.key for job in jobs]),
        [job.fingerprint for job in jobs],
        as_sent([None if job.quota is None else job.quota.most for job in jobs]),
        as_sent([None if job.quota is None else job.quota.window for job in jobs]),
        as_sent([_groups_of(job) for job in jobs]),
        as_sent([job.error for job in jobs]),
        as_sent([job.callback for job in jobs]),
        [position for position, job in enumerate(jobs, 1) for _ in job.tasks],
        *task_columns([task for job in jobs for task in job.tasks]),
    ]


def _groups_of(job: NewJob) -> str | None:
    groups = list(dict.fromkeys(task.extra.group for task in job.tasks if task.extra.group))
    return encode(groups).decode() if groups else None


def _submitted(job_id: str, admission: str, place: int, fingerprint: bytes, used: int, resets_at: Moment) -> Submitted:
    return Submitted(job_id, Admission(admission), place, fingerprint, used, resets_at)


def _status(*row: Any) -> JobStatus:
    job_id, number, version, scraper, owner, state, created_at, ended_at, expires_at, place, *more = row
    groups, groups_left, error, expired, counts = more
    return JobStatus(
        job_id,
        number,
        version,
        scraper,
        owner,
        RunState(state),
        Counters(*counts),
        created_at,
        ended_at,
        expires_at,
        place,
        _groups.decode(groups),
        groups_left,
        error,
        expired,
    )
