"""Tasks, settlements and leases as the scripts read and write them: msgpack in both directions.

The scripts look at what moves a task. Its URL and the rest that only a worker reads pass through them as they are.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any, assert_never

import msgspec

from shoal.clock import Moment
from shoal.frontier.moving import PackedItems, PackedLetter, PackedSite, PackedSlot, PackedTask
from shoal.frontier.protocol import Ask, Item, NewRun, WorkerInfo
from shoal.kept import Entry, Note
from shoal.outcome import Dead, Done, Dropped, Retried, Settlement, Snoozed
from shoal.task import NO_EXTRA, Extra, Lease, NewTask, Task

encode = msgspec.msgpack.Encoder().encode
_json = msgspec.json.encode
_extra = msgspec.json.Decoder(Extra)

SEEN_BUCKETS = 1 << 14
"""The keys that a run has seen are kept as 64-bit numbers in so many sets: the bits that `seen_key` keeps."""

PartitionOf = Callable[[str], int]
"""Which partition a site belongs to; HERE = the one that is asked."""

HERE = -1

_KEY = struct.Struct(">qH")
BUCKETS = [f"{number:x}" for number in range(SEEN_BUCKETS)]
"""The names of those sets."""

_ITEMS = struct.Struct(">BI")
"""A stored batch of items begins with their number, as msgpack; what follows is for the client alone."""


class Body(msgspec.Struct, array_like=True, frozen=True):
    """The part of a task that only workers read. `extra` is JSON text."""

    url: str
    handler: str | None
    depth: int
    extra: str | None


class LeaseRow(msgspec.Struct, array_like=True, frozen=True):
    """A lease as a script answers it."""

    id: int
    priority: int
    run: int
    ttl_until: Moment
    attempts: int
    crashes: int
    body: Body
    line: int
    site: str
    token: int
    exit: str
    start_at: Moment
    start_by: Moment
    expires_at: Moment
    delay: int
    exclusive: bool
    penalty: int
    exit_failures: int


class Letter(msgspec.Struct, array_like=True, frozen=True):
    """A dead letter as a script keeps it. `reason` is JSON text."""

    id: int
    site: str
    line: int
    attempts: int
    crashes: int
    died_at: Moment
    reason: str
    priority: int
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


_decode_batch = msgspec.msgpack.Decoder(tuple[str, str | None, bytes]).decode
_raw_items = msgspec.json.Decoder(list[msgspec.Raw]).decode
decode_exchanged = msgspec.msgpack.Decoder(Exchanged).decode
_letter = msgspec.msgpack.Decoder(Letter).decode


def decode_letter(packed: bytes) -> Letter:
    """A dead letter, from the values that a script packed one behind the other."""
    return _letter(b"\x99" + packed)


def opaque(data: bytes) -> msgspec.Raw:
    """Bytes as a msgpack string, which is what Redis' Lua reads them as (it does not know msgpack's binary type)."""
    length = len(data)
    if length < 32:
        return msgspec.Raw(bytes((0xA0 | length,)) + data)
    if length < 1 << 8:
        return msgspec.Raw(bytes((0xD9, length)) + data)
    if length < 1 << 16:
        return msgspec.Raw(b"\xda" + length.to_bytes(2, "big") + data)
    return msgspec.Raw(b"\xdb" + length.to_bytes(4, "big") + data)


def task_groups(tasks: Iterable[NewTask]) -> list[list[object]]:
    """New tasks as `admit.lua` reads them: in their order, those that follow each other and are alike together."""
    groups: list[list[object]] = []
    alike: tuple[object, ...] = ()
    flat: list[object] = []
    for task in tasks:
        traits = (task.lane, task.priority, task.wait, task.ttl)
        if traits != alike:
            alike = traits
            flat = []
            groups.append([task.lane, task.priority, task.wait, -1 if task.ttl is None else task.ttl, flat])
        key = task.key
        if key is None:
            flat += (task.site, False, False)
        else:
            flat += (task.site, *seen_row(key))
        extra = None if task.extra is NO_EXTRA else opaque(_json(task.extra))
        flat.append(opaque(encode((task.url, task.handler, task.depth, extra))))
    return groups


def seen_row(key: bytes) -> tuple[str, str]:
    """What a run remembers of a key, and the set that it is in."""
    number, bucket = _KEY.unpack_from(key)
    return str(number), BUCKETS[bucket % SEEN_BUCKETS]


def packed_token(token: int) -> bytes:
    """A token as the scripts know it: its msgpack form, which they only compare and pass on."""
    return b"\xcf" + token.to_bytes(8, "big")


def settlement_row(settlement: Settlement, partition_of: PartitionOf) -> tuple[object, ...]:
    """A settlement as `settle.lua` reads it: 14 values."""
    return (
        str(settlement.task),
        msgspec.Raw(b"\xa9" + packed_token(settlement.token)),
        settlement.run_id,
        settlement.started_at or 0,
        settlement.requests,
        settlement.received,
        settlement.refused,
        settlement.duplicates,
        _about_others(settlement, partition_of),
        *_outcome(settlement, partition_of),
    )


def _about_others(settlement: Settlement, partition_of: PartitionOf) -> int | tuple[object, ...]:
    """What a settlement says about its site, about exits, and for later: mostly nothing but a crawl delay, or not even
    that."""
    crawl_delay = -1 if settlement.crawl_delay is None else settlement.crawl_delay
    failed, well, pace = settlement.exits_failed, settlement.exits_ok, settlement.pace
    outcome = settlement.outcome
    reason = outcome.reason if isinstance(outcome, Snoozed) and outcome.wait else None
    saved = (settlement.saved_requests, settlement.saved_bytes)
    left = settlement.notes or settlement.entries
    if reason is None and pace is None and not failed and not well and not left and not any(saved):
        return crawl_delay
    told = (crawl_delay, -1 if pace is None else pace, failed, well, "" if reason is None else reason.text)
    return (*told, *_left_behind(settlement, partition_of), *saved)


def _left_behind(settlement: Settlement, partition_of: PartitionOf) -> tuple[object, ...]:
    """Notes and entries of this settlement's own partition, and those of others as parcels."""
    notes: dict[int, list[Note]] = {}
    entries: dict[int, list[Entry]] = {}
    for note in settlement.notes:
        notes.setdefault(partition_of(note.stream), []).append(note)
    for entry in settlement.entries:
        entries.setdefault(partition_of(entry.key), []).append(entry)
    parcels = [
        (target, opaque(encode(remembered(notes.get(target, ()), entries.get(target, ())))))
        for target in sorted({*notes, *entries} - {HERE})
    ]
    return (note_rows(notes.get(HERE, ())), entry_rows(entries.get(HERE, ())), parcels)


def _outcome(settlement: Settlement, partition_of: PartitionOf) -> tuple[object, ...]:
    match settlement.outcome:
        case Done(items=(), tasks=()):
            return (0, 0, False, False, False)
        case Done() as done:
            return (0, *_items(done), *_links(done.tasks, partition_of))
        case Retried(wait=wait):
            return (1, wait, False, False, False)
        case Snoozed(wait=wait, penalty=penalty, url=url, extra=extra):
            return (2, wait, penalty, url or False, False if extra is None else opaque(_json(extra)))
        case Dead(reason=reason):
            return (3, opaque(_json(reason)), False, False, False)
        case Dropped():
            return (4, False, False, False, False)
        case other:
            assert_never(other)


def _items(done: Done) -> tuple[object, ...]:
    if not done.items:
        return (0, False)
    body = b"[" + b",".join(done.items) + b"]"
    return (len(done.items), opaque(_ITEMS.pack(0xCE, len(done.items)) + encode((done.url, done.group, body))))


def _links(tasks: Sequence[NewTask], partition_of: PartitionOf) -> tuple[object, ...]:
    """The links of this settlement's own partition, and those of others as parcels."""
    if not tasks:
        return (False, False)
    here: list[NewTask] = []
    away: dict[int, list[NewTask]] = {}
    for task in tasks:
        target = partition_of(task.site)
        if target == HERE:
            here.append(task)
        else:
            away.setdefault(target, []).append(task)
    parcels = [(target, opaque(encode(task_groups(some)))) for target, some in away.items()]
    return (task_groups(here) if here else False, parcels or False)


def stored_items(record: bytes) -> list[Item]:
    """The items of one stored batch."""
    url, group, body = _decode_batch(record[_ITEMS.size :])
    return [Item(url, group, raw) for raw in _raw_items(body)]


def who(worker: WorkerInfo) -> tuple[object, ...]:
    """Who a worker is. No part of it is nil, which a script would take for the end."""
    duties = _json(worker.duties).decode()
    return (worker.worker_id, worker.machine, worker.pid, worker.pid_started, worker.notebook or "", duties)


def unpacked_items(record: bytes) -> PackedItems:
    """One stored batch of items, on its way to another store."""
    return PackedItems(_ITEMS.unpack_from(record)[1], *_decode_batch(record[_ITEMS.size :]))


def packed_items(batch: PackedItems) -> bytes:
    """A batch of items that comes from another store."""
    return _ITEMS.pack(0xCE, batch.items) + encode((batch.url, batch.group, batch.body))


def full_key(number: int, bucket: int) -> bytes:
    """A key that was seen, from its number and the set it is in: as `seen_key` makes it."""
    return _KEY.pack(number, bucket)


def key_row(key: bytes) -> tuple[str, str]:
    """A key that comes from another store, as `unpack_keys.lua` reads it."""
    number, bucket = _KEY.unpack(key)
    return BUCKETS[bucket], str(number)


def task_row(task: PackedTask) -> tuple[object, ...]:
    """A task that comes from another store, as `unpack_tasks.lua` reads it: 9 values."""
    when = (task.not_before or 0, task.expires_at or 0)
    return (task.number, task.lane, task.site, task.priority, *when, task.attempts, task.crashes, _body(task))


def dead_row(letter: PackedLetter) -> tuple[object, ...]:
    """A dead letter that comes from another store, as `unpack_letters.lua` reads it: 9 values."""
    why = (letter.died_at, letter.reason, letter.priority)
    return (letter.number, letter.lane, letter.site, letter.attempts, letter.crashes, *why, _body(letter))


def site_row(site: PackedSite) -> tuple[object, ...]:
    """The clocks of a site that come from another store, as `unpack_sites.lua` reads them."""
    whole = [PackedSlot("", site.begun_at, 0, 0, 0)] if site.begun_at else []
    return (site.site, site.crawl_delay, [*site.slots, *whole])


def _body(task: PackedTask | PackedLetter) -> msgspec.Raw:
    return opaque(encode((task.url, task.handler, task.depth, task.extra)))


def note_rows(notes: Iterable[Note]) -> list[tuple[object, ...]]:
    """Notes as `notes.lua` reads them."""
    return [(note.stream, opaque(note.body), -1 if note.ttl is None else note.ttl) for note in notes]


def entry_rows(entries: Iterable[Entry]) -> list[tuple[object, ...]]:
    """Entries of the cache as `entries.lua` reads them."""
    return [(entry.key, opaque(entry.value), entry.ttl) for entry in entries]


def remembered(notes: Iterable[Note], entries: Iterable[Entry]) -> dict[str, object]:
    """What `remember.lua` is asked to keep."""
    return {"notes": note_rows(notes), "entries": entry_rows(entries)}


def question(ask: Ask, settlements: Sequence[object], want: int, notes: Sequence[Note] = ()) -> dict[str, object]:
    """An exchange with one partition. Tokens are drawn here, because chance is the same in every run of a script."""
    seed, *tokens = (number >> 11 for number in struct.unpack(f"<{want + 1}Q", os.urandom(8 * (want + 1))))
    return {
        "seed": seed >> 22,
        "tokens": opaque(b"".join(map(packed_token, tokens))),
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


def run_question(run: NewRun) -> dict[str, Any]:
    """A new run, with the rules that the scripts need apart from the policy that they only keep."""
    policy = run.policy
    rules = {
        "delay": policy.delay,
        "site_delay": policy.site_delay,
        "concurrency": policy.concurrency,
        "hard_timeout": policy.hard_timeout,
        "lease": policy.lease,
        "limit_exits": policy.limit_exits,
        "limit_window": policy.limit_window,
        "crashes": policy.crashes,
        "results_ttl": policy.results_ttl,
        "pool": policy.pool,
        "queue": run.queue or run.run_id,
        "scraper": run.scraper,
        "lanes": {lane: (False if own.ttl is None else own.ttl, own.auto_ack) for lane, own in policy.lanes.items()},
    }
    return {
        "run_id": run.run_id,
        "scraper": run.scraper,
        "mode": run.mode,
        "policy": opaque(_json(policy)),
        "rules": rules,
        "input": None if run.input is None else opaque(run.input),
    }
