"""The contract that every engine keeps: what moves tasks. Narrow, batch first.

What only looks is in `reading`, what remembers bytes for a while in `cache`, what the gateway needs in `jobs`, what
carries runs between stores in `moving`; `engine` has them all together.
The rules (I1-I11) are in docs/explanation/guarantees.md and are proven by `shoal.testing.frontier_contract`.
All moments are the store's; every verb is atomic and durable when it returns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from shoal.core.clock import Millis, Moment
from shoal.core.lanes import left_for_pages
from shoal.core.notes import Note
from shoal.core.outcome import Settlement
from shoal.core.task import Lease, NewTask, Policy, RunState
from shoal.frontier.contract.mover import Move, MoveState


class NewRun(msgspec.Struct, frozen=True):
    """A run to be created. `queue`: runs of one queue share their place in line; None = a queue of its own."""

    run_id: str
    scraper: str
    policy: Policy
    mode: str = "single"
    queue: str | None = None
    input: bytes | None = None


class Counters(msgspec.Struct, frozen=True):
    """The truth about a run's tasks, in one moment. `waiting` includes tasks that wait for a retry.

    `saved_requests`, `saved_bytes`: what did not have to be asked for, or sent, because it was remembered.
    """

    waiting: int = 0
    leased: int = 0
    done: int = 0
    dead: int = 0
    expired: int = 0
    dropped: int = 0
    cancelled: int = 0
    items: int = 0
    requests: int = 0
    received: int = 0
    retries: int = 0
    snoozes: int = 0
    crashes: int = 0
    duplicates: int = 0
    refused: int = 0
    late: int = 0
    saved_requests: int = 0
    saved_bytes: int = 0

    @property
    def accepted(self) -> int:
        """Tasks that were let in, whatever became of them."""
        return self.remaining + self.done + self.dead + self.expired + self.dropped + self.cancelled

    @property
    def remaining(self) -> int:
        """Tasks that have not ended."""
        return self.waiting + self.leased


class Run(msgspec.Struct, frozen=True):
    """A run as stored. `lanes`: tasks not yet ended (waiting or leased) per lane; lanes without any are absent.

    `move`: its last move to or from another store, if any.
    """

    run_id: str
    scraper: str
    mode: str
    state: RunState
    queue: str
    policy: Policy
    input: bytes | None
    created_at: Moment
    ended_at: Moment | None
    counters: Counters
    lanes: dict[str, int] = {}
    move: Move | None = None

    @property
    def standing(self) -> str:
        """Its state in words: also that it is on its way to another store or from one, or has gone to one."""
        return self.state.value if self.move is None else standing(self.state, self.move.state, self.move.other)

    @property
    def left_for_pages(self) -> int:
        """Tasks that page workers have still to do."""
        return left_for_pages(self.counters.remaining, self.lanes)


def standing(state: RunState, move: MoveState, other: str) -> str:
    """The state of a run that was moved, in words. `other`: the store at the other end of its last move."""
    match state, move:
        case RunState.CANCELLED, MoveState.LEFT:
            return f"moved to {other}"
        case RunState.PAUSED, MoveState.LEAVING:
            return f"being moved to {other}"
        case RunState.PAUSED, MoveState.ARRIVING:
            return f"being moved here from {other}"
        case _:
            return state.value


class Enqueued(msgspec.Struct, frozen=True):
    """What became of a batch of new tasks."""

    accepted: int
    duplicates: int


class Duties(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a worker takes on, for those who look. `queues`: None = all."""

    scrapers: tuple[str, ...] = ()
    lanes: tuple[str, ...] = ()
    queues: tuple[str, ...] | None = None


class WorkerInfo(msgspec.Struct, frozen=True):
    """Who a worker is, so that the store can tell when it is gone.

    `machine` names the machine, its boot and its process space; where it equals the reader's own, `pid` and
    `pid_started` tell whether the process still lives.
    """

    worker_id: str
    machine: str
    pid: int
    pid_started: int
    notebook: str | None = None
    """File where it notes the tasks in hand (`shoal.frontier.shared.liveness`): a crash is charged to those only."""
    duties: Duties = Duties()
    """As they were when the store first heard of it."""


class Ask(msgspec.Struct, frozen=True):
    """What a worker wants and brings, in one round trip.

    `queues`: None = all. `scrapers`: only tasks of these. `lanes`: in order of preference. `exits`: for each pool that
    this worker can use, the names of its exits. `want` = 0 only settles. `ahead`: leases may also be granted for slots
    that will be due within that time; the worker waits for the lease's `start_at`.
    `held`: the tokens of all leases that the worker knows of, besides those that it settles here; None = does not say.
    When it says, its other leases are given back before the claim: their grant was lost on the way, so no request was
    made. They cost nothing: their tasks wait again at their old place, slots are free and clocks are put back.
    `private`: the pools whose exits are this worker's own, and other workers have others.
    `notes` are kept with the settlements, late ones included; those of a settlement itself only if it stands.
    """

    worker: WorkerInfo
    scrapers: Sequence[str]
    lanes: Sequence[str]
    exits: Mapping[str, Sequence[str]]
    want: int
    queues: Sequence[str] | None = None
    settlements: Sequence[Settlement] = ()
    ahead: Millis = 0
    held: Sequence[int] | None = None
    private: Sequence[str] = ()
    notes: Sequence[Note] = ()


class Granted(msgspec.Struct, frozen=True):
    """The answer to an Ask.

    `wake_at`: when anything of what was asked for can next be due, as far as is known now; None = nothing waits.
    `left`: tasks that wait or are leased in the lanes and queues asked for: 0 = nothing left to do there.
    `late`: tokens of settlements that were refused, their results thrown away.
    `one_clock`: `now` is always of the same clock; False = of any of several servers.
    """

    leases: Sequence[Lease]
    now: Moment
    wake_at: Moment | None
    left: int
    late: Sequence[int] = ()
    one_clock: bool = True


class Renewal(msgspec.Struct, frozen=True):
    """One lease to keep alive."""

    task: int
    token: int


class Swept(msgspec.Struct, frozen=True):
    """What a sweep did. `more`: it stopped at its bound and should be called again soon."""

    returned: int = 0
    buried: int = 0
    expired: int = 0
    cancelled: int = 0
    items_deleted: int = 0
    more: bool = False


class Frontier(Protocol):
    """Everything that waits, with the verbs that move it."""

    async def create_run(self, run: NewRun) -> Run:
        """Make a run, in state `open`. A second call with the same id answers the run that exists, unchanged."""
        ...

    async def seal_run(self, run_id: str) -> None:
        """Seeding is complete: from now on the run is finished when nothing is left. The second time: nothing.

        Raises BeingMoved if the run is on its way between two stores.
        """
        ...

    async def pause_run(self, run_id: str) -> None:
        """No task of this run is claimed until resumed; live leases go on. Nothing, if the run has ended."""
        ...

    async def resume_run(self, run_id: str) -> None:
        """Undo pause. Nothing, if the run is not paused. One that was leaving for another store stays.

        Raises BeingMoved if the run is arriving from another store.
        """
        ...

    async def cancel_run(self, run_id: str) -> None:
        """End a run: nothing more is claimed, waiting tasks end as cancelled, results of live leases are refused."""
        ...

    async def enqueue(self, run_id: str, tasks: Sequence[NewTask]) -> Enqueued:
        """Accept tasks, all or none. A task whose key the run has seen is a duplicate, also within the batch.

        Raises UnknownRun; raises UsageError if the run was cancelled, BeingMoved if it is on its way between two
        stores. A finished run becomes running again.
        """
        ...

    async def exchange(self, ask: Ask) -> Granted:
        """Settle what is finished, take back what was lost (`held`), then claim up to `want`, in one transaction.

        If this fails with EngineUnavailable, it may or may not have happened. It can be repeated: what was settled the
        first time is then late, and with `held`, what was granted unheard is granted anew.
        """
        ...

    async def renew(self, worker: WorkerInfo, leases: Sequence[Renewal]) -> Sequence[int]:
        """Extend leases by their run's lease time. Answers the tokens that no longer live: stop working on those."""
        ...

    async def sweep(self) -> Swept:
        """Bring back what dead workers held, end what expired, delete old results. Bounded; safe to call by anyone.

        Slots that have been at rest for `politeness.KEPT_AT_REST` are forgotten, a stretch of them at each sweep, so
        that a store does not keep every exit that ever was at every site.
        """
        ...

    async def requeue_dead(self, run_id: str, tasks: Sequence[int] | None = None) -> int:
        """Dead letters wait again, with attempts and crashes 0. None = all of the run. Answers how many.

        Raises BeingMoved if the run is on its way between two stores.
        """
        ...

    async def forget_notes(self, stream: str) -> None:
        """Delete a stream of notes, all of it. Nothing, if there is none."""
        ...

    async def purge_dead(self, run_id: str, tasks: Sequence[int] | None = None) -> int:
        """Forget dead letters' contents. They stay counted as dead. Answers how many."""
        ...
