"""What an Orchestrator answers: where a run stands, what starting one came to, what a scraper is set to.

`as_dict` of each is the one place where its JSON is made: `--json` of the command line prints it.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec

from shoal.core.clock import iso, utc
from shoal.core.lanes import left_for_pages
from shoal.core.task import RunState
from shoal.frontier.contract.frontier import standing
from shoal.frontier.contract.mover import MoveState
from shoal.insight.workers import is_stopped

if TYPE_CHECKING:
    from collections.abc import Iterable

    from shoal.api.scraper import Scraper
    from shoal.frontier.contract.frontier import Run
    from shoal.frontier.contract.reader import WorkerRecord

INTERRUPTED = "interrupted"
UNATTENDED = "waiting for workers"
_MONITORED = {"waiting": "pending", "leased": "claimed", "done": "completed", "dead": "failed"}
"""Counts under the names that monitoring expects of a queue."""


class RunMove(msgspec.Struct, frozen=True):
    """The last move of a run to or from another store. `other`: that store, without its password."""

    state: MoveState
    other: str


class RunStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run stands, with every count, at one moment.

    `state`: `open` (being filled), `running`, `paused`, `finished`, `cancelled`.
    `pending`, `claimed`, `completed`, `failed`, `expired`, `dropped`, `cancelled`: tasks, each counted once.
    `remaining`: `pending` and `claimed` together. `failed`: dead letters.
    `items`: records that handlers have yielded.
    `requests`, `received`: requests that were made, and the bytes of their answers.
    `retries`, `snoozes`, `crashes`: how often a task was tried again, told to wait by its site, lost with a worker.
    `duplicates`, `refused`, `late`: links that were known, that cannot be fetched; settlements that came too late.
    `saved_requests`, `saved_bytes`: what did not have to be asked for, or sent, because it was remembered.
    `lanes`: tasks that remain, by lane. `move`: its last move to or from another store; None = it never was moved.
    `stopped`: there is work left, and no worker that takes it on lives.
    `standing`: its state in words, which says that, too: `interrupted` (mode single), `waiting for workers`.
    """

    run_id: str
    scraper: str
    mode: str
    state: RunState
    created_at: datetime
    ended_at: datetime | None
    remaining: int
    pending: int
    claimed: int
    completed: int
    failed: int
    expired: int
    dropped: int
    cancelled: int
    items: int
    requests: int
    received: int
    retries: int
    snoozes: int
    crashes: int
    duplicates: int
    refused: int
    late: int
    saved_requests: int
    saved_bytes: int
    lanes: dict[str, int]
    move: RunMove | None = None
    stopped: bool = False

    @property
    def standing(self) -> str:
        """Its state in words: also that nobody works on it, or that it moves to or from another store, or has gone."""
        if self.stopped:
            return INTERRUPTED if self.mode == "single" else UNATTENDED
        return self.state.value if self.move is None else standing(self.state, self.move.state, self.move.other)

    @property
    def left_for_pages(self) -> int:
        """Tasks that page workers have still to do."""
        return left_for_pages(self.remaining, self.lanes)

    @property
    def seconds(self) -> float | None:
        """How long it took from beginning to end; None = it has not ended."""
        return None if self.ended_at is None else (self.ended_at - self.created_at).total_seconds()

    def as_dict(self) -> dict[str, Any]:
        """The same as JSON has it, under the same names; moments as texts (ISO 8601, UTC)."""
        return msgspec.structs.asdict(self) | {
            "state": self.state.value,
            "standing": self.standing,
            "created_at": iso(self.created_at),
            "ended_at": iso(self.ended_at),
            "move": None if self.move is None else {"state": self.move.state.value, "other": self.move.other},
        }


def status_of(run: Run, workers: Iterable[WorkerRecord] | None = None) -> RunStatus:
    """A run of the store, as those who ask are told of it. `workers`: all there are; None = somebody is at work."""
    counts = {_MONITORED.get(name, name): number for name, number in msgspec.structs.asdict(run.counters).items()}
    return RunStatus(
        run_id=run.run_id,
        scraper=run.scraper,
        mode=run.mode,
        state=run.state,
        created_at=utc(run.created_at),
        ended_at=None if run.ended_at is None else utc(run.ended_at),
        remaining=run.counters.remaining,
        lanes=run.lanes,
        move=None if run.move is None else RunMove(run.move.state, run.move.other),
        stopped=workers is not None and is_stopped(run, workers),
        **counts,
    )


class ResultStatus(StrEnum):
    """What starting a run came to: left to workers, stopped by the user, or the state that the run is in now.

    `running`: nothing is left to do here; what remains is for workers of other lanes.
    """

    QUEUED = "queued"
    INTERRUPTED = "interrupted"
    OPEN = "open"
    RUNNING = "running"
    PAUSED = "paused"
    FINISHED = "finished"
    CANCELLED = "cancelled"


class BarrenStart(msgspec.Struct, frozen=True):
    """A start page that gave neither an item nor a link. `url`: after redirects. `size`: of its body, in bytes."""

    url: str
    status: int
    size: int


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """What starting a run came to.

    `enqueued`: tasks that it was given to begin with, and had not seen.
    `run`: where it stands at the end, or where it was left to workers.
    `worker_command`: the command to start workers with, on as many machines as you like; None = it was worked on here.
    `seconds`: how long it was worked on, or followed. `completed_before`: of its pages, those that were done before.
    `halted`: why it was paused, if its first pages all failed in the handler in the same way; None = it was not.
    `exported`: items that were written to `output`; None = nothing was to be written, or not yet.
    `refused_by`, `dropped_by`: of what this process met, why links were refused and pages dropped, and how many.
    `barren_start`: the first start page, if no page gave an item or a link; else None.
    `items`: all that the run has given, as they were yielded, where it was started by `Scraper.run`; else None.
    """

    status: ResultStatus
    enqueued: int
    run: RunStatus
    worker_command: str | None = None
    seconds: float = 0.0
    completed_before: int = 0
    exported: int | None = None
    halted: str | None = None
    refused_by: dict[str, int] = {}
    dropped_by: dict[str, int] = {}
    barren_start: BarrenStart | None = None
    items: list[Any] | None = None

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self.run.run_id

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it: status, run_id, enqueued and worker_command if it was left to workers; else the run."""
        if self.status is ResultStatus.QUEUED:
            return {
                "status": self.status.value,
                "run_id": self.run_id,
                "enqueued": self.enqueued,
                "worker_command": self.worker_command,
            }
        told = {"status": self.status.value, "enqueued": self.enqueued, **self.run.as_dict()}
        return told if self.halted is None else told | {"halted": self.halted}


class ScraperInfo(msgspec.Struct, frozen=True, kw_only=True):
    """How a scraper would run as it is now, settings included if they were laid over it.

    The options mean what they mean for `Scraper`. `handlers`: their labels; the default one is `""`.
    `input`: the JSON schema of its input; None = it takes none.
    """

    name: str
    mode: str
    delay: float
    site_delay: float
    concurrency: int
    attempts: int
    timeout: float
    obey_robots: bool
    site: str
    cache: float | None
    every: float | None
    lane: str | None
    max_depth: int | None
    handlers: list[str]
    input: dict[str, Any] | None

    def as_dict(self) -> dict[str, Any]:
        """The same as JSON has it."""
        return msgspec.structs.asdict(self)


def info_of(scraper: Scraper) -> ScraperInfo:
    """A scraper, as those who ask are told of it."""
    return ScraperInfo(
        name=scraper.name,
        mode=scraper.mode,
        delay=scraper.delay,
        site_delay=scraper.site_delay,
        concurrency=scraper.concurrency,
        attempts=scraper.attempts,
        timeout=scraper.timeout,
        obey_robots=scraper.obey_robots,
        site=scraper.site,
        cache=scraper.cache,
        every=scraper.every,
        lane=scraper.lane,
        max_depth=scraper.max_depth,
        handlers=sorted(label or "" for label in scraper.handlers),
        input=scraper.input.model_json_schema() if scraper.input else None,
    )
