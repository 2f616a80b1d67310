"""Looking at the store. Snapshots never hold up the verbs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import msgspec

from shoal.clock import Clock, Moment
from shoal.errors import UnknownRun
from shoal.frontier.endings import last_of, names_of
from shoal.frontier.moving import Move
from shoal.frontier.postgres.connections import Connections
from shoal.frontier.postgres.troubles import NO_RUN
from shoal.frontier.protocol import Counters, Run
from shoal.frontier.reading import (
    SHOWN_TASKS,
    DeadLetter,
    Item,
    ItemPage,
    NotePage,
    SiteRecord,
    SlotRecord,
    Whereabouts,
    WorkerRecord,
)
from shoal.frontier.seen import seen_key
from shoal.frontier.worker_rows import worker_record
from shoal.outcome import Reason
from shoal.task import FINAL, Policy, RunState, State

ROWS_AT_MOST = 500

LEASED, DEAD_LETTER, ENDED = 2, 4, 5
"""How `read_whereabouts` marks these, beside other states of tasks."""

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
        rows = await self._connections.rows("read_workers", self._now(), SHOWN_TASKS)
        return [worker_record(row) for row in rows]

    async def scrapers(self) -> Mapping[str, int]:
        return dict(await self._connections.rows("read_scrapers"))

    async def sites(self, limit: int = 100) -> Sequence[SiteRecord]:
        return [SiteRecord(*row) for row in await self._connections.rows("read_sites", self._now(), limit, None)]

    async def sites_of(self, queue: str, limit: int = 100) -> Sequence[SiteRecord]:
        rows = await self._connections.rows("read_sites_of_queue", self._now(), limit, queue)
        return [SiteRecord(*row) for row in rows]

    async def site(self, site: str) -> SiteRecord | None:
        rows = await self._connections.rows("read_sites", self._now(), 1, site)
        return SiteRecord(*rows[0]) if rows else None

    async def slots(self, site: str) -> Sequence[SlotRecord]:
        return [SlotRecord(*row) for row in await self._connections.rows("read_slots", self._now(), site)]

    async def whereabouts(self, site: str, url: str, key: bytes, run_id: str | None = None) -> Sequence[Whereabouts]:
        names = list(names_of(url))
        rows = await self._connections.rows("read_whereabouts", self._now(), site, url, names, seen_key(key), run_id)
        found: dict[str, list[Whereabouts]] = {}
        for row in rows:
            place = _whereabouts(*row)
            found.setdefault(place.run_id, []).append(place)
        return [last_of(places) for places in found.values()]

    async def notes(self, stream: str, cursor: int = 0, limit: int = 1000) -> NotePage:
        rows = await self._connections.rows("read_notes", stream, cursor, limit)
        return NotePage([body for _, body in rows], rows[-1][0] if rows else cursor)

    async def now(self) -> Moment:
        return int(await self._connections.value("moment", self._now()))

    async def cached(self, keys: Sequence[str]) -> dict[str, bytes]:
        """What the cache holds under these keys, as far as its time is not over."""
        return dict(await self._connections.rows("read_cache", self._now(), list(keys)))

    def _now(self) -> Moment | None:
        return self._clock.now() if self._clock else None

    async def _of_run(self, run_id: str, function: str, *values: Any) -> list[Any]:
        try:
            return await self._connections.rows(function, *values)
        except asyncpg.PostgresError as error:
            if error.sqlstate == NO_RUN:
                raise UnknownRun(run_id) from None
            raise


def _whereabouts(run_id: str, scraper: str, run_state: str, state: int | None, *rest: Any) -> Whereabouts:
    task, lane, pool, ahead, not_before, expires_at, attempts, crashes, worker, exit_name, lease_until, *ending = rest
    reason, ended_at, url, ended = ending
    run = RunState(run_state)
    if state is None:
        return Whereabouts(run_id, scraper, run, State.DONE)
    kinds = {LEASED: State.LEASED, DEAD_LETTER: State.DEAD, ENDED: State(ended)}
    where = kinds.get(state, State.WAITING)
    held = where is State.WAITING and run is RunState.PAUSED
    why = None if reason is None else msgspec.json.decode(reason, type=Reason)
    return Whereabouts(
        run_id,
        scraper,
        run,
        where,
        task,
        lane,
        pool,
        ahead,
        not_before,
        expires_at,
        attempts,
        crashes,
        worker,
        exit_name,
        lease_until,
        held,
        why,
        ended_at if where in FINAL else None,
        url,
    )


def _dead_letter(*row: Any) -> DeadLetter:
    task, url, site, lane, handler, attempts, crashes, reason, died_at = row
    why = msgspec.json.decode(reason, type=Reason)
    return DeadLetter(task, url, site, lane, handler, attempts, crashes, why, died_at)


def _run(*row: Any) -> Run:
    run_id, scraper, mode, state, queue, policy, input_, created_at, ended_at, move, lanes, counts = row
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
        None if move is None else msgspec.json.decode(move, type=Move),
    )
