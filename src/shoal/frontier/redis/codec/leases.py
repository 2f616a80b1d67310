"""An exchange with one partition: what is asked, and the leases that are answered."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

import msgspec

from shoal.core.clock import Moment
from shoal.core.notes import Note
from shoal.core.task import NO_EXTRA, Extra, Lease, Task
from shoal.frontier.contract.frontier import Ask, WorkerInfo
from shoal.frontier.redis.codec.encoding import opaque, random_tokens
from shoal.frontier.redis.codec.notes import note_rows
from shoal.frontier.redis.codec.tasks import Body

_json = msgspec.json.encode
_extra = msgspec.json.Decoder(Extra)


class LeaseRow(msgspec.Struct, array_like=True, frozen=True):
    """A lease as a script answers it: its terms, and then all that is kept of it."""

    start_at: Moment
    start_by: Moment
    expires_at: Moment
    delay: int
    exclusive: bool
    penalty: int
    exit_failures: int
    token: int
    worker: str
    run: int
    line: int
    exit: str
    site: str
    id: int
    priority: int
    run_again: int
    ttl_until: Moment
    attempts: int
    crashes: int
    body: Body


class Exchanged(msgspec.Struct, array_like=True, frozen=True):
    """The answer of one partition to an exchange.

    `quiet`: runs that have nothing left there. `outbox`: parcels that were left there, and for which partition each is.
    `head`: since when the site at the front of what was asked for may be visited.
    """

    now: Moment
    wake_at: Moment | None
    left: int
    late: list[int]
    runs: list[tuple[int, str]]
    lines: list[tuple[int, str, str]]
    quiet: list[str]
    outbox: list[tuple[int, int]]
    head: Moment | None
    leases: list[LeaseRow]

    def granted(self) -> list[Lease]:
        """The leases as workers know them."""
        runs = dict(self.runs)
        lines = {number: (scraper, lane) for number, scraper, lane in self.lines}
        now = self.now
        found = []
        for row in self.leases:
            body = row.body
            scraper, lane = lines[row.line]
            task = Task(
                row.id,
                runs[row.run],
                scraper,
                body.url,
                row.site,
                lane,
                body.handler,
                row.priority,
                body.depth,
                row.attempts,
                row.crashes,
                NO_EXTRA if body.extra is None else _extra.decode(body.extra),
            )
            found.append(
                Lease(
                    task,
                    row.token,
                    row.exit,
                    now,
                    row.start_at,
                    row.start_by,
                    row.expires_at,
                    row.delay,
                    row.exclusive,
                    row.penalty,
                    row.exit_failures,
                )
            )
        return found


_exchanged = msgspec.msgpack.Decoder(Exchanged).decode


def decode_exchanged(pieces: Iterable[bytes]) -> Exchanged:
    """The answer of `exchange.lua`, which comes in pieces: the server is spared from joining them."""
    return _exchanged(b"".join(pieces))


def exchange_question(
    ask: Ask, settlements: Sequence[object], want: int, notes: Sequence[Note] = ()
) -> dict[str, object]:
    """An exchange with one partition. Tokens are drawn here, because chance is the same in every run of a script."""
    return {
        "seed": int.from_bytes(os.urandom(4), "big") >> 1,
        "tokens": opaque(random_tokens(want)),
        "settlements": settlements,
        "worker": who(ask.worker),
        "scrapers": ask.scrapers,
        "lanes": ask.lanes,
        "queues": ask.queues,
        "exits": ask.exits,
        "private": ask.private,
        "notes": note_rows(notes),
        "want": want,
        "ahead": ask.ahead,
    }


def who(worker: WorkerInfo) -> tuple[object, ...]:
    """Who a worker is. No part of it is nil, which a script would take for the end."""
    duties = _json(worker.duties).decode()
    return (worker.worker_id, worker.machine, worker.pid, worker.pid_started, worker.notebook or "", duties)
