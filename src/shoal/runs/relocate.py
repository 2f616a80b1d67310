"""Moving a run from one store to another, so that at no moment both hand out its tasks.

1. The old store closes it (`leaving`): nothing more is claimed, and those who work on it finish what they have.
2. The new store gets it, closed as well (`arriving`), part by part. What an earlier try left there goes first.
3. What has come is counted and compared.
4. The switch: the old store ends it (`left`). From here on there is no way back.
5. The new store opens it (`arrived`).

Cut short before 4, it goes on in the old store, or the same move is made again from the beginning. Cut short after 4,
the same move only does 5.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import msgspec

from shoal.core.clock import Clock, Millis, SystemClock
from shoal.core.notes import Entry
from shoal.core.secrets.box import NoKeys, SecretBox
from shoal.core.task import RunState
from shoal.errors import BeingMoved, EngineBroken, ShoalError, UnknownRun, UsageError
from shoal.frontier.contract.frontier import Counters, Run
from shoal.frontier.contract.jobs import Store
from shoal.frontier.contract.mover import Cargo, CargoCount, Move, MoveState
from shoal.frontier.sealing import resealed_cargo
from shoal.frontier.shared.clock_shift import Shift, shift_between

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Place:
    """A store, how it is called where people read it, without secrets, and what its secrets are sealed with."""

    engine: Store
    shown: str
    secrets: SecretBox = field(default_factory=NoKeys)


@dataclass(slots=True)
class Moved:
    """What was carried. `batches`: stored batches of items."""

    tasks: int = 0
    dead: int = 0
    items: int = 0
    batches: int = 0
    seen: int = 0
    sites: int = 0

    def add(self, cargo: Cargo) -> None:
        self.tasks += len(cargo.tasks)
        self.dead += len(cargo.letters)
        self.items += sum(batch.items for batch in cargo.items)
        self.batches += len(cargo.items)
        self.seen += len(cargo.keys)
        self.sites += len(cargo.sites)


@dataclass(slots=True)
class Journey:
    """One run on its way. `wait`: how long others may take to finish what they have in hand.

    `look_every`: seconds between two looks at whether anybody still works on it. `idle_sweeps`: how often a sweep may
    change nothing, before the rest of an old copy is left to the workers there.
    """

    run_id: str
    source: Place
    target: Place
    wait: Millis
    report: Report
    clock: Clock = field(default_factory=SystemClock)
    look_every: float = 0.25
    idle_sweeps: int = 20

    async def make(self) -> Moved | None:
        """Move the run. None = everything was there from an earlier try, and only had to be opened."""
        await self._refuse_the_same_store()
        run = await self.source.engine.reader.run(self.run_id)
        there = await self._in_target()
        if run.move is not None and run.move.state is MoveState.LEFT:
            await self._open_what_is_there(run.move, there)
            return None
        _refuse_unmovable(run)
        self._refuse_foreign(run, there)
        leaving = await self._close(run)
        try:
            moved = await self._carry(there is not None, leaving)
        except BaseException:
            with suppress(ShoalError):  # a store that has gone away cannot be told; `--resume` takes the run up again
                await self._turn_source(leaving, MoveState.STAYED)
            raise
        await self._open(self._arriving(leaving))
        return moved

    async def _carry(self, is_there: bool, leaving: Move) -> Moved:
        """Steps 1 to 4."""
        await self._wait_for_others()
        if is_there:
            await self._clear_target()
        before = (await self.source.engine.reader.run(self.run_id)).counters
        arriving = self._arriving(leaving)
        moved = await self._fill(arriving)
        await self._compare(moved, before)
        await self._count(arriving, moved)
        if not await self._turn_source(leaving, MoveState.LEFT):
            raise UsageError(
                f"The run {self.run_id!r} was taken up again in {self.source.shown} meanwhile, or cancelled, or is "
                "being moved by somebody else. It was not moved."
            )
        return moved

    async def _refuse_the_same_store(self) -> None:
        """What one store remembers and the other knows as well, is in one store."""
        key = f"move:{secrets.token_hex(16)}"
        await self.source.engine.cache.put([Entry(key, b"here", 60_000)])
        if key in await self.target.engine.cache.get([key]):
            raise UsageError(f"{self.source.shown} and {self.target.shown} are the same store: there is no way to go.")

    async def _in_target(self) -> Run | None:
        try:
            return await self.target.engine.reader.run(self.run_id)
        except UnknownRun:
            return None

    def _refuse_foreign(self, run: Run, there: Run | None) -> None:
        """Only a copy of the same run that nobody works on may give way."""
        if there is None:
            return
        of_the_same = run.move is not None and there.move is not None and run.move.lineage == there.move.lineage
        if of_the_same and there.move is not None and there.move.state in (MoveState.ARRIVING, MoveState.LEFT):
            return
        raise UsageError(
            f"{self.target.shown} already has a run {self.run_id!r} of its own. Nothing was changed. Choose another "
            "store, schema or prefix to move to."
        )

    async def _open_what_is_there(self, left: Move, there: Run | None) -> None:
        """The switch was made by an earlier try: the rest of it."""
        arriving = self._arriving(left)
        if there is None or there.move is None or there.move.lineage != left.lineage:
            raise UsageError(f"The run {self.run_id!r} was moved to {left.other} before, and is not in this store.")
        if there.move.state is MoveState.ARRIVING and there.move.attempt == left.attempt:
            await self._open(msgspec.structs.replace(arriving, other=there.move.other))
            return
        raise UsageError(f"The run {self.run_id!r} was moved to {left.other} before; there is nothing left to do.")

    async def _close(self, run: Run) -> Move:
        """Step 1. A try that was cut short has paused the run itself: that does not count as paused by hand."""
        known = run.move
        paused = run.state is RunState.PAUSED
        if known is not None and known.state is MoveState.LEAVING:
            paused = known.paused
        lineage, attempt = (secrets.token_hex(8), 0) if known is None else (known.lineage, known.attempt)
        leaving = Move(lineage, attempt + 1, MoveState.LEAVING, self.target.shown, paused)
        if not await self.source.engine.mover.turn(self.run_id, known, leaving):
            raise UsageError(f"The run {self.run_id!r} has just changed in {self.source.shown}. Look at it, try again.")
        return leaving

    def _arriving(self, leaving: Move) -> Move:
        return msgspec.structs.replace(leaving, state=MoveState.ARRIVING, other=self.source.shown)

    async def _turn_source(self, leaving: Move, state: MoveState) -> bool:
        return await self.source.engine.mover.turn(self.run_id, leaving, msgspec.structs.replace(leaving, state=state))

    async def _wait_for_others(self) -> None:
        """Until no lease lives: those of the dead come back by sweeping, the others are finished by their workers."""
        until = self.clock.elapsed() + self.wait
        said = 0
        while True:
            while (await self.source.engine.frontier.sweep()).more:
                pass
            held = await self.source.engine.mover.held(self.run_id)
            if not held:
                return
            if self.clock.elapsed() >= until:
                raise UsageError(
                    f"Workers still hold {held} {'task' if held == 1 else 'tasks'} of {self.run_id} after "
                    f"{self.wait / 1000:g} s. Stop them, or give them longer with --wait; the run stays in "
                    f"{self.source.shown} and goes on there."
                )
            if held != said:
                self.report(f"Waiting for workers to finish the {held:,} they have in hand; nothing new is begun.")
                said = held
            await self.clock.sleep(self.look_every)

    async def _clear_target(self) -> None:
        """What an earlier try left in the new store, or what is left of the run from when it was there before."""
        self.report(f"Clearing away an earlier copy in {self.target.shown}.")
        engine = self.target.engine
        await engine.frontier.cancel_run(self.run_id)
        idle = 0
        while waiting := (await engine.reader.run(self.run_id)).counters.waiting:
            await engine.frontier.sweep()
            still = (await engine.reader.run(self.run_id)).counters.waiting
            idle = idle + 1 if still == waiting else 0
            if idle > self.idle_sweeps:
                raise UsageError(
                    f"An earlier copy of {self.run_id!r} in {self.target.shown} still has {still} tasks in a queue "
                    "that it shares; they end when a worker there comes by. Try again then, or choose another store."
                )
        await engine.mover.forget(self.run_id)

    async def _fill(self, arriving: Move) -> Moved:
        """Step 2."""
        source, target = self.source.engine.mover, self.target.engine.mover
        shift = await self._clock_shift()
        packed = await source.pack_run(self.run_id)
        renumber = await target.arrive(packed, arriving)
        moved, said = Moved(), self.clock.elapsed()
        async for cargo in source.pack(self.run_id):
            resealed = resealed_cargo(cargo, self.source.secrets, self.target.secrets)
            await target.unpack(self.run_id, arriving, shift.applied(resealed, renumber))
            moved.add(cargo)
            if self.clock.elapsed() - said > 2000:
                said = self.clock.elapsed()
                self.report(f"Moved {moved.tasks:,} waiting tasks, {moved.items:,} items, {moved.seen:,} known URLs.")
        return moved

    async def _clock_shift(self) -> Shift:
        """By how much the clock of the new store is ahead of the old one's: at least and at most."""
        if self.source.engine.shares_clock and self.target.engine.shares_clock:
            return Shift(0, 0)
        began = self.clock.elapsed()
        source = await self.source.engine.mover.now()
        target = await self.target.engine.mover.now()
        return shift_between(source, target, self.clock.elapsed() - began)

    async def _compare(self, moved: Moved, before: Counters) -> None:
        """Step 3. Only tasks whose time was over may be missing."""
        now = (await self.source.engine.reader.run(self.run_id)).counters
        stored = await self.target.engine.mover.stored(self.run_id)
        sent = CargoCount(moved.tasks, moved.dead, moved.batches, moved.seen)
        if stored != sent or not now.waiting <= moved.tasks <= before.waiting:
            raise EngineBroken(
                f"What came into {self.target.shown} is not what {self.source.shown} has of {self.run_id!r} "
                f"({_told(stored)} came, {_told(sent)} were sent, {now.waiting} tasks wait). It was not moved."
            )

    async def _count(self, arriving: Move, moved: Moved) -> None:
        """The counters come along. What expired meanwhile, or was left behind because it had, is counted as expired."""
        counters = msgspec.structs.asdict((await self.source.engine.reader.run(self.run_id)).counters)
        counters["expired"] += counters.pop("waiting") - moved.tasks
        await self.target.engine.mover.count(self.run_id, arriving, counters)

    async def _open(self, arriving: Move) -> None:
        """Step 5."""
        arrived = msgspec.structs.replace(arriving, state=MoveState.ARRIVED)
        if not await self.target.engine.mover.turn(self.run_id, arriving, arrived):
            raise UsageError(
                f"The run {self.run_id!r} is in {self.target.shown}, but was changed there before it could be opened."
            )


def _refuse_unmovable(run: Run) -> None:
    if run.move is not None and run.move.state is MoveState.ARRIVING:
        raise BeingMoved(run.run_id, arriving=True)
    if run.state in (RunState.FINISHED, RunState.CANCELLED):
        raise UsageError(
            f"The run {run.run_id!r} is {run.state.value}: there is nothing to go on with elsewhere. "
            f"Its items: `shoal export {run.run_id} -o items.jsonl`."
        )


def _told(stored: CargoCount) -> str:
    return f"{stored.tasks} tasks, {stored.letters} dead letters, {stored.items} batches of items, {stored.keys} keys"
