"""Jobs: submitted in groups, looked at in groups, and forgotten when their time is over."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from shoal.core.clock import Millis, Moment
from shoal.core.storable import findable, is_storable
from shoal.core.task import RunState
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
    Quota,
    Submitted,
)
from shoal.frontier.contract.reader import Item
from shoal.frontier.shared.item_rows import items_by_job
from shoal.frontier.shared.job_batch import groups_of
from shoal.frontier.shared.job_status import StoredJob, newest_first
from shoal.frontier.sqlite.enqueue import enqueue
from shoal.frontier.sqlite.reader import SqliteReader
from shoal.frontier.sqlite.runs import delete_some, forget_runs
from shoal.frontier.sqlite.store.transaction import RunRow, Transaction, encode
from shoal.frontier.sqlite.store.writer import Writer
from shoal.frontier.sqlite.whereabouts import Look

MOST_ROWS = 5000
"""How many rows of each kind one `expire` deletes."""

MOST_JOBS = 500
EVERY_JOB = 2**62


class SqliteJobs:
    """The `Jobs` of this engine."""

    def __init__(self, writer: Writer, reader: SqliteReader) -> None:
        self._writer = writer
        self._reader = reader

    async def submit(self, jobs: Sequence[NewJob]) -> Sequence[Submitted]:
        return await self._writer.call(lambda tx: _submit(tx, jobs))

    async def statuses(self, known: Mapping[str, int]) -> Sequence[JobStatus]:
        return await self._reader.look(lambda look, now: _statuses(look, now, known))

    async def results(self, job_ids: Sequence[str], most: int, most_bytes: int) -> Mapping[str, Sequence[Item]]:
        asked, now = encode(list(filter(is_storable, job_ids))).decode(), await self._reader.now()
        return items_by_job(await self._reader.rows("read_results", ids=asked, now=now, bytes=most_bytes), most)

    async def listed(self, owner: str | None, before: int | None = None, limit: int = 100) -> Sequence[JobStatus]:
        return await self._reader.look(lambda look, now: _listed(look, now, owner, before, limit))

    async def backlogs(self) -> Sequence[Backlog]:
        return await self._reader.look(
            lambda look, now: [Backlog(*row) for row in look("read_backlogs", since=now - LATELY)]
        )

    async def callbacks(self, limit: int = 100) -> Sequence[Callback]:
        return await self._reader.look(lambda look, _: [Callback(*row) for row in look("read_callbacks", limit=limit)])

    async def clear_callbacks(self, job_ids: Sequence[str]) -> None:
        await self._writer.call(lambda tx: tx.run("clear_callbacks", ids=list(filter(is_storable, job_ids))))

    async def give_up(self, queue: str, age: Millis, reason: str) -> Sequence[str]:
        return await self._writer.call(
            lambda tx: [
                row[0]
                for row in tx.table("give_up_jobs", queue=queue, before=tx.now - age, reason=reason, most=MOST_JOBS)
            ]
        )

    async def expire(self, remember: Millis) -> Expired:
        return await self._writer.call(lambda tx: _expire(tx, remember))


class SqliteRegistry:
    """The `Registry` of this engine."""

    def __init__(self, writer: Writer, reader: SqliteReader) -> None:
        self._writer = writer
        self._reader = reader

    async def records(self, kind: str) -> Mapping[str, bytes]:
        return await self._reader.look(lambda look, _: dict(look("read_records", kind=kind)))

    async def put_record(self, kind: str, name: str, body: bytes) -> None:
        await self._writer.call(lambda tx: tx.run("write_record", kind=kind, name=name, body=body))

    async def remove_record(self, kind: str, name: str) -> bool:
        return bool(
            await self._writer.call(lambda tx: tx.run("delete_record", kind=findable(kind), name=findable(name)))
        )


def _submit(tx: Transaction, jobs: Sequence[NewJob]) -> list[Submitted]:
    lengths: dict[str, int] = {}
    return [_submit_one(tx, job, lengths) for job in jobs]


def _submit_one(tx: Transaction, job: NewJob, lengths: dict[str, int]) -> Submitted:
    """`lengths`: of the queues that this batch has met, as they are with the jobs before this one."""
    found = tx.row("find_job_of_id", run_id=job.run.run_id)
    if found is None and job.key is not None:
        found = tx.row("find_job_of_key", owner=job.owner, key=job.key)
    if found is not None:
        run_id, number, queue, ended_at, fingerprint = found
        place = 0 if ended_at is not None else tx.value("count_unfinished", queue=queue, up_to=number)
        return Submitted(run_id, Admission.REPEATED, place, fingerprint)
    used, resets_at = _spend(tx, job.owner, job.quota) if job.quota is not None else (0, 0)
    if job.quota is not None and used > job.quota.most:
        return Submitted(job.run.run_id, Admission.LIMITED, used=job.quota.most, resets_at=resets_at)
    queue = job.run.queue or job.run.run_id
    if queue not in lengths:
        lengths[queue] = tx.value("count_unfinished", queue=queue, up_to=EVERY_JOB)
    _create(tx, job, queue)
    lengths[queue] += bool(job.tasks)
    place = lengths[queue] if job.tasks else 0
    return Submitted(job.run.run_id, Admission.CREATED, place, job.fingerprint, used, resets_at)


def _spend(tx: Transaction, owner: str, quota: Quota) -> tuple[int, Moment]:
    """How much of the quota is used now, this job included, and when it begins anew."""
    resets_at = tx.now - tx.now % quota.window + quota.window
    used = (tx.value("read_quota", owner=owner, resets_at=resets_at) or 0) + 1
    if used <= quota.most:
        tx.run("write_quota", owner=owner, resets_at=resets_at, used=used)
    return used, resets_at


def _create(tx: Transaction, job: NewJob, queue: str) -> None:
    run = job.run
    number = tx.value(
        "create_job",
        run_id=run.run_id,
        scraper=run.scraper,
        mode=run.mode,
        queue=queue,
        policy=encode(run.policy).decode(),
        input=run.input,
        now=tx.now,
    )
    tx.run(
        "describe_job",
        run=number,
        owner=job.owner,
        key=job.key,
        fingerprint=job.fingerprint,
        groups=groups_of(job),
        error=job.error,
        callback=job.callback,
    )
    row = RunRow(number, run.run_id, run.scraper, queue, RunState.RUNNING, run.policy, is_job=True)
    enqueue(tx, row, job.tasks)


def _statuses(look: Look, now: Moment, known: Mapping[str, int]) -> list[JobStatus]:
    asked = {job_id: version for job_id, version in known.items() if is_storable(job_id)}
    rows = look("read_jobs", known=encode(asked).decode(), now=now)
    queues: dict[str, list[int]] = {}
    return [_status(look, queues, row) for row in rows]


def _status(look: Look, queues: dict[str, list[int]], row: Sequence[Any]) -> JobStatus:
    """`queues`: the numbers of the jobs that have not ended, of each queue that was met before."""
    number, ended_at, queue = row[1], row[7], row[9]
    place = 0
    if ended_at is None:
        if queue not in queues:
            queues[queue] = msgspec.json.decode(look("read_queue", queue=queue)[0][0])
        place = bisect_right(queues[queue], number)
    return StoredJob._make([*row[:9], place, *row[10:14]]).status(Counters(*row[14:-1]))


def _listed(look: Look, now: Moment, owner: str | None, before: int | None, limit: int) -> list[JobStatus]:
    place = {"before": EVERY_JOB if before is None else before, "limit": limit}
    found = look("find_newest_jobs", **place) if owner is None else look("find_jobs_of_owner", owner=owner, **place)
    return newest_first(_statuses(look, now, {row[0]: ANY for row in found}))


def _expire(tx: Transaction, remember: Millis) -> Expired:
    forgotten = tx.numbers("find_forgotten_jobs", before=tx.now - remember, most=MOST_JOBS)
    if forgotten:
        tx.run("forget_jobs", runs=forgotten)
        forget_runs(tx, forgotten)
    over = tx.numbers("find_expired_jobs", now=tx.now, most=MOST_JOBS)
    if not over:
        return Expired(0, len(forgotten), len(forgotten) == MOST_JOBS)
    tx.cache.seen.sort_all(tx)
    if delete_some(tx, over, MOST_ROWS):
        return Expired(0, len(forgotten), more=True)
    tx.run("end_results", runs=over)
    tx.run("mark_gone", runs=over, now=tx.now)
    return Expired(len(over), len(forgotten), MOST_JOBS in (len(over), len(forgotten)))
