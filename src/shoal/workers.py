"""Workers as one looks at them from outside: whether they live, and who could work on a run."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from shoal.clock import Millis
from shoal.frontier.protocol import Run
from shoal.frontier.reading import WorkerRecord
from shoal.presence import is_gone, this_machine

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


def is_left_alone(run: Run, records: Iterable[WorkerRecord]) -> bool:
    """Whether a run has work to be done now, and no live worker takes it on."""
    under_way = run.ended_at is None and run.state.value in ("open", "running") and run.counters.remaining > 0
    return under_way and not any(lives(record) and takes_on(record, run) for record in records)
