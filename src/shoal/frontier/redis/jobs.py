"""Jobs: made whole in the first partition, looked at in groups, and forgotten when their time is over."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from shoal.core.clock import Millis
from shoal.core.storable import findable, is_storable
from shoal.core.task import NewTask, RunState
from shoal.frontier.contract.frontier import Counters
from shoal.frontier.contract.jobs import ANY, LATELY, Backlog, Callback, Expired, JobStatus, NewJob, Submitted
from shoal.frontier.contract.reader import Item
from shoal.frontier.redis.codec.encoding import opaque
from shoal.frontier.redis.codec.items import stored_items
from shoal.frontier.redis.codec.job_rows import (
    Admitted,
    Found,
    decode_admitted,
    decode_found,
    job_question,
    run_fields,
    status_of,
)
from shoal.frontier.redis.codec.tasks import task_groups
from shoal.frontier.redis.store.client import RedisStore
from shoal.frontier.redis.store.partitions import Partitions
from shoal.frontier.shared.job_status import may_have_expired, newest_first, whole_version
from shoal.frontier.shared.refusals import storable_only
from shoal.frontier.shared.repeated_jobs import apart_from_repeats

MOST_JOBS = 500
"""How many jobs one `expire` lets go."""

JOBS_AT_ONCE = 500
VERSIONS_AT_ONCE = 5000
"""How many jobs one script, and one plain command, looks at: nobody else is served meanwhile."""


class RedisJobs:
    """The `Jobs` of this engine."""

    def __init__(self, store: RedisStore, partitions: Partitions) -> None:
        self._store = store
        self._partitions = partitions

    async def submit(self, jobs: Sequence[NewJob]) -> Sequence[Submitted]:
        different, answers = apart_from_repeats(jobs)
        if not different:
            return []
        with storable_only(self._store.name):
            apart = [self._apart(job.tasks) for job in different]
            question = job_question(different, apart)
        answer = await self._store.call("submit_jobs", 0, question)
        now, admitted = decode_admitted(answer)
        if self._store.partitions > 1:
            await self._deliver(now, different, apart, admitted)
        return answers([each.submitted() for each in admitted])

    async def statuses(self, known: Mapping[str, int]) -> Sequence[JobStatus]:
        """What a partition has counted of a job is a number there, by id: of those that did not change, no more is
        read. Only time makes results expire: jobs that have ended are always looked at."""
        known = {job_id: version for job_id, version in known.items() if is_storable(job_id)}
        asked = [job_id for job_id, version in known.items() if version == ANY]
        watched = {job_id: version for job_id, version in known.items() if version != ANY}
        versions = await self._versions(list(watched))
        asked += [
            job_id
            for job_id, version in watched.items()
            if (now := versions.get(job_id)) is not None and (now != version or may_have_expired(now))
        ]
        found = await self._read(asked)
        return [status for status in found if status.version != known[status.job_id]]

    async def results(self, job_ids: Sequence[str], most: int, most_bytes: int) -> Mapping[str, Sequence[Item]]:
        results: dict[str, list[Item]] = {}
        job_ids = list(filter(is_storable, job_ids))
        left = dict.fromkeys(job_ids, most_bytes)
        for partition in range(self._store.partitions):
            for some in _parts(job_ids, JOBS_AT_ONCE):
                asked = {"ids": some, "most": most, "bytes": [max(left[job_id], 0) for job_id in some]}
                rows = await self._store.call("read_results", partition, asked)
                for job_id, (size, batches) in zip(some, rows, strict=True):
                    left[job_id] -= size
                    if batches is None or (partition and job_id not in results):
                        continue
                    items = results.setdefault(job_id, [])
                    for batch in batches:
                        items += stored_items(batch)[: most - len(items)]
        return {job_id: items for job_id, items in results.items() if left[job_id] >= 0}

    async def listed(self, owner: str | None, before: int | None = None, limit: int = 100) -> Sequence[JobStatus]:
        found = await self._store.call(
            "find_jobs", 0, {"owner": None if owner is None else findable(owner), "before": before, "most": limit}
        )
        return newest_first(await self._read([job_id.decode() for job_id in found]))

    async def backlogs(self) -> Sequence[Backlog]:
        rows = await self._store.call("read_backlogs", 0, {"lately": LATELY})
        return [Backlog(queue.decode(), unfinished, ended) for queue, unfinished, ended in rows]

    async def callbacks(self, limit: int = 100) -> Sequence[Callback]:
        rows = await self._store.call("read_callbacks", 0, {"most": limit})
        return [Callback(job_id.decode(), body) for job_id, body in rows]

    async def clear_callbacks(self, job_ids: Sequence[str]) -> None:
        await self._store.call("clear_callbacks", 0, {"ids": list(filter(is_storable, job_ids))})

    async def give_up(self, queue: str, age: Millis, reason: str) -> Sequence[str]:
        asked = {"queue": queue, "age": age, "reason": reason, "most": MOST_JOBS}
        return [job_id.decode() for job_id in await self._store.call("give_up_jobs", 0, asked)]

    async def expire(self, remember: Millis) -> Expired:
        """What is gone leaves the first partition first, what is forgotten leaves it last: so if this is cut short,
        what the others still have is forgotten in the end."""
        asked = {"remember": remember, "lately": LATELY, "most": MOST_JOBS}
        over, old = await self._store.call("find_expired", 0, asked)
        forgotten = [job_id.decode() for job_id in old]
        if forgotten:
            for partition in reversed(range(self._store.partitions)):
                await self._store.call("forget_jobs", partition, {"ids": forgotten})
        statuses = await self._read([job_id.decode() for job_id in over])
        gone = [status.job_id for status in statuses if not status.counters.remaining]
        if gone:
            decided = await self._store.call("expire_jobs", 0, {"ids": gone})
            gone = [job_id.decode() for job_id in decided]
            for partition in self._partitions.others:
                await self._store.call("expire_jobs", partition, {"ids": gone})
        more = len(forgotten) == MOST_JOBS or (len(over) == MOST_JOBS and bool(gone))
        return Expired(len(gone), len(forgotten), more)

    def _apart(self, tasks: Sequence[NewTask]) -> dict[int, list[NewTask]]:
        """Tasks by partition."""
        apart: dict[int, list[NewTask]] = {}
        for task in tasks:
            apart.setdefault(self._store.partition_of(task.site), []).append(task)
        return apart

    async def _deliver(
        self,
        now: int,
        jobs: Sequence[NewJob],
        apart: Sequence[Mapping[int, Sequence[NewTask]]],
        admitted: Sequence[Admitted],
    ) -> None:
        """Bring the tasks that are not of the first partition to theirs. If this is cut short, a sweep does it."""
        rows: dict[int, list[object]] = {}
        serials: list[int] = []
        for job, places, answer in zip(jobs, apart, admitted, strict=True):
            targets = [target for target in places if target]
            for target, serial in zip(targets, answer.serials, strict=False):
                tasks = task_groups(places[target])
                fields = [opaque(value) for value in run_fields(job, now)]
                rows.setdefault(target, []).append((f"0:{serial}", job.run.run_id, answer.number, fields, tasks))
                serials.append(serial)
        await asyncio.gather(*(self._store.call("take_jobs", target, {"rows": some}) for target, some in rows.items()))
        if serials:
            await self._store.call("delivered", 0, {"serials": serials})
            done = [job.run.run_id for job, places in zip(jobs, apart, strict=True) if any(places)]
            statuses = await self._read(done)
            await self._partitions.finish(
                status.job_id
                for status in statuses
                if status.run_state is RunState.RUNNING and not status.counters.remaining
            )

    async def _versions(self, job_ids: Sequence[str]) -> dict[str, int]:
        """The versions of jobs, without any that only time brings about. Unknown: absent."""
        found: dict[str, list[int]] = {}
        for partition in range(self._store.partitions):
            key = f"{self._store.tag(partition)}:jv"
            for some in _parts(job_ids, VERSIONS_AT_ONCE):
                answer = await self._store.command("HMGET", key, *some)
                for job_id, version in zip(some, answer, strict=True):
                    if version is not None:
                        found.setdefault(job_id, []).append(int(version))
        return {job_id: whole_version(versions) for job_id, versions in found.items()}

    async def _read(self, job_ids: Sequence[str]) -> list[JobStatus]:
        statuses: list[JobStatus] = []
        for some in _parts(job_ids, JOBS_AT_ONCE):
            asked = {"ids": some, "counters": Counters.__struct_fields__}
            answers = await asyncio.gather(
                *(self._store.call("read_jobs", partition, asked) for partition in self._everywhere)
            )
            moments, founds = zip(*map(decode_found, answers), strict=True)
            for rows in zip(*founds, strict=True):
                status = status_of(moments[0], [row for row in rows if isinstance(row, Found)])
                if status is not None:
                    statuses.append(status)
        return statuses

    @property
    def _everywhere(self) -> range:
        return range(self._store.partitions)


class RedisRegistry:
    """The `Registry` of this engine: all in the first partition."""

    def __init__(self, store: RedisStore) -> None:
        self._store = store

    async def records(self, kind: str) -> Mapping[str, bytes]:
        found = await self._store.command("HGETALL", f"{self._store.tag(0)}:rec:{findable(kind)}")
        return {name.decode(): body for name, body in found.items()}

    async def put_record(self, kind: str, name: str, body: bytes) -> None:
        await self._store.call("write_record", 0, {"kind": kind, "name": name, "body": opaque(body)})

    async def remove_record(self, kind: str, name: str) -> bool:
        return bool(await self._store.call("remove_record", 0, {"kind": findable(kind), "name": findable(name)}))


def _parts(job_ids: Sequence[str], size: int) -> Iterable[Sequence[str]]:
    for first in range(0, len(job_ids), size):
        yield job_ids[first : first + size]
