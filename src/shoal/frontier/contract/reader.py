"""The contract that every engine keeps: what only looks. Nothing here changes a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from shoal.core.clock import Millis, Moment
from shoal.core.outcome import Reason
from shoal.core.task import RunState, State
from shoal.frontier.contract.frontier import Run, WorkerInfo


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
    """A slot that has been used: when it may next be, and why then. `cause`: what the last rate limit said, or
    why the site is taken to be down."""

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
