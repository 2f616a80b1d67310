"""The event log: what was asked of the frontier and what it answered, one line each, for whoever has to prove it.

`events = "folder"` in the settings turns it on. Each process then writes a file of its own into that folder. A line is
one unbuffered write, so that `kill -9` loses at most the one that was being written. A call has its line before it is
made: one without an answer may have happened or not. `shoal.testing.history` reads the folder.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from shoal.core.clock import Clock, Moment, SystemClock
from shoal.core.task import NewTask
from shoal.errors import BadSettings
from shoal.frontier.contract.cache import Cache
from shoal.frontier.contract.engine import Engine
from shoal.frontier.contract.exits import Exits
from shoal.frontier.contract.frontier import Ask, Enqueued, Frontier, Granted, NewRun, Renewal, Run, Swept, WorkerInfo
from shoal.frontier.contract.reader import Reader
from shoal.frontier.shared.private_files import new_private_file

Result = TypeVar("Result")


class Offer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What `enqueue` is given."""

    run_id: str
    tasks: Sequence[NewTask]


class Renewals(msgspec.Struct, frozen=True, omit_defaults=True):
    """What `renew` is given."""

    worker: WorkerInfo
    leases: Sequence[Renewal]


class Letters(msgspec.Struct, frozen=True, omit_defaults=True):
    """What `requeue_dead` and `purge_dead` are given. `tasks`: None = all of the run."""

    run_id: str
    tasks: Sequence[int] | None = None


VERBS: dict[str, tuple[Any, Any]] = {
    "create_run": (NewRun, Run),
    "seal_run": (str, None),
    "pause_run": (str, None),
    "resume_run": (str, None),
    "cancel_run": (str, None),
    "enqueue": (Offer, Enqueued),
    "exchange": (Ask, Granted),
    "renew": (Renewals, list[int]),
    "sweep": (None, Swept),
    "requeue_dead": (Letters, int),
    "purge_dead": (Letters, int),
    "forget_notes": (str, None),
}
"""Every verb of the frontier, with the types of what it is given and of what it answers."""


class Opened(msgspec.Struct, frozen=True, tag="opened", tag_field="event"):
    """The first line of a process: it has opened the engine. `at`, here and below: by the clock of its machine."""

    at: Moment
    pid: int


class Called(msgspec.Struct, frozen=True, tag="called", tag_field="event"):
    """A verb is about to be called. `number` counts the calls of this process."""

    at: Moment
    number: int
    verb: str
    given: msgspec.Raw


class Answered(msgspec.Struct, frozen=True, tag="answered", tag_field="event"):
    """The call of that number was answered."""

    at: Moment
    number: int
    answer: msgspec.Raw


class Failed(msgspec.Struct, frozen=True, tag="failed", tag_field="event"):
    """The call of that number raised, or was not waited for. Nobody knows what became of it."""

    at: Moment
    number: int
    error: str


class Closed(msgspec.Struct, frozen=True, tag="closed", tag_field="event"):
    """The last line of a process that ended in good order."""

    at: Moment


Event = Opened | Called | Answered | Failed | Closed


class Recorder:
    """Writes the lines of one process to a new file in `folder`. Raises BadSettings if it cannot be made."""

    def __init__(self, folder: Path, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._encode = msgspec.json.Encoder().encode
        self._calls = 0
        name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}.jsonl"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file: int | None = new_private_file(folder / name)
        except OSError as error:
            raise BadSettings(f"events = {str(folder)!r}: nothing can be written there ({error.strerror}).") from None
        self._write(Opened(self._clock.now(), os.getpid()))

    async def noted(self, verb: str, given: object, work: Callable[[], Awaitable[Result]]) -> Result:
        """Do the work, with a line before and after it."""
        self._calls += 1
        number = self._calls
        self._write(Called(self._clock.now(), number, verb, msgspec.Raw(self._encode(given))))
        try:
            answer = await work()
        except BaseException as error:
            self._write(Failed(self._clock.now(), number, f"{type(error).__name__}: {error}"))
            raise
        self._write(Answered(self._clock.now(), number, msgspec.Raw(self._encode(answer))))
        return answer

    def close(self) -> None:
        """The last line. The second time: nothing."""
        if self._file is not None:
            self._write(Closed(self._clock.now()))
            os.close(self._file)
            self._file = None

    def _write(self, event: Event) -> None:
        if self._file is not None:
            os.write(self._file, self._encode(event) + b"\n")


class RecordedFrontier:
    """A frontier that does what the one behind it does, and writes it down."""

    def __init__(self, frontier: Frontier, recorder: Recorder) -> None:
        self._frontier = frontier
        self._noted = recorder.noted

    async def create_run(self, run: NewRun) -> Run:
        return await self._noted("create_run", run, lambda: self._frontier.create_run(run))

    async def seal_run(self, run_id: str) -> None:
        await self._noted("seal_run", run_id, lambda: self._frontier.seal_run(run_id))

    async def pause_run(self, run_id: str) -> None:
        await self._noted("pause_run", run_id, lambda: self._frontier.pause_run(run_id))

    async def resume_run(self, run_id: str) -> None:
        await self._noted("resume_run", run_id, lambda: self._frontier.resume_run(run_id))

    async def cancel_run(self, run_id: str) -> None:
        await self._noted("cancel_run", run_id, lambda: self._frontier.cancel_run(run_id))

    async def enqueue(self, run_id: str, tasks: Sequence[NewTask]) -> Enqueued:
        return await self._noted("enqueue", Offer(run_id, tasks), lambda: self._frontier.enqueue(run_id, tasks))

    async def exchange(self, ask: Ask) -> Granted:
        return await self._noted("exchange", ask, lambda: self._frontier.exchange(ask))

    async def renew(self, worker: WorkerInfo, leases: Sequence[Renewal]) -> Sequence[int]:
        return await self._noted("renew", Renewals(worker, leases), lambda: self._frontier.renew(worker, leases))

    async def sweep(self) -> Swept:
        return await self._noted("sweep", None, self._frontier.sweep)

    async def requeue_dead(self, run_id: str, tasks: Sequence[int] | None = None) -> int:
        given = Letters(run_id, tasks)
        return await self._noted("requeue_dead", given, lambda: self._frontier.requeue_dead(run_id, tasks))

    async def purge_dead(self, run_id: str, tasks: Sequence[int] | None = None) -> int:
        given = Letters(run_id, tasks)
        return await self._noted("purge_dead", given, lambda: self._frontier.purge_dead(run_id, tasks))

    async def forget_notes(self, stream: str) -> None:
        await self._noted("forget_notes", stream, lambda: self._frontier.forget_notes(stream))


class RecordedEngine:
    """An engine whose frontier is written down. Reading and caching move no task, and leave no line; nor do exits."""

    def __init__(self, engine: Engine, recorder: Recorder) -> None:
        self._engine = engine
        self._recorder = recorder
        self.frontier: Frontier = RecordedFrontier(engine.frontier, recorder)

    @property
    def reader(self) -> Reader:
        return self._engine.reader

    @property
    def cache(self) -> Cache:
        return self._engine.cache

    @property
    def exits(self) -> Exits:
        return self._engine.exits

    @property
    def shares_clock(self) -> bool:
        return self._engine.shares_clock

    async def close(self) -> None:
        await self._engine.close()
        self._recorder.close()
