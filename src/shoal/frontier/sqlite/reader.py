"""Looking at the store through a connection of its own, which never holds up the writer."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from shoal.clock import Clock
from shoal.errors import UnknownRun
from shoal.frontier.protocol import (
    Counters,
    DeadLetter,
    Item,
    ItemPage,
    Run,
    SiteRecord,
    WorkerInfo,
    WorkerRecord,
)
from shoal.frontier.sqlite.connection import clear_errors
from shoal.frontier.sqlite.statements import STATEMENTS
from shoal.frontier.sqlite.transaction import RUN_COUNTERS
from shoal.outcome import Reason
from shoal.task import Policy, RunState

Answer = TypeVar("Answer")
_raw_items = msgspec.json.Decoder(list[msgspec.Raw])


class SqliteReader:
    """The `Reader` of this engine."""

    def __init__(self, connection: sqlite3.Connection, path: Path, clock: Clock) -> None:
        self._connection = connection
        self._path = path
        self._clock = clock
        self._lock = threading.Lock()

    async def runs(self) -> Sequence[Run]:
        rows = await self._rows("read_runs", run_id=None)
        return [_run(row) for row in rows]

    async def run(self, run_id: str) -> Run:
        rows = await self._rows("read_runs", run_id=run_id)
        if not rows:
            raise UnknownRun(run_id)
        return _run(rows[0])

    async def items(self, run_id: str, cursor: int = 0, limit: int = 1000) -> ItemPage:
        rows = await self._rows("read_items", run=await self._number(run_id), cursor=cursor, now=self._clock.now())
        items: list[Item] = []
        for number, url, group, body in rows:
            items.extend(Item(url, group, raw) for raw in _raw_items.decode(body))
            cursor = number
            if len(items) >= limit:
                return ItemPage(items, cursor)
        return ItemPage(items, cursor if rows else None)

    async def dead(self, run_id: str, after: int = 0, limit: int = 1000) -> Sequence[DeadLetter]:
        rows = await self._rows("read_dead", run=await self._number(run_id), after=after, limit=limit)
        return [_dead_letter(*row) for row in rows]

    async def workers(self) -> Sequence[WorkerRecord]:
        rows = await self._rows("read_workers", now=self._clock.now())
        return [WorkerRecord(WorkerInfo(*row[:5]), row[5], row[6]) for row in rows]

    async def sites(self, limit: int = 100) -> Sequence[SiteRecord]:
        return [SiteRecord(*row) for row in await self._rows("read_sites", limit=limit)]

    async def cached(self, key: str) -> bytes | None:
        """The value that the cache holds under a key, if its time is not over."""
        rows = await self._rows("read_cache", key=key, now=self._clock.now())
        return rows[0][0] if rows else None

    async def close(self) -> None:
        await self._in_thread(self._connection.close)

    async def _number(self, run_id: str) -> int:
        rows = await self._rows("find_run_number", run_id=run_id)
        if not rows:
            raise UnknownRun(run_id)
        return int(rows[0][0])

    async def _rows(self, statement: str, **values: Any) -> list[Any]:
        return await self._in_thread(lambda: self._connection.execute(STATEMENTS[statement], values).fetchall())

    async def _in_thread(self, look: Callable[[], Answer]) -> Answer:
        def locked() -> Answer:
            with self._lock, clear_errors(self._path):
                return look()

        return await asyncio.to_thread(locked)


def _dead_letter(*row: Any) -> DeadLetter:
    task, url, site, lane, handler, attempts, crashes, reason, died_at = row
    why = msgspec.json.decode(reason, type=Reason)
    return DeadLetter(task, url, site, lane, handler, attempts, crashes, why, died_at)


def _run(row: Sequence[Any]) -> Run:
    run_id, scraper, mode, state, queue, policy, input_, created_at, ended_at, lanes, *counts = row
    return Run(
        run_id,
        scraper,
        mode,
        RunState(state),
        queue,
        msgspec.json.decode(policy, type=Policy),
        input_,
        created_at,
        ended_at,
        Counters(**dict(zip(RUN_COUNTERS, counts, strict=True))),
        msgspec.json.decode(lanes),
    )
