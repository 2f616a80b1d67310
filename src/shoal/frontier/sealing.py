"""Secrets are sealed on their way into any store: headers of tasks, passwords of exits, callbacks of jobs.

Headers stay sealed until a request is made with them (`shoal.work`), so that nothing that shows, moves or records tasks
has their secrets; addresses of exits and callbacks are opened here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

import msgspec
import structlog

from shoal.core import log_events
from shoal.core.outcome import Done, Settlement
from shoal.core.secrets.box import PREFIX, SecretBox
from shoal.core.task import Extra, NewTask
from shoal.errors import CannotUnseal
from shoal.frontier.contract.exits import ExitRecord, Exits, NewExit
from shoal.frontier.contract.frontier import Ask, Enqueued, Frontier, Granted
from shoal.frontier.contract.jobs import Callback, Jobs, NewJob, Store, Submitted
from shoal.frontier.contract.mover import Cargo, PackedLetter, PackedTask

if TYPE_CHECKING:
    from shoal.frontier.contract.cache import Cache
    from shoal.frontier.contract.engine import Engine
    from shoal.frontier.contract.jobs import Registry
    from shoal.frontier.contract.mover import Mover
    from shoal.frontier.contract.reader import Reader
    from shoal.frontier.contract.schema import Schema

EXIT, CALLBACK = "exit", "callback"
Packed = TypeVar("Packed", PackedTask, PackedLetter)
_extra = msgspec.json.Decoder(Extra)

log = structlog.get_logger("shoal")


def sealed_tasks(tasks: Sequence[NewTask], box: SecretBox) -> Sequence[NewTask]:
    """The tasks with their secret headers sealed; the same object if there are none, as nearly always."""
    for task in tasks:
        headers = task.extra.headers
        if headers is not None and box.seal_headers(headers) is not headers:
            return tuple(_sealed(each, box) for each in tasks)
    return tasks


def _sealed(task: NewTask, box: SecretBox) -> NewTask:
    headers = task.extra.headers
    if headers is None:
        return task
    extra = msgspec.structs.replace(task.extra, headers=box.seal_headers(headers))
    return msgspec.structs.replace(task, extra=extra)


def _settled(settlements: Sequence[Settlement], box: SecretBox) -> Sequence[Settlement]:
    """The same for the links that settlements bring."""
    found: list[Settlement] | None = None
    for position, settlement in enumerate(settlements):
        outcome = settlement.outcome
        if type(outcome) is Done and outcome.tasks:
            tasks = sealed_tasks(outcome.tasks, box)
            if tasks is not outcome.tasks:
                found = list(settlements) if found is None else found
                sealed = msgspec.structs.replace(outcome, tasks=tuple(tasks))
                found[position] = msgspec.structs.replace(settlement, outcome=sealed)
    return settlements if found is None else found


def resealed_cargo(cargo: Cargo, old: SecretBox, new: SecretBox) -> Cargo:
    """What is on its way to another store, its secrets sealed with the key of that one. Raises CannotUnseal."""
    return msgspec.structs.replace(
        cargo,
        tasks=[_resealed(task, old, new) for task in cargo.tasks],
        letters=[_resealed(letter, old, new) for letter in cargo.letters],
    )


def _resealed(packed: Packed, old: SecretBox, new: SecretBox) -> Packed:
    if packed.extra is None or PREFIX not in packed.extra:
        return packed
    extra = _extra.decode(packed.extra)
    if extra.headers is None:
        return packed
    extra = msgspec.structs.replace(extra, headers=new.seal_headers(old.open_headers(extra.headers)))
    return msgspec.structs.replace(packed, extra=msgspec.json.encode(extra).decode())


class SealedFrontier:
    """A frontier whose tasks keep their secrets."""

    def __init__(self, frontier: Frontier, box: SecretBox) -> None:
        self._box = box
        self._frontier = frontier
        self.create_run, self.seal_run = frontier.create_run, frontier.seal_run
        self.pause_run, self.resume_run, self.cancel_run = frontier.pause_run, frontier.resume_run, frontier.cancel_run
        self.renew, self.sweep, self.forget_notes = frontier.renew, frontier.sweep, frontier.forget_notes
        self.requeue_dead, self.purge_dead = frontier.requeue_dead, frontier.purge_dead

    async def enqueue(self, run_id: str, tasks: Sequence[NewTask]) -> Enqueued:
        return await self._frontier.enqueue(run_id, sealed_tasks(tasks, self._box))

    async def exchange(self, ask: Ask) -> Granted:
        settlements = _settled(ask.settlements, self._box)
        if settlements is not ask.settlements:
            ask = msgspec.structs.replace(ask, settlements=settlements)
        return await self._frontier.exchange(ask)


class SealedExits:
    """Exits whose passwords the store cannot read."""

    def __init__(self, exits: Exits, box: SecretBox) -> None:
        self._exits = exits
        self._box = box
        self._told: set[str] = set()
        self.remove, self.ban = exits.remove, exits.ban
        self.release, self.release_site = exits.release, exits.release_site

    async def put(self, exits: Sequence[NewExit]) -> None:
        await self._exits.put([self._sealed(exit_) for exit_ in exits])

    def _sealed(self, exit_: NewExit) -> NewExit:
        if "@" not in exit_.address:
            return exit_
        return msgspec.structs.replace(exit_, address=self._box.seal(exit_.address, EXIT))

    async def all(self) -> Sequence[ExitRecord]:
        return [self._opened(record) for record in await self._exits.all()]

    def _opened(self, record: ExitRecord) -> ExitRecord:
        """One whose address cannot be opened here is one of which only the health is known."""
        try:
            address = self._box.open(record.address, EXIT)
        except CannotUnseal as error:
            if record.name not in self._told:
                self._told.add(record.name)
                log.warning(log_events.EXIT_REFUSED, exit=record.name, reason=str(error))
            address = ""
        return record if address is record.address else msgspec.structs.replace(record, address=address)


class SealedJobs:
    """Jobs whose tasks and callbacks keep their secrets."""

    def __init__(self, jobs: Jobs, box: SecretBox) -> None:
        self._jobs = jobs
        self._box = box
        self.statuses, self.results, self.listed = jobs.statuses, jobs.results, jobs.listed
        self.backlogs, self.clear_callbacks = jobs.backlogs, jobs.clear_callbacks
        self.expire, self.give_up = jobs.expire, jobs.give_up

    async def submit(self, jobs: Sequence[NewJob]) -> Sequence[Submitted]:
        return await self._jobs.submit([self._sealed(job) for job in jobs])

    def _sealed(self, job: NewJob) -> NewJob:
        tasks = sealed_tasks(job.tasks, self._box)
        if job.callback is None:
            return job if tasks is job.tasks else msgspec.structs.replace(job, tasks=tasks)
        callback = self._box.seal(job.callback.decode(), CALLBACK).encode()
        return msgspec.structs.replace(job, tasks=tasks, callback=callback)

    async def callbacks(self, limit: int = 100) -> Sequence[Callback]:
        """Those that can be opened here; the others wait for a gateway that has their key."""
        return [
            opened for callback in await self._jobs.callbacks(limit) if (opened := self._opened(callback)) is not None
        ]

    def _opened(self, callback: Callback) -> Callback | None:
        try:
            return Callback(callback.job_id, self._box.open(callback.body.decode(), CALLBACK).encode())
        except CannotUnseal as error:
            log.warning(log_events.WEBHOOK_REFUSED, job=callback.job_id, reason=str(error))
            return None


class SealedEngine:
    """An engine with secrets sealed. All else is as it is."""

    def __init__(self, engine: Engine, box: SecretBox) -> None:
        self._engine = engine
        self.frontier: Frontier = SealedFrontier(engine.frontier, box)
        self.exits: Exits = SealedExits(engine.exits, box)
        self.reader: Reader = engine.reader
        self.cache: Cache = engine.cache

    @property
    def shares_clock(self) -> bool:
        return self._engine.shares_clock

    async def close(self) -> None:
        await self._engine.close()


class SealedStore(SealedEngine):
    """The same for a store with jobs and records. A move carries what is sealed as it is."""

    def __init__(self, store: Store, box: SecretBox) -> None:
        super().__init__(store, box)
        self.jobs: Jobs = SealedJobs(store.jobs, box)
        self.registry: Registry = store.registry
        self.mover: Mover = store.mover
        self.losses: Sequence[str] = store.losses
        self.schema: Schema = store.schema
