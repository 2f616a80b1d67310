"""Workers as one looks at them from outside: whether they live, and who could work on a run."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from shoal.core.clock import Millis, iso, utc
from shoal.core.task import RunState
from shoal.core.url import without_credentials
from shoal.frontier.contract.frontier import Run
from shoal.frontier.contract.reader import WorkerRecord
from shoal.frontier.shared.liveness import is_gone, this_machine

SILENT_AFTER: Millis = 30_000
"""A worker speaks to its store every few seconds, whether it has work or not."""

GONE_AFTER: Millis = 300_000


class WorkerState(StrEnum):
    """`silent`: not heard of for half a minute; stuck, cut off or dead. `gone`: its process has ended, or five minutes
    have passed."""

    WORKING = "working"
    IDLE = "idle"
    SILENT = "silent"
    GONE = "gone"


class WorkerTask(msgspec.Struct, frozen=True):
    """Something that a worker has in hand. `url`: without credentials."""

    run_id: str
    lane: str
    url: str


class WorkerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A worker: who it is, when it was last heard of, what it takes on, and some of what it has in hand.

    `silent`: seconds since it was last heard of. `queues`: None = all runs of its scrapers. `leases`: all that it has
    in hand; `tasks`: the first few of them.
    """

    worker_id: str
    machine: str
    pid: int
    state: WorkerState
    seen_at: datetime
    silent: float
    leases: int
    scrapers: list[str]
    lanes: list[str]
    queues: list[str] | None
    tasks: list[WorkerTask]

    def as_dict(self) -> dict[str, Any]:
        """The same as JSON has it."""
        return msgspec.structs.asdict(self) | {
            "state": self.state.value,
            "seen_at": iso(self.seen_at),
            "tasks": [msgspec.structs.asdict(task) for task in self.tasks],
        }


def worker_status(record: WorkerRecord) -> WorkerStatus:
    """A worker of the store, as those who ask are told of it."""
    info = record.info
    return WorkerStatus(
        worker_id=info.worker_id,
        machine=info.machine.partition("/")[0],
        pid=info.pid,
        state=state_of(record),
        seen_at=utc(record.seen_at),
        silent=record.silent / 1000,
        leases=record.leases,
        scrapers=list(info.duties.scrapers),
        lanes=list(info.duties.lanes),
        queues=None if info.duties.queues is None else list(info.duties.queues),
        tasks=[WorkerTask(task.run_id, task.lane, without_credentials(task.url)) for task in record.tasks],
    )


def state_of(record: WorkerRecord) -> WorkerState:
    """How a worker is. Of processes on this machine it is known at once when they have ended."""
    info = record.info
    if record.silent > GONE_AFTER or (info.machine == this_machine() and is_gone(info.pid, info.pid_started)):
        return WorkerState.GONE
    if record.silent > SILENT_AFTER:
        return WorkerState.SILENT
    return WorkerState.WORKING if record.leases else WorkerState.IDLE


def lives(record: WorkerRecord) -> bool:
    """Whether something may be expected of it."""
    return state_of(record) in (WorkerState.WORKING, WorkerState.IDLE)


def takes_on(record: WorkerRecord, run: Run) -> bool:
    """Whether a run is among the duties of a worker."""
    duties = record.info.duties
    return run.scraper in duties.scrapers and (duties.queues is None or run.queue in duties.queues)


def works_lane(record: WorkerRecord, run: Run, lane: str) -> bool:
    """Whether a worker takes on what waits for a run in this lane."""
    return takes_on(record, run) and lane in record.info.duties.lanes


def is_stopped(run: Run, records: Iterable[WorkerRecord]) -> bool:
    """Whether a run is under way by its state alone: there is work left, and every worker that took it on is gone."""
    under_way = run.state is RunState.RUNNING and run.counters.remaining > 0
    return under_way and not any(
        state_of(record) is not WorkerState.GONE and takes_on(record, run) for record in records
    )


def is_left_alone(run: Run, records: Iterable[WorkerRecord]) -> bool:
    """Whether a run has work to be done now, and no live worker takes it on."""
    under_way = run.ended_at is None and run.state.value in ("open", "running") and run.counters.remaining > 0
    return under_way and not any(lives(record) and takes_on(record, run) for record in records)
