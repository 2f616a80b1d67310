"""Runs that leave this store for another, and runs that come from one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import msgspec

from shoal.core.clock import Clock, Moment
from shoal.errors import UnknownRun, UsageError
from shoal.frontier.contract.mover import (
    CLOCKS_KEPT,
    Cargo,
    CargoCount,
    Move,
    PackedEnding,
    PackedItems,
    PackedLetter,
    PackedRun,
    PackedTask,
    job_stays,
)
from shoal.frontier.postgres.errors import NO_RUN, NOT_ARRIVING, STAYS
from shoal.frontier.postgres.runs import run_fields
from shoal.frontier.postgres.store.columns import encode
from shoal.frontier.postgres.store.connections import Connections
from shoal.frontier.shared.move_packing import AT_ONCE, ITEMS_AT_ONCE, StoredRunToMove, as_cargo, mark_of, new_run


class PostgresMover:
    """The `Mover` of this engine."""

    def __init__(self, connections: Connections, clock: Clock | None) -> None:
        self._connections = connections
        self._clock = clock

    async def now(self) -> Moment:
        return int(await self._connections.value("read_now", self._moment()))

    async def turn(self, run_id: str, before: Move | None, after: Move) -> bool:
        marks = (None if before is None else mark_of(before), mark_of(after))
        return bool(await self._of_run(run_id, "turn_run", self._moment(), run_id, *marks, after.state, after.paused))

    async def held(self, run_id: str) -> int:
        return int(await self._of_run(run_id, "count_held", run_id))

    async def pack_run(self, run_id: str) -> PackedRun:
        try:
            row = await self._connections.row("pack_run", run_id)
        except asyncpg.PostgresError as error:
            raise _translated(error, run_id) from None
        return StoredRunToMove(run_id, *row).packed()

    async def pack(self, run_id: str) -> AsyncIterator[Cargo]:
        since = await self.now() - CLOCKS_KEPT
        cargo = as_cargo(
            sites=self._pages("pack_sites", since, most=AT_ONCE),
            tasks=self._pages("pack_tasks", run_id, most=AT_ONCE),
            letters=self._pages("pack_letters", run_id, most=AT_ONCE),
            items=self._pages("pack_items", run_id, most=ITEMS_AT_ONCE),
            endings=self._pages("pack_endings", run_id, most=AT_ONCE, first=b""),
            keys=self._pages("pack_keys", run_id, most=AT_ONCE, first=b""),
        )
        async for each in cargo:
            yield each

    async def arrive(self, run: PackedRun, move: Move) -> int:
        values = (run_fields(new_run(run)), run.created_at, run.sealed, mark_of(move), *run.numbers)
        return int(await self._of_run(run.run_id, "arrive_run", *values))

    async def unpack(self, run_id: str, move: Move, cargo: Cargo) -> None:
        mark = mark_of(move)
        if cargo.tasks:
            await self._of_run(run_id, "unpack_tasks", self._moment(), run_id, mark, *_columns(PackedTask, cargo.tasks))
        if cargo.letters:
            await self._of_run(run_id, "unpack_letters", run_id, mark, *_columns(PackedLetter, cargo.letters))
        if cargo.items:
            await self._of_run(run_id, "unpack_items", run_id, mark, *_columns(PackedItems, cargo.items))
        if cargo.keys:
            await self._of_run(run_id, "unpack_keys", run_id, mark, list(cargo.keys))
        if cargo.endings:
            await self._of_run(run_id, "unpack_endings", run_id, mark, *_columns(PackedEnding, cargo.endings))
        if cargo.sites:
            sites = [(site.site, site.crawl_delay, site.begun_at) for site in cargo.sites]
            slots = [(site.site, *msgspec.structs.astuple(slot)) for site in cargo.sites for slot in site.slots]
            await self._of_run(run_id, "unpack_sites", run_id, mark, *_turned(sites, 3), *_turned(slots, 6))

    async def stored(self, run_id: str) -> CargoCount:
        return CargoCount(*await self._connections.row("count_stored", run_id))

    async def count(self, run_id: str, move: Move, counters: Mapping[str, int]) -> None:
        await self._of_run(run_id, "count_run", run_id, mark_of(move), encode(counters).decode())

    async def forget(self, run_id: str) -> None:
        while await self._connections.value("forget_run", run_id, AT_ONCE):
            pass

    async def _pages(self, function: str, *values: Any, most: int, first: Any = 0) -> AsyncIterator[list[Any]]:
        """What a function answers that begins after its first column, page by page."""
        while rows := await self._connections.rows(function, *values, first, most):
            yield rows
            first = rows[-1][0]

    async def _of_run(self, run_id: str, function: str, *values: Any) -> Any:
        try:
            return await self._connections.value(function, *values)
        except asyncpg.PostgresError as error:
            raise _translated(error, run_id) from None

    def _moment(self) -> Moment | None:
        return self._clock.now() if self._clock else None


def _translated(error: asyncpg.PostgresError, run_id: str) -> Exception:
    if error.sqlstate == NO_RUN:
        return UnknownRun(run_id)
    if error.sqlstate == NOT_ARRIVING:
        return UsageError(f"The run {run_id!r} is there already, or no longer being moved there by this command.")
    if error.sqlstate == STAYS:
        return job_stays(run_id)
    unknown: Exception = error
    return unknown


def _columns(kind: type[msgspec.Struct], rows: Sequence[Any]) -> list[list[Any]]:
    """One array per field."""
    return [[getattr(row, name) for row in rows] for name in kind.__struct_fields__]


def _turned(rows: Sequence[tuple[Any, ...]], width: int) -> list[list[Any]]:
    return [[row[column] for row in rows] for column in range(width)]
