"""Runs from their creation to their end, and their dead letters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import asyncpg  # type: ignore[import-untyped]

from shoal.core.storable import findable
from shoal.errors import BeingMoved, UnknownRun, UsageError
from shoal.frontier.contract.frontier import NewRun, Run
from shoal.frontier.postgres.errors import NO_RUN, RUN_ARRIVING, RUN_CANCELLED, RUN_LEAVING
from shoal.frontier.postgres.reader import PostgresReader
from shoal.frontier.postgres.store.columns import RunFields, encode
from shoal.frontier.postgres.store.connections import Connections


class PostgresRuns:
    """What can be said to a run as a whole."""

    def __init__(self, connections: Connections, reader: PostgresReader) -> None:
        self._connections = connections
        self._reader = reader

    async def create(self, run: NewRun) -> Run:
        await self._connections.rows("create_run", self._connections.now(), run_fields(run))
        return await self._reader.run(run.run_id)

    async def seal(self, run_id: str) -> None:
        await self._of_run(run_id, "change_run", self._connections.now(), run_id, "seal")

    async def pause(self, run_id: str) -> None:
        await self._of_run(run_id, "change_run", self._connections.now(), run_id, "pause")

    async def resume(self, run_id: str) -> None:
        await self._of_run(run_id, "resume_run", self._connections.now(), run_id)

    async def cancel(self, run_id: str) -> None:
        await self._of_run(run_id, "change_run", self._connections.now(), run_id, "cancel")

    async def requeue_dead(self, run_id: str, tasks: Sequence[int] | None) -> int:
        cancelled = f"Run {run_id!r} was cancelled; its dead letters cannot be tried again."
        values = (self._connections.now(), run_id, None if tasks is None else list(tasks))
        return int(await self._of_run(run_id, "requeue_dead", *values, cancelled=cancelled))

    async def purge_dead(self, run_id: str, tasks: Sequence[int] | None) -> int:
        return int(await self._of_run(run_id, "purge_dead", run_id, None if tasks is None else list(tasks)))

    async def _of_run(self, run_id: str, function: str, *values: Any, cancelled: str = "") -> Any:
        with run_errors(run_id, cancelled=cancelled):
            asked = [findable(value) if value is run_id else value for value in values]
            return await self._connections.value(function, *asked)


@contextmanager
def run_errors(run_id: str, *, cancelled: str = "") -> Iterator[None]:
    """What functions raise about a run, as Shoal's own errors. `cancelled`: the sentence for a run that was."""
    try:
        yield
    except asyncpg.PostgresError as error:
        if error.sqlstate == NO_RUN:
            raise UnknownRun(run_id) from None
        if error.sqlstate == RUN_CANCELLED:
            raise UsageError(cancelled) from None
        if error.sqlstate in (RUN_LEAVING, RUN_ARRIVING):
            raise BeingMoved(run_id, arriving=error.sqlstate == RUN_ARRIVING) from None
        raise


def run_fields(run: NewRun) -> RunFields:
    """A new run as the store takes it."""
    policy = run.policy
    lanes = {name: {"ttl": lane.ttl, "auto_ack": lane.auto_ack} for name, lane in policy.lanes.items()}
    return RunFields(
        run_id=run.run_id,
        scraper=run.scraper,
        mode=run.mode,
        queue=run.queue or run.run_id,
        policy=encode(policy).decode(),
        input=run.input,
        delay=policy.delay,
        site_delay=policy.site_delay,
        concurrency=policy.concurrency,
        pool=policy.pool,
        lease=policy.lease,
        hard_timeout=policy.hard_timeout,
        limit_exits=policy.limit_exits,
        limit_window=policy.limit_window,
        crashes=policy.crashes,
        results_ttl=policy.results_ttl,
        lanes=encode(lanes).decode(),
    )
