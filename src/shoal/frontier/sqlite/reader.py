"""Looking at the store through a connection of its own, which never holds up the writer."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from shoal.core.clock import Clock, Moment
from shoal.core.storable import findable
from shoal.errors import UnknownRun
from shoal.frontier.contract.frontier import Counters, Run
from shoal.frontier.contract.reader import (
    SHOWN_TASKS,
    DeadLetter,
    ItemPage,
    NotePage,
    SiteRecord,
    SlotRecord,
    Whereabouts,
    WorkerRecord,
)
from shoal.frontier.shared.item_rows import item_page
from shoal.frontier.shared.letter_rows import dead_letter
from shoal.frontier.shared.run_rows import StoredRun
from shoal.frontier.shared.seen import seen_key
from shoal.frontier.shared.worker_rows import worker_record
from shoal.frontier.sqlite.errors import clear_errors
from shoal.frontier.sqlite.store.statements import STATEMENTS
from shoal.frontier.sqlite.whereabouts import Look, find_page

BATCHES_AT_MOST = 500
"""Rows that are read for one page of items."""

Answer = TypeVar("Answer")
Record = TypeVar("Record", bound=msgspec.Struct)


class SqliteReader:
    """The `Reader` of this engine."""

    def __init__(self, connection: sqlite3.Connection, path: Path, clock: Clock) -> None:
        self._connection = connection
        self._path = path
        self._clock = clock
        self._lock = threading.Lock()

    async def runs(self) -> Sequence[Run]:
        rows = await self.rows("read_runs", run_id=None)
        return [_run(row) for row in rows]

    async def run(self, run_id: str) -> Run:
        rows = await self.rows("read_runs", run_id=run_id)
        if not rows:
            raise UnknownRun(run_id)
        return _run(rows[0])

    async def items(self, run_id: str, cursor: int = 0, limit: int = 1000) -> ItemPage:
        run, most = await self._number(run_id), min(limit, BATCHES_AT_MOST)
        return item_page(await self.rows("read_items", run=run, cursor=cursor, now=self._clock.now(), most=most), limit)

    async def dead(self, run_id: str, after: int = 0, limit: int = 1000) -> Sequence[DeadLetter]:
        rows = await self.rows("read_dead", run=await self._number(run_id), after=after, limit=limit)
        return [dead_letter(row) for row in rows]

    async def workers(self) -> Sequence[WorkerRecord]:
        rows = await self.rows("read_workers", now=self._clock.now(), most=SHOWN_TASKS)
        return [worker_record(row) for row in rows]

    async def scrapers(self) -> Mapping[str, int]:
        return dict(await self.rows("read_scrapers"))

    async def sites(self, limit: int = 100) -> Sequence[SiteRecord]:
        rows = await self.rows("read_sites", limit=limit, now=self._clock.now())
        return [_named(SiteRecord, row) for row in rows]

    async def site(self, site: str) -> SiteRecord | None:
        rows = await self.rows("read_site", site=site, now=self._clock.now())
        return _named(SiteRecord, rows[0]) if rows else None

    async def slots(self, site: str) -> Sequence[SlotRecord]:
        rows = await self.rows("read_slots", site=site, now=self._clock.now())
        return [_named(SlotRecord, row) for row in rows]

    async def sites_of(self, queue: str, limit: int = 100) -> Sequence[SiteRecord]:
        now = self._clock.now()
        rows = await self.rows("read_sites_of_queue", queue=queue, limit=limit, now=now)
        return [_named(SiteRecord, row) for row in rows]

    async def whereabouts(self, site: str, url: str, key: bytes, run_id: str | None = None) -> Sequence[Whereabouts]:
        return await self.look(lambda look, now: find_page(look, now, site, url, seen_key(key), run_id))

    async def notes(self, stream: str, cursor: int = 0, limit: int = 1000) -> NotePage:
        rows = await self.rows("read_notes", stream=stream, cursor=cursor, limit=limit, now=self._clock.now())
        return NotePage([body for _, body in rows], rows[-1][0] if rows else cursor)

    async def now(self) -> Moment:
        return self._clock.now()

    async def look(self, question: Callable[[Look, Moment], Answer]) -> Answer:
        """Ask several statements about one moment."""

        def look(statement: str, **values: Any) -> list[Any]:
            return self._connection.execute(STATEMENTS[statement], _sought(values)).fetchall()

        def asked() -> Answer:
            self._connection.execute("BEGIN")
            try:
                return question(look, self._clock.now())
            finally:
                self._connection.execute("COMMIT")

        return await self._in_thread(asked)

    async def close(self) -> None:
        await self._in_thread(self._connection.close)

    async def _number(self, run_id: str) -> int:
        rows = await self.rows("find_run_number", run_id=run_id)
        if not rows:
            raise UnknownRun(run_id)
        return int(rows[0][0])

    async def rows(self, statement: str, **values: Any) -> list[Any]:
        """What a statement that only looks answers."""
        return await self._in_thread(
            lambda: self._connection.execute(STATEMENTS[statement], _sought(values)).fetchall()
        )

    async def _in_thread(self, look: Callable[[], Answer]) -> Answer:
        def locked() -> Answer:
            with self._lock, clear_errors(self._path):
                return look()

        return await asyncio.to_thread(locked)


def _sought(values: dict[str, Any]) -> dict[str, Any]:
    """What no store can hold is looked for as what nothing is called."""
    return {name: findable(value) if type(value) is str else value for name, value in values.items()}


def _named(kind: type[Record], row: Sequence[Any]) -> Record:
    """A row whose columns are the fields of a struct; 0 and 1 may be False and True."""
    return msgspec.convert(dict(zip(kind.__struct_fields__, row, strict=True)), kind, strict=False)


def _run(row: Sequence[Any]) -> Run:
    *what, lanes = row[:11]
    return StoredRun(*what).run(msgspec.json.decode(lanes), Counters(*row[11:]))
