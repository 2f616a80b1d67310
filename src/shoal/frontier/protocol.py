"""The contract that every engine keeps: three narrow protocols, batch first.

`Frontier` moves tasks, `Reader` only looks, `Cache` remembers bytes for a while.
The rules (I1-I11) are in docs/explanation/guarantees.md and are proven by `shoal.testing.frontier_contract`.
All moments are the store's; every verb is atomic and durable when it returns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from shoal.clock import Millis, Moment
from shoal.outcome import Reason, Settlement
from shoal.task import Lease, NewTask, Policy, RunState


class NewRun(msgspec.Struct, frozen=True):
    """A run to be created. `queue`: runs of one queue share their place in line; None = a queue of its own."""

    run_id: str
    scraper: str
    policy: Policy
    mode: str = "single"
    queue: str | None = None
    input: bytes | None = None


class Counters(msgspec.Struct, frozen=True):
    """The truth about a run's tasks, in one moment. `waiting` includes tasks that wait for a retry."""

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

    @property
    def accepted(self) -> int:
        """Tasks that were let in, whatever became of them."""
        return self.remaining + self.done + self.dead + self.expired + self.dropped + self.cancelled

    @property
    def remaining(self) -> int:
        """Tasks that have not ended."""
        return self.waiting + self.leased


class Run(msgspec.Struct, frozen=True):
    """A run as stored. `lanes`: tasks not yet ended (waiting or leased) per lane; lanes without any are absent."""

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


class Enqueued(msgspec.Struct, frozen=True):
    """What became of a batch of new tasks."""

    accepted: int
    duplicates: int


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


class Ask(msgspec.Struct, frozen=True):
    """What a worker wants and brings, in one round trip.

    `queues`: None = all. `scrapers`: only tasks of these. `lanes`: in order of preference. `exits`: for each pool that
    this worker can use, the names of its exits. `want` = 0 only settles. `ahead`: leases may also be granted for slots
    that will be due within that time; the worker waits for the lease's `start_at`.
    """

    worker: WorkerInfo
    scrapers: Sequence[str]
    lanes: Sequence[str]
    exits: Mapping[str, Sequence[str]]
    want: int
    queues: Sequence[str] | None = None
    settlements: Sequence[Settlement] = ()
    ahead: Millis = 0


class Granted(msgspec.Struct, frozen=True):
    """The answer to an Ask.

    `wake_at`: when anything of what was asked for can next be due, as far as is known now; None = nothing waits.
    `left`: tasks that wait or are leased in the lanes and queues asked for: 0 = nothing left to do there.
    `late`: tokens of settlements that were refused, their results thrown away.
    """

    leases: Sequence[Lease]
    now: Moment
    wake_at: Moment | None
    left: int
    late: Sequence[int] = ()


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
        """Seeding is complete: from now on the run is finished when nothing is left. The second time: nothing."""
        ...

    async def pause_run(self, run_id: str) -> None:
        """No task of this run is claimed until resumed; live leases go on. Nothing, if the run has ended."""
        ...

    async def resume_run(self, run_id: str) -> None:
        """Undo pause. Nothing, if the run is not paused."""
        ...

    async def cancel_run(self, run_id: str) -> None:
        """End a run: nothing more is claimed, waiting tasks end as cancelled, results of live leases are refused."""
        ...

    async def enqueue(self, run_id: str, tasks: Sequence[NewTask]) -> Enqueued:
        """Accept tasks, all or none. A task whose key the run has seen is a duplicate, also within the batch.

        Raises UnknownRun; raises UsageError if the run was cancelled. A finished run becomes running again.
        """
        ...

    async def exchange(self, ask: Ask) -> Granted:
        """Settle what is finished, then claim up to `want` leases, in one transaction."""
        ...

    async def renew(self, worker: WorkerInfo, leases: Sequence[Renewal]) -> Sequence[int]:
        """Extend leases by their run's lease time. Answers the tokens that no longer live: stop working on those."""
        ...

    async def sweep(self) -> Swept:
        """Bring back what dead workers held, end what expired, delete old results. Bounded; safe to call by anyone."""
        ...

    async def requeue_dead(self, run_id: str, tasks: Sequence[int] | None = None) -> int:
        """Dead letters wait again, with attempts and crashes 0. None = all of the run. Answers how many."""
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


class WorkerRecord(msgspec.Struct, frozen=True):
    """A worker that has been seen, and how many leases it holds."""

    info: WorkerInfo
    seen_at: Moment
    leases: int


class SiteRecord(msgspec.Struct, frozen=True):
    """A site's clocks, as one looks at them now."""

    site: str
    delay: Millis
    waiting: int
    leased: int
    next_at: Moment
    penalty: int


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
        """Workers that hold leases or were seen within the last hour."""
        ...

    async def sites(self, limit: int = 100) -> Sequence[SiteRecord]:
        """Sites with work, most waiting tasks first."""
        ...


class Cache(Protocol):
    """Bytes by key, for a while. Shared by all workers of an engine."""

    async def get(self, key: str) -> bytes | None:
        """The value, or None if there is none or its time is over."""
        ...

    async def put(self, key: str, value: bytes, ttl: Millis) -> None:
        """Keep `value` for `ttl`; replaces."""
        ...


class Engine(Protocol):
    """A store, opened: the three protocols on one connection."""

    @property
    def frontier(self) -> Frontier: ...

    @property
    def reader(self) -> Reader: ...

    @property
    def cache(self) -> Cache: ...

    @property
    def shares_clock(self) -> bool:
        """True if the store's clock is this machine's (so that `claimed_at` can be compared with local time)."""
        ...

    async def close(self) -> None:
        """Finish what is under way and let go. The second time: nothing."""
        ...
