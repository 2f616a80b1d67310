"""Looking at the store. Snapshots never hold up the verbs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import msgspec

from shoal.core.clock import Clock, Moment
from shoal.core.storable import findable, is_storable
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
from shoal.frontier.postgres.errors import NO_RUN
from shoal.frontier.postgres.store.connections import Connections
from shoal.frontier.postgres.whereabouts import find_page
from shoal.frontier.shared.item_rows import item_page
from shoal.frontier.shared.letter_rows import dead_letter
from shoal.frontier.shared.run_rows import StoredRun
from shoal.frontier.shared.seen import seen_key
from shoal.frontier.shared.worker_rows import worker_record

ROWS_AT_MOST = 500


class PostgresReader:
    """The `Reader` of this engine."""

    def __init__(self, connections: Connections, clock: Clock | None) -> None:
        self._connections = connections
        self._clock = clock

    async def runs(self) -> Sequence[Run]:
        return [_run(*row) for row in await self._connections.rows("read_runs", None)]

    async def run(self, run_id: str) -> Run:
        rows = await self._look("read_runs", run_id)
        if not rows:
            raise UnknownRun(run_id)
        return _run(*rows[0])

    async def items(self, run_id: str, cursor: int = 0, limit: int = 1000) -> ItemPage:
        rows = await self._of_run(run_id, "read_items", self._now(), run_id, cursor, min(limit, ROWS_AT_MOST))
        return item_page(rows, limit)

    async def dead(self, run_id: str, after: int = 0, limit: int = 1000) -> Sequence[DeadLetter]:
        return [dead_letter(row) for row in await self._of_run(run_id, "read_dead", run_id, after, limit)]

    async def workers(self) -> Sequence[WorkerRecord]:
        rows = await self._connections.rows("read_workers", self._now(), SHOWN_TASKS)
        return [worker_record(row) for row in rows]

    async def scrapers(self) -> Mapping[str, int]:
        return dict(await self._connections.rows("read_scrapers"))

    async def sites(self, limit: int = 100) -> Sequence[SiteRecord]:
        return [SiteRecord(*row) for row in await self._connections.rows("read_sites", self._now(), limit, None)]

    async def sites_of(self, queue: str, limit: int = 100) -> Sequence[SiteRecord]:
        rows = await self._look("read_sites_of_queue", self._now(), limit, queue)
        return [SiteRecord(*row) for row in rows]

    async def site(self, site: str) -> SiteRecord | None:
        rows = await self._look("read_sites", self._now(), 1, site)
        return SiteRecord(*rows[0]) if rows else None

    async def slots(self, site: str) -> Sequence[SlotRecord]:
        return [SlotRecord(*row) for row in await self._look("read_slots", self._now(), site)]

    async def whereabouts(self, site: str, url: str, key: bytes, run_id: str | None = None) -> Sequence[Whereabouts]:
        return await find_page(self._look, self._now(), site, url, seen_key(key), run_id)

    async def notes(self, stream: str, cursor: int = 0, limit: int = 1000) -> NotePage:
        rows = await self._look("read_notes", stream, cursor, limit)
        return NotePage([body for _, body in rows], rows[-1][0] if rows else cursor)

    async def now(self) -> Moment:
        return int(await self._connections.value("read_now", self._now()))

    async def cached(self, keys: Sequence[str]) -> dict[str, bytes]:
        """What the cache holds under these keys, as far as its time is not over."""
        return dict(await self._connections.rows("read_cache", self._now(), list(filter(is_storable, keys))))

    async def _look(self, function: str, *values: Any) -> list[Any]:
        """What a function answers that only looks. What no store can hold is looked for as what nothing is called."""
        asked = [findable(value) if isinstance(value, str) else value for value in values]
        return await self._connections.rows(function, *asked)

    def _now(self) -> Moment | None:
        return self._clock.now() if self._clock else None

    async def _of_run(self, run_id: str, function: str, *values: Any) -> list[Any]:
        try:
            return await self._look(function, *values)
        except asyncpg.PostgresError as error:
            if error.sqlstate == NO_RUN:
                raise UnknownRun(run_id) from None
            raise


def _run(*row: Any) -> Run:
    *what, lanes, counts = row
    return StoredRun(*what).run(msgspec.json.decode(lanes), Counters(*counts))
