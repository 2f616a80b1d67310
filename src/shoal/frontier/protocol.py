"""The contract that every engine keeps: narrow protocols, batch first.

`Frontier` moves tasks, `Reader` only looks; what remembers bytes for a while is in `cache`, what the gateway needs in
`jobs`, what carries runs between stores in `moving`.
The rules (I1-I11) are in docs/explanation/guarantees.md and are proven by `shoal.testing.frontier_contract`.
All moments are the store's; every verb is atomic and durable when it returns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from shoal.clock import Millis, Moment
from shoal.frontier.cache import Cache
from shoal.frontier.exits import Exits
from shoal.frontier.moving import Move, MoveState
from shoal.kept import Note
from shoal.outcome import Reason, Settlement
from shoal.task import Lease, NewTask, Policy, RunState, State


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
        if self.move is not None:
            if self.state is RunState.CANCELLED and self.move.state is MoveState.LEFT:
                return f"moved to {self.move.other}"
            if self.state is RunState.PAUSED and self.move.state is MoveState.LEAVING:
                return f"being moved to {self.move.other}"
            if self.state is RunState.PAUSED and self.move.state is MoveState.ARRIVING:
                return f"being moved here from {self.move.other}"
        return self.state.value


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
    """File where it notes the tasks it has in hand (`shoal.presence`), so that a crash is charged to those only."""
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


class Item(msgspec.Struct, frozen=True):
    """A record that a handler yielded, with where it came from. `body` is a JSON object."""

    url: str
    group: str | None
    body: msgspec.Raw


class ItemPage(msgspec.Struct, frozen=True):
    """Items in the order they were settled. `cursor` leads to the next page; None = that was all there is now."""

    items: Sequence[Item]
    cursor: int | None


class DeadLetter(msgspec.Struct, frozen=True):
    """A task that will not be tried again, and why."""

    task: int
    url: str
    site: str
    lane: str
    handler: str | None
    attempts: int
    crashes: int
    reason: Reason
    died_at: Moment


class HeldTask(msgspec.Struct, frozen=True, array_like=True):
    """A task that a worker has in hand."""

    run_id: str
    lane: str
    url: str


class WorkerRecord(msgspec.Struct, frozen=True):
    """A worker that has been seen, how many leases it holds, and what some of them are for.

    `silent`: how long ago it was seen, by the store's clock. Every exchange and renewal counts, to about a second.
    `tasks`: at most SHOWN_TASKS of those it has in hand.
    """

    info: WorkerInfo
    seen_at: Moment
    leases: int
    silent: Millis
    tasks: Sequence[HeldTask] = ()


SHOWN_TASKS = 3


class SiteRecord(msgspec.Struct, frozen=True):
    """A site's clocks, as one looks at them now.

    `delay`: the pace in force. `blocked_until`: a rate limit of the whole site; `cause`: what was said then.
    `probing`: the limit is over, and one request goes first.
    """

    site: str
    delay: Millis
    waiting: int
    leased: int
    next_at: Moment
    penalty: int
    site_delay: Millis = 0
    blocked_until: Moment = 0
    probing: bool = False
    cause: str | None = None


class SlotRecord(msgspec.Struct, frozen=True):
    """A slot that has been used: when it may next be, and why then. `cause`: what the last rate limit said."""

    exit: str
    next_at: Moment
    blocked_until: Moment
    live: int
    penalty: int
    probing: bool
    cause: str | None


class Whereabouts(msgspec.Struct, frozen=True):
    """Where a page is in one run that has seen it; of several tasks for it, one that waits or is leased, or the last.

    `ahead`: ready tasks of its lane and site that come before it. `held`: it waits because its run is paused.
    `reason`: why it is dead or was dropped. `ended_at`: when; None = it has not, or it is done, or not known.
    `url`: the spelling that the run has accepted, with its credentials; None = it is done, and that is forgotten.
    A dead letter that was purged has no `task`.
    """

    run_id: str
    scraper: str
    run_state: RunState
    state: State
    task: int | None = None
    lane: str | None = None
    pool: str | None = None
    ahead: int = 0
    not_before: Moment | None = None
    expires_at: Moment | None = None
    attempts: int = 0
    crashes: int = 0
    worker: str | None = None
    exit: str | None = None
    lease_until: Moment | None = None
    held: bool = False
    reason: Reason | None = None
    ended_at: Moment | None = None
    url: str | None = None


class NotePage(msgspec.Struct, frozen=True):
    """Notes of a stream in the order they were kept. `cursor`: as of ItemPage, but never None: more may come."""

    bodies: Sequence[bytes]
    cursor: int


class Reader(Protocol):
    """Looking, without moving anything. Never blocks the frontier."""

    async def runs(self) -> Sequence[Run]:
        """All runs, newest first."""
        ...

    async def run(self, run_id: str) -> Run:
        """One run. Raises UnknownRun."""
        ...

    async def items(self, run_id: str, cursor: int = 0, limit: int = 1000) -> ItemPage:
        """At least one stored batch of items after `cursor`, about `limit` of them. Raises UnknownRun."""
        ...

    async def dead(self, run_id: str, after: int = 0, limit: int = 1000) -> Sequence[DeadLetter]:
        """Dead letters whose task number is above `after`, by task number. Raises UnknownRun."""
        ...

    async def workers(self) -> Sequence[WorkerRecord]:
        """Workers that hold leases or were seen within the last hour, the last seen first."""
        ...

    async def scrapers(self) -> Mapping[str, int]:
        """How many tasks have not ended, by scraper, over all runs. Scrapers without any are absent."""
        ...

    async def sites(self, limit: int = 100) -> Sequence[SiteRecord]:
        """Sites with work, most waiting tasks first."""
        ...

    async def sites_of(self, queue: str, limit: int = 100) -> Sequence[SiteRecord]:
        """Sites where tasks of this queue are ready, those first that keep it busy for longest: by tasks times delay.

        `waiting` counts the ready tasks of this queue. May look at all its sites; never at what waits for them.
        """
        ...

    async def site(self, site: str) -> SiteRecord | None:
        """One site; None = no task of it was ever accepted."""
        ...

    async def slots(self, site: str) -> Sequence[SlotRecord]:
        """The slots of a site, by exit."""
        ...

    async def whereabouts(self, site: str, url: str, key: bytes, run_id: str | None = None) -> Sequence[Whereabouts]:
        """Where this page is, in each run that has seen its key (or of `run_id` only), newest run first.

        `url`: normalised and without credentials; a task that has some, or was redirected since, is found as well.
        May look through all that waits for the site; never through what waits for others.
        """
        ...

    async def notes(self, stream: str, cursor: int = 0, limit: int = 1000) -> NotePage:
        """Notes of a stream after `cursor`, at most `limit`. An unknown stream has none."""
        ...

    async def now(self) -> Moment:
        """The store's clock."""
        ...


class Engine(Protocol):
    """A store, opened: all protocols on one connection."""

    @property
    def frontier(self) -> Frontier: ...

    @property
    def reader(self) -> Reader: ...

    @property
    def cache(self) -> Cache: ...

    @property
    def exits(self) -> Exits: ...

    @property
    def shares_clock(self) -> bool:
        """True if the store's clock is this machine's (so that `claimed_at` can be compared with local time)."""
        ...

    async def close(self) -> None:
        """Finish what is under way and let go. The second time: nothing."""
        ...
