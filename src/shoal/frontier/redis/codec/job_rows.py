"""Jobs as the scripts read and write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from shoal.core.clock import Moment
from shoal.core.task import NewTask, RunState
from shoal.frontier.contract.frontier import Counters
from shoal.frontier.contract.jobs import Admission, JobStatus, NewJob, Submitted
from shoal.frontier.redis.codec.encoding import encode, opaque
from shoal.frontier.redis.codec.runs import run_question
from shoal.frontier.redis.codec.tasks import task_groups
from shoal.frontier.shared.job_batch import groups_of, kinds_of
from shoal.frontier.shared.job_status import StoredJob, version_of


class Admitted(msgspec.Struct, array_like=True, frozen=True):
    """What became of a job, and the serials of the parcels that were left for other partitions."""

    admission: Admission
    job_id: str
    position: int
    fingerprint: str
    used: int
    resets_at: Moment
    number: int
    serials: list[int]

    def submitted(self) -> Submitted:
        """For whoever submitted it."""
        print_ = bytes.fromhex(self.fingerprint)
        return Submitted(self.job_id, self.admission, self.position, print_, self.used, self.resets_at)


class Described(msgspec.Struct, array_like=True, frozen=True):
    """What the first partition knows of a job. False = there is none."""

    job_id: str
    number: int
    scraper: str
    state: RunState
    created_at: Moment
    ended_at: Moment | bool
    results_until: Moment | bool
    position: int
    owner: str
    groups: str
    error: str | bool
    gone: bool


class Found(msgspec.Struct, array_like=True, frozen=True):
    """What one partition knows of a job; what it is, only the first."""

    what: Described | bool
    counts: list[int]
    groups: list[str]


decode_admitted = msgspec.msgpack.Decoder(tuple[Moment, list[Admitted]]).decode
decode_found = msgspec.msgpack.Decoder(tuple[Moment, list[Found | bool]], strict=False).decode
"""Counters come as text."""


def job_question(jobs: Sequence[NewJob], apart: Sequence[Mapping[int, Sequence[NewTask]]]) -> dict[str, object]:
    """Jobs as `submit_jobs.lua` reads them. `apart`: the tasks of each, by partition."""
    examples, kinds = kinds_of(jobs)
    described = [[opaque(value) for value in _kind(job)] for job in examples]
    rows: list[object] = []
    for job, places, kind in zip(jobs, apart, kinds, strict=True):
        run = job.run
        quota = (-1, 1) if job.quota is None else (job.quota.most, job.quota.window)
        groups = groups_of(job)
        rows += (
            run.run_id,
            kind,
            _or_false(run.input),
            job.owner,
            job.key if job.key is not None else False,
            job.fingerprint.hex(),
            *quota,
            opaque(msgspec.json.encode(groups)) if groups else False,
            job.error if job.error is not None else False,
            _or_false(job.callback),
            task_groups(places.get(0, ())),
            [(target, opaque(encode(task_groups(some)))) for target, some in places.items() if target],
        )
    return {"kinds": described, "jobs": rows}


def run_fields(job: NewJob, created_at: Moment) -> list[bytes]:
    """The run of a job as a partition keeps it: names and values by turns."""
    names = (b"scraper", b"mode", b"queue", b"policy", b"rules")
    fields = [value for pair in zip(names, _kind(job), strict=True) for value in pair]
    own = [b"id", job.run.run_id.encode(), b"state", b"running", b"sealed", b"1", b"created_at", b"%d" % created_at]
    return fields + own


def status_of(now: Moment, parts: Sequence[Found]) -> JobStatus | None:
    """A job from what the partitions know of it, the first of them first; None = that one knows of no such job."""
    if not parts or not isinstance(what := parts[0].what, Described):
        return None
    counts = (
        parts[0].counts if len(parts) == 1 else [sum(column) for column in zip(*(p.counts for p in parts), strict=True)]
    )
    counters = Counters(*counts)
    ended_at = None if what.ended_at is False else int(what.ended_at)
    over = None if what.results_until is False else int(what.results_until)
    expired = what.gone or (over is not None and over <= now)
    return StoredJob(
        what.job_id,
        what.number,
        version_of(what.state, counters, expired=expired),
        what.scraper,
        what.owner,
        what.state,
        what.created_at,
        ended_at,
        over,
        what.position,
        what.groups,
        0 if ended_at is not None else len({group for part in parts for group in part.groups}),
        None if isinstance(what.error, bool) else what.error,
        expired,
    ).status(counters)


def _kind(job: NewJob) -> tuple[bytes, ...]:
    """What the runs of many jobs have in common: scraper, mode, queue, policy and rules."""
    asked = run_question(job.run)
    rules = {**asked["rules"], "job": True}
    run = job.run
    queue = run.queue or run.run_id
    return run.scraper.encode(), run.mode.encode(), queue.encode(), msgspec.json.encode(run.policy), encode(rules)


def _or_false(value: bytes | None) -> object:
    return False if value is None else opaque(value)
