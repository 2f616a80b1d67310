"""Carrying a run from one store to another: what it is made of on the way, and what a store can do with that.

A run is in one store at a time. Its copy on the way is closed on both sides: the old store has it paused and marked
`leaving`, the new one paused and marked `arriving`. The switch is one change in the old store (`leaving` to `left`);
only after that the new one opens it (`arriving` to `arrived`). `shoal.runs.relocate` makes the journey.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from enum import StrEnum
from typing import Protocol

import msgspec

from shoal.core.clock import Millis, Moment
from shoal.core.task import Policy
from shoal.errors import UsageError

CLOCKS_KEPT: Millis = 86_400_000
"""A site that was last visited longer ago than this, and is not limited, needs no clock in the new store."""


class MoveState(StrEnum):
    """Where a run is on its way between two stores, as one of them sees it."""

    LEAVING = "leaving"
    """Closed here, to be carried elsewhere. Can still be taken up again here."""
    STAYED = "stayed"
    """A move was given up: the run goes on here."""
    LEFT = "left"
    """Ended here: it goes on elsewhere."""
    ARRIVING = "arriving"
    """Being filled; nobody works on it here yet."""
    ARRIVED = "arrived"
    """Came from elsewhere, and goes on here."""


class Move(msgspec.Struct, frozen=True):
    """What a store knows about the last move of a run.

    `lineage`: the same for all copies of a run, wherever they are. `attempt`: grows with each move and each try.
    `other`: the store at the other end, without secrets. `paused`: it was paused by hand before, and stays so after.
    """

    lineage: str
    attempt: int
    state: MoveState
    other: str
    paused: bool = False

    @property
    def on_its_way(self) -> bool:
        """Whether the run is closed here because of the move (if it was not cancelled)."""
        return self.state in (MoveState.LEAVING, MoveState.ARRIVING)


def job_stays(run_id: str) -> UsageError:
    """Why a job of the gateway is not moved."""
    return UsageError(f"The run {run_id!r} is a job of the gateway: it stays where its client asks for it.")


class PackedRun(msgspec.Struct, frozen=True):
    """A run without what belongs to it. `queue`: None = its own. `numbers`: between these are those of its tasks."""

    run_id: str
    scraper: str
    mode: str
    queue: str | None
    policy: Policy
    input: bytes | None
    created_at: Moment
    sealed: bool
    numbers: tuple[int, int]


class PackedTask(msgspec.Struct, frozen=True, array_like=True):
    """A waiting task. `number`: the order of tasks within lane, site and priority. `lane`: also the pool, as
    `pooled_lane` of `shoal.core.task` writes it. `extra`: JSON.
    """

    number: int
    url: str
    site: str
    lane: str
    handler: str | None
    priority: int
    depth: int
    attempts: int
    crashes: int
    extra: str | None
    not_before: Moment | None
    expires_at: Moment | None


class PackedLetter(msgspec.Struct, frozen=True, array_like=True):
    """A dead letter. `number`, `lane`: as those of a task, for when it is tried again. `extra`, `reason`: JSON."""

    number: int
    url: str
    site: str
    lane: str
    handler: str | None
    priority: int
    depth: int
    attempts: int
    crashes: int
    extra: str | None
    reason: str
    died_at: Moment


class PackedItems(msgspec.Struct, frozen=True, array_like=True):
    """The items of one settled task: `body` is a JSON array of so many."""

    items: int
    url: str
    group: str | None
    body: bytes


class PackedEnding(msgspec.Struct, frozen=True, array_like=True):
    """How a page ended that was not done. `name`: one of its names (`frontier.shared.endings`). `reason`: JSON."""

    name: bytes
    state: str
    ended_at: Moment
    reason: str | None
    url: str | None


class PackedSlot(msgspec.Struct, frozen=True, array_like=True):
    """A slot's clock: by when its last request has begun, its rate limit, rate limits in a row, when last used."""

    exit: str
    begun_at: Moment
    blocked_until: Moment
    penalty: int
    last_at: Moment


class PackedSite(msgspec.Struct, frozen=True, array_like=True):
    """A site's clocks. `begun_at`: over all its exits, where that is kept; else 0."""

    site: str
    crawl_delay: Millis
    begun_at: Moment
    slots: Sequence[PackedSlot]


class Cargo(msgspec.Struct, frozen=True):
    """A bounded part of what belongs to a run. `keys`: as `seen_key` makes them."""

    tasks: Sequence[PackedTask] = ()
    letters: Sequence[PackedLetter] = ()
    items: Sequence[PackedItems] = ()
    keys: Sequence[bytes] = ()
    endings: Sequence[PackedEnding] = ()
    sites: Sequence[PackedSite] = ()


class CargoCount(msgspec.Struct, frozen=True):
    """What has come into a store of an arriving run, counted where it lies. `tasks`: also those that expired since."""

    tasks: int
    letters: int
    items: int
    keys: int


class Mover(Protocol):
    """What a store can do for runs that leave it and runs that arrive. All moments are the store's own."""

    async def now(self) -> Moment:
        """What time it is."""
        ...

    async def turn(self, run_id: str, before: Move | None, after: Move) -> bool:
        """Replace the mark of a run, if it is `before`, and with it its state. False = not so, and nothing changed.

        To `leaving`: paused, and no lease is granted from now on. To `left`: cancelled; only if it is paused and no
        lease lives. To `stayed` and `arrived`: it goes on, unless `paused`. Raises UnknownRun.
        """
        ...

    async def held(self, run_id: str) -> int:
        """Leases of the run that live, and whatever else is still on its way inside the store."""
        ...

    async def pack_run(self, run_id: str) -> PackedRun:
        """The run itself. Raises UnknownRun."""
        ...

    def pack(self, run_id: str) -> AsyncIterator[Cargo]:
        """All that belongs to a run that is `leaving` and held by nobody, each thing once.

        Tasks whose time is over may be missing. Items come in order. Clocks are those of all sites of the store.
        """
        ...

    async def arrive(self, run: PackedRun, move: Move) -> int:
        """Make the run, paused and marked with `move`. Answers what to add to the numbers of its tasks."""
        ...

    async def unpack(self, run_id: str, move: Move, cargo: Cargo) -> None:
        """Take a part in. Clocks only ever go forward. Raises UsageError if the run is not marked with `move`."""
        ...

    async def stored(self, run_id: str) -> CargoCount:
        """What has come in so far."""
        ...

    async def count(self, run_id: str, move: Move, counters: Mapping[str, int]) -> None:
        """Add to the counters of an arriving run what it brings. Raises UsageError as `unpack`."""
        ...

    async def forget(self, run_id: str) -> None:
        """Delete a cancelled run of which nothing waits, and all that belongs to it, step by step."""
        ...
