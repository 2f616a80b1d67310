"""Runs on their way between two stores, as the SQL engines read them: rows into cargo, page by page."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import msgspec

from shoal.core.clock import Moment
from shoal.core.task import Policy
from shoal.errors import UsageError
from shoal.frontier.contract.frontier import NewRun
from shoal.frontier.contract.mover import (
    Cargo,
    Move,
    PackedEnding,
    PackedItems,
    PackedLetter,
    PackedRun,
    PackedSite,
    PackedSlot,
    PackedTask,
)

AT_ONCE = 1000
ITEMS_AT_ONCE = 100
"""How many rows of each kind are carried at a time; items may be large."""

Pages = AsyncIterator[list[Any]]
"""Rows in pages, of which each is read when the one before was used."""

_policy = msgspec.json.Decoder(Policy).decode
_slots = msgspec.json.Decoder(list[PackedSlot]).decode


class StoredRunToMove(NamedTuple):
    """A run that leaves, as it is read. `policy`: JSON. `low`, `high`: the numbers of its tasks lie between."""

    run_id: str
    scraper: str
    mode: str
    queue: str | None
    policy: str | bytes
    input: bytes | None
    created_at: Moment
    sealed: bool | int
    low: int | None
    high: int | None

    def packed(self) -> PackedRun:
        low = self.low or 0
        return PackedRun(
            self.run_id,
            self.scraper,
            self.mode,
            self.queue,
            _policy(self.policy),
            self.input,
            self.created_at,
            bool(self.sealed),
            (low, max(low, self.high or 0)),
        )


def new_run(run: PackedRun) -> NewRun:
    """A run that arrives, as one makes it."""
    return NewRun(run.run_id, run.scraper, run.policy, run.mode, run.queue, run.input)


def mark_of(move: Move) -> str:
    """How a store notes a move, to the letter: two that are the same are written the same."""
    return msgspec.json.encode(move).decode()


def not_arriving(run_id: str) -> UsageError:
    """Why nothing more is unpacked."""
    return UsageError(f"The run {run_id!r} is no longer being moved there by this command.")


def already_there(run_id: str) -> UsageError:
    """Why a run cannot arrive."""
    return UsageError(f"There is a run {run_id!r} there already.")


async def as_cargo(
    *, sites: Pages, tasks: Pages, letters: Pages, items: Pages, endings: Pages, keys: Pages
) -> AsyncIterator[Cargo]:
    """All that belongs to a run, in this order. The first column of sites and items is the place where one goes on."""
    async for rows in sites:
        yield Cargo(sites=[PackedSite(key, crawl, begun, _slots(slots)) for _, key, crawl, begun, slots in rows])
    async for rows in tasks:
        yield Cargo(tasks=[PackedTask(*row) for row in rows])
    async for rows in letters:
        yield Cargo(letters=[PackedLetter(*row) for row in rows])
    async for rows in items:
        yield Cargo(items=[PackedItems(*row[1:]) for row in rows])
    async for rows in endings:
        yield Cargo(endings=[PackedEnding(*row) for row in rows])
    async for rows in keys:
        yield Cargo(keys=[row[0] for row in rows])
