"""The verb `exchange`: settle what is finished and claim more, in one call of one function; and renewals."""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

import msgspec

from shoal.core.notes import Note
from shoal.core.outcome import Settlement
from shoal.core.task import NO_EXTRA, Extra, Lease, Task
from shoal.frontier.contract.frontier import Ask, Granted, Renewal, WorkerInfo
from shoal.frontier.postgres.settle import settled_values
from shoal.frontier.postgres.store.columns import ClaimRequest, Composite, NewNotes, WorkerFields, as_sent, encode
from shoal.frontier.postgres.store.connections import Connections
from shoal.frontier.shared.lost_grants import lost_grants
from shoal.frontier.shared.refusals import storable_only

PATIENCE = 20
"""How often a claim waits for sites that others hold, before it comes back empty."""

_extra = msgspec.json.Decoder(Extra)
_task_fields = itemgetter(
    "task", "run_id", "scraper", "url", "site", "lane", "handler", "priority", "depth", "attempts", "crashes"
)
_grant_fields = itemgetter("start_at", "start_by", "expires_at", "delay", "exclusive", "penalty", "exit_failures")


class PostgresClaims:
    """What workers say all the time.

    An exchange whose answer was lost can be repeated: what the first call settled, the second reports as late. Leases
    whose grant was lost on the way come back with the next exchange that says what its worker holds, or else when they
    run out.
    """

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def exchange(self, ask: Ask) -> Granted:
        lost = [] if ask.held is None else lost_grants(ask, await self._leases_of(ask.worker))
        settlements = [*ask.settlements, *lost]
        with storable_only(self._connections.name):
            values = exchange_values(ask, settlements, patient=False)
        rows = await self._call(values)
        late: list[int] = []
        if len(rows[-1]["stood"]) < len(settlements):
            stood = set(rows[-1]["stood"])
            late = [s.token for position, s in enumerate(ask.settlements, 1) if position not in stood]
        if rows[-1]["busy"] and len(rows) == 1:
            rows = await self._wait_for_others(ask)
        answer = rows[-1]
        now = answer["moment"]
        leases = [lease_of(row, now) for row in rows[:-1]]
        return Granted(leases, now, answer["wake_at"], answer["remaining"], late)

    async def renew(self, worker: WorkerInfo, leases: Sequence[Renewal]) -> Sequence[int]:
        tasks, tokens = [lease.task for lease in leases], [lease.token for lease in leases]
        values = (self._connections.now(), worker_fields(worker), tasks, tokens)
        alive = set(await self._connections.value("renew", *values))
        return [token for token in tokens if token not in alive]

    async def _call(self, values: Sequence[Composite | list[int]]) -> list[Any]:
        """A row for each lease, and one that speaks for all."""
        return await self._connections.rows("exchange", self._connections.now(), *values)

    async def _wait_for_others(self, ask: Ask) -> list[Any]:
        """Everything due was locked by others: wait for their locks, now that this call holds none itself."""
        for _ in range(PATIENCE):
            rows = await self._call(exchange_values(ask, (), patient=True))
            if len(rows) > 1 or not rows[-1]["busy"]:
                break
        return rows

    async def _leases_of(self, worker: WorkerInfo) -> list[tuple[str, int, int]]:
        rows = await self._connections.rows("find_leases", worker.worker_id)
        return [(row["run_id"], row["task"], row["token"]) for row in rows]


def exchange_values(ask: Ask, settlements: Sequence[Settlement], *, patient: bool) -> list[Composite | list[int]]:
    """What `exchange` takes, behind the moment. `patient`: wait for others; notes are only sent the first time."""
    return [
        worker_fields(ask.worker),
        _claim_request(ask, patient=patient),
        _notes(() if patient else ask.notes),
        *settled_values(settlements),
    ]


def worker_fields(worker: WorkerInfo) -> WorkerFields:
    """A worker as the store takes it."""
    return WorkerFields(
        worker_id=worker.worker_id,
        machine=worker.machine,
        pid=worker.pid,
        pid_started=worker.pid_started,
        notebook=worker.notebook,
        duties=encode(worker.duties).decode(),
    )


def _claim_request(ask: Ask, *, patient: bool) -> ClaimRequest:
    """What a worker wants. Each lease gets a token that nobody can guess."""
    exits = [(pool, name) for pool, names in ask.exits.items() for name in names]
    return ClaimRequest(
        scrapers=list(ask.scrapers),
        lanes=list(ask.lanes),
        queues=None if ask.queues is None else list(ask.queues),
        pool=[pool for pool, _ in exits],
        exit=[name for _, name in exits],
        private=list(ask.private),
        want=ask.want,
        ahead=ask.ahead,
        tokens=[number >> 11 for number in struct.unpack(f"{ask.want}Q", os.urandom(8 * ask.want))],
        patient=patient,
    )


def _notes(notes: Sequence[Note]) -> NewNotes:
    return NewNotes(
        stream=[note.stream for note in notes],
        body=[note.body for note in notes],
        ttl=as_sent([note.ttl for note in notes]),
    )


def lease_of(row: Mapping[str, Any], now: int) -> Lease:
    """A lease from a row of `exchange`."""
    extra = NO_EXTRA if row["extra"] is None else _extra.decode(row["extra"])
    task = Task(*(*_task_fields(row), extra))
    return Lease(task, row["token"], row["exit"], now, *_grant_fields(row))
