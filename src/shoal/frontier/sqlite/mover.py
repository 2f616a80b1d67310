"""Runs that leave this file for another store, and runs that come from one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from shoal.core.clock import Moment
from shoal.core.task import RunState
from shoal.frontier.contract.mover import (
    CLOCKS_KEPT,
    Cargo,
    CargoCount,
    Move,
    MoveState,
    PackedLetter,
    PackedRun,
    PackedSite,
    PackedTask,
    job_stays,
)
from shoal.frontier.shared.move_packing import (
    AT_ONCE,
    ITEMS_AT_ONCE,
    StoredRunToMove,
    already_there,
    as_cargo,
    mark_of,
    not_arriving,
)
from shoal.frontier.sqlite import runs
from shoal.frontier.sqlite.enqueue import know_sites, line_of, open_sites
from shoal.frontier.sqlite.reader import SqliteReader
from shoal.frontier.sqlite.records.endings import store_endings
from shoal.frontier.sqlite.settle import store_items
from shoal.frontier.sqlite.store.transaction import DELAYED, HELD, READY, RunRow, Transaction, encode
from shoal.frontier.sqlite.store.writer import Writer


class SqliteMover:
    """The `Mover` of this engine."""

    def __init__(self, writer: Writer, reader: SqliteReader) -> None:
        self._writer = writer
        self._reader = reader

    async def now(self) -> Moment:
        return await self._writer.call(lambda tx: tx.now)

    async def turn(self, run_id: str, before: Move | None, after: Move) -> bool:
        return await self._writer.call(lambda tx: _turn(tx, tx.find_run(run_id), before, after))

    async def held(self, run_id: str) -> int:
        return await self._writer.call(lambda tx: _leases(tx, tx.find_run(run_id)))

    async def pack_run(self, run_id: str) -> PackedRun:
        number = await self._number(run_id)
        [row] = await self._reader.rows("pack_run", run=number)
        return StoredRunToMove(*row).packed()

    async def pack(self, run_id: str) -> AsyncIterator[Cargo]:
        run, since = await self._number(run_id), await self.now() - CLOCKS_KEPT
        cargo = as_cargo(
            sites=self._pages("pack_sites", AT_ONCE, since=since),
            tasks=self._pages("pack_tasks", AT_ONCE, run=run),
            letters=self._pages("pack_letters", AT_ONCE, run=run),
            items=self._pages("pack_items", ITEMS_AT_ONCE, run=run),
            endings=self._pages("pack_endings", AT_ONCE, first=b"", run=run),
            keys=self._keys(run),
        )
        async for each in cargo:
            yield each

    async def _keys(self, run: int) -> AsyncIterator[list[Any]]:
        await self._writer.call(_sort_keys)
        async for rows in self._pages("pack_keys", AT_ONCE, first=b"", run=run):
            yield rows

    async def arrive(self, run: PackedRun, move: Move) -> int:
        return await self._writer.call(lambda tx: _arrive(tx, run, move))

    async def unpack(self, run_id: str, move: Move, cargo: Cargo) -> None:
        await self._writer.call(lambda tx: _unpack(tx, _arriving(tx, run_id, move), cargo))

    async def stored(self, run_id: str) -> CargoCount:
        await self._writer.call(_sort_keys)
        [row] = await self._reader.rows("count_stored", run=await self._number(run_id))
        return CargoCount(*row)

    async def count(self, run_id: str, move: Move, counters: Mapping[str, int]) -> None:
        def add(tx: Transaction) -> None:
            run = _arriving(tx, run_id, move)
            for name, number in counters.items():
                tx.runs[run.id][name] += number

        await self._writer.call(add)

    async def forget(self, run_id: str) -> None:
        number = await self._number(run_id)
        await self._writer.call(_sort_keys)
        while await self._writer.call(lambda tx: runs.delete_some(tx, [number], AT_ONCE)):
            pass
        await self._writer.call(lambda tx: runs.forget_runs(tx, [number]))

    async def _number(self, run_id: str) -> int:
        return await self._writer.call(lambda tx: tx.find_run(run_id).id)

    async def _pages(self, statement: str, most: int, first: Any = 0, **values: Any) -> AsyncIterator[list[Any]]:
        """What a statement answers that begins after its first column, page by page."""
        while rows := await self._reader.rows(statement, after=first, most=most, **values):
            yield rows
            first = rows[-1][0]


def _sort_keys(tx: Transaction) -> None:
    """All keys that were seen are in one place, in order."""
    tx.cache.seen.sort_all(tx)


def _turn(tx: Transaction, run: RunRow, before: Move | None, after: Move) -> bool:
    if run.move != before:
        return False
    match after.state:
        case MoveState.LEAVING:
            if run.state in runs.ENDED:
                return False
            if run.is_job:
                raise job_stays(run.run_id)
            runs.pause_run(tx, run)
        case MoveState.LEFT:
            if run.state is not RunState.PAUSED or _leases(tx, run):
                return False
            runs.cancel_run(tx, run)
        case MoveState.STAYED | MoveState.ARRIVED:
            if run.state is not RunState.PAUSED:
                return False
            if not after.paused:
                runs.go_on(tx, run)
        case MoveState.ARRIVING:
            return False
    runs.mark_run(tx, run, after)
    return True


def _leases(tx: Transaction, run: RunRow) -> int:
    return int(tx.value("count_leases", run=run.id))


def _arrive(tx: Transaction, run: PackedRun, move: Move) -> int:
    made = tx.run(
        "arrive_run",
        run_id=run.run_id,
        scraper=run.scraper,
        mode=run.mode,
        queue=run.queue or run.run_id,
        policy=encode(run.policy).decode(),
        input=run.input,
        sealed=run.sealed,
        created_at=run.created_at,
        move=mark_of(move),
    )
    if not made:
        raise already_there(run.run_id)
    last = int(tx.value("last_number") or 0)
    low, high = run.numbers
    if not tx.run("reserve_numbers", last=last + high - low + 1):
        tx.run("first_numbers", last=last + high - low + 1)
    return last + 1 - low


def _arriving(tx: Transaction, run_id: str, move: Move) -> RunRow:
    run = tx.find_run(run_id)
    if run.move != move or run.state is not RunState.PAUSED:
        raise not_arriving(run_id)
    return run


def _unpack(tx: Transaction, run: RunRow, cargo: Cargo) -> None:
    if cargo.tasks:
        _take_tasks(tx, run, cargo.tasks)
    if cargo.letters:
        _take_letters(tx, run, cargo.letters)
    if cargo.items:
        store_items(tx, [(run.id, it.items, it.url, it.group, it.body) for it in cargo.items])
    if cargo.keys:
        tx.cache.seen.accept(tx, run.id, set(cargo.keys))
    if cargo.endings:
        store_endings(tx, [(run.id, it.name, it.state, it.ended_at, it.reason, it.url) for it in cargo.endings])
    if cargo.sites:
        _take_clocks(tx, run, cargo.sites)


def _take_tasks(tx: Transaction, run: RunRow, tasks: Sequence[PackedTask]) -> None:
    """In a queue of its own, the lines are held; in a shared one, the tasks are."""
    ready = READY if run.queue == run.run_id else HELD
    lines = {lane: line_of(tx, run, lane) for lane in {task.lane for task in tasks}}
    numbers = open_sites(tx, run.policy, dict.fromkeys(task.site for task in tasks))
    rows: list[tuple[object, ...]] = []
    for task in tasks:
        line, site = lines[task.lane], numbers[task.site]
        delayed = task.not_before is not None and task.not_before > tx.now
        state = DELAYED if delayed else ready
        tx.lines[line]["waiting"] += 1
        if state == READY:
            tx.ready[line, site] += 1
        place = (task.number, run.id, line, site, state, task.priority, task.depth, task.attempts, task.crashes)
        when = (task.not_before if delayed else None, task.expires_at)
        rows.append((*place, *when, task.url, task.handler, task.extra))
    tx.write_rows("unpack_tasks", rows)
    tx.runs[run.id]["waiting"] += len(tasks)


def _take_letters(tx: Transaction, run: RunRow, letters: Sequence[PackedLetter]) -> None:
    lines = {lane: line_of(tx, run, lane) for lane in {letter.lane for letter in letters}}
    numbers = know_sites(tx, run.policy, {letter.site for letter in letters})
    rows = [
        (
            *(it.number, run.id, lines[it.lane], numbers[it.site], it.priority, it.depth, it.attempts, it.crashes),
            *(it.url, it.handler, it.extra, it.reason, it.died_at),
        )
        for it in letters
    ]
    tx.write_rows("unpack_letters", rows)


def _take_clocks(tx: Transaction, run: RunRow, sites: Sequence[PackedSite]) -> None:
    numbers = know_sites(tx, run.policy, {site.site for site in sites})
    tx.run("unpack_sites", sites=[[numbers[site.site], site.begun_at, site.crawl_delay] for site in sites])
    slots = [
        (numbers[site.site], slot.exit, slot.begun_at, slot.begun_at, slot.blocked_until, slot.penalty, slot.last_at)
        for site in sites
        for slot in site.slots
    ]
    tx.write_rows("unpack_slots", slots)
