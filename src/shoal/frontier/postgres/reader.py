"""Looking at the store. Snapshots never hold up the verbs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import msgspec

from shoal.clock import Clock, Moment
from shoal.errors import UnknownRun
from shoal.frontier.postgres.connections import Connections
from shoal.frontier.postgres.troubles import NO_RUN
from shoal.frontier.protocol import Counters, DeadLetter, Item, ItemPage, Run, SiteRecord, WorkerInfo, WorkerRecord
from shoal.outcome import Reason
from shoal.task import Policy, RunState

ROWS_AT_MOST = 500

_raw_items = msgspec.json.Decoder(list[msgspec.Raw])


class PostgresReader:
    """The `Reader` of this engine."""

    def __init__(self, connections: Connections, clock: Clock | None) -> None:
        self._connections = connections
        self._clock = clock

    async def runs(self) -> Sequence[Run]:
        return [_run(*row) for row in await self._connections.rows("read_runs", None)]

    async def run(self, run_id: str) -> Run:
        rows = await self._connections.rows("read_runs", run_id)
        if not rows:
            raise UnknownRun(run_id)
        return _run(*rows[0])

    async def items(self, run_id: str, cursor: int = 0, limit: int = 1000) -> ItemPage:
        rows = await self._of_run(run_id, "read_items", self._now(), run_id, cursor, ROWS_AT_MOST)
        items: list[Item] = []
        for number, url, group, body in rows:
            items.extend(Item(url, group, raw) for raw in _raw_items.decode(body))
            cursor = number
            if len(items) >= limit:
                return ItemPage(items, cursor)
        return ItemPage(items, cursor if rows else None)

    async def dead(self, run_id: str, after: int = 0, limit: int = 1000) -> Sequence[DeadLetter]:
        return [_dead_letter(*row) for row in await self._of_run(run_id, "read_dead", run_id, after, limit)]

    async def workers(self) -> Sequence[WorkerRecord]:
        rows = await self._connections.rows("read_workers", self._now())
        return [WorkerRecord(WorkerInfo(*row[:5]), row[5], row[6]) for row in rows]

    async def sites(self, limit: int = 100) -> Sequence[SiteRecord]:
        return [SiteRecord(*row) for row in await self._connections.rows("read_sites", limit)]

    async def cached(self, key: str) -> bytes | None:
        """The value that the cache holds under a key, if its time is not over."""
        value: bytes | None = await self._connections.value("read_cache", self._now(), key)
        return value

    def _now(self) -> Moment | None:
        return self._clock.now() if self._clock else None

    async def _of_run(self, run_id: str, function: str, *values: Any) -> list[Any]:
        try:
            return await self._connections.rows(function, *values)
        except asyncpg.PostgresError as error:
            if error.sqlstate == NO_RUN:
                raise UnknownRun(run_id) from None
            raise


def _dead_letter(*row: Any) -> DeadLetter:
    task, url, site, lane, handler, attempts, crashes, reason, died_at = row
    why = msgspec.json.decode(reason, type=Reason)
    return DeadLetter(task, url, site, lane, handler, attempts, crashes, why, died_at)


def _run(*row: Any) -> Run:
    run_id, scraper, mode, state, queue, policy, input_, created_at, ended_at, lanes, counts = row
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
        Counters(*counts),
        msgspec.json.decode(lanes),
    )
