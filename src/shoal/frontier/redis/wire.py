"""Tasks and leases as the scripts read and write them: msgpack in both directions.

The scripts look at what moves a task. Its URL and the rest that only a worker reads pass through them as they are.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from shoal.clock import Moment
from shoal.frontier.endings import names_of, page_of
from shoal.frontier.moving import PackedEnding, PackedItems, PackedLetter, PackedSite, PackedSlot, PackedTask
from shoal.frontier.protocol import Ask, NewRun, WorkerInfo
from shoal.frontier.reading import Item
from shoal.kept import Entry, Note
from shoal.task import NO_EXTRA, Extra, Lease, NewTask, Task

encode = msgspec.msgpack.Encoder().encode
_json = msgspec.json.encode
_extra = msgspec.json.Decoder(Extra)

SEEN_BUCKETS = 1 << 14
"""The keys that a run has seen are kept as 64-bit numbers in so many sets: the bits that `seen_key` keeps."""

_KEY = struct.Struct(">qH")
BUCKETS = [f"{number:x}" for number in range(SEEN_BUCKETS)]
"""The names of those sets."""

ENDING_BUCKETS = [f"{number:03x}" for number in range(1 << 12)]
"""The names of the hashes that say how pages ended."""

_HEADS = [bytes((0xA0 | length,)) if length < 32 else bytes((0xD9, length)) for length in range(1 << 8)]
"""What stands before a short string of each length, in msgpack."""

_TOKEN_BYTES = 7
_FIVE_BITS = bytes(value & 0x1F for value in range(256))
"""The first of those bytes has so many bits: a token is a whole number that Lua knows exactly."""

_ITEMS = struct.Struct(">BI")
"""A stored batch of items begins with their number, as msgpack; what follows is for the client alone."""


class Body(msgspec.Struct, array_like=True, frozen=True):
    """The part of a task that only workers read. `extra` is JSON text."""

    url: str
    handler: str | None
    depth: int
    extra: str | None


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
_exchanged = msgspec.msgpack.Decoder(Exchanged).decode
_letter = msgspec.msgpack.Decoder(Letter).decode


def decode_exchanged(pieces: Iterable[bytes]) -> Exchanged:
    """The answer of `exchange.lua`, which comes in pieces: the server is spared from joining them."""
    return _exchanged(b"".join(pieces))


def decode_letter(packed: bytes) -> Letter:
    """A dead letter, from the values that a script packed one behind the other."""
    return _letter(b"\x99" + packed)


def opaque(data: bytes) -> msgspec.Raw:
    """Bytes as a msgpack string, which is what Redis' Lua reads them as (it does not know msgpack's binary type)."""
    length = len(data)
    if length < 1 << 8:
        return msgspec.Raw(_HEADS[length] + data)
    if length < 1 << 16:
        return msgspec.Raw(b"\xda" + length.to_bytes(2, "big") + data)
    return msgspec.Raw(b"\xdb" + length.to_bytes(4, "big") + data)


def task_groups(tasks: Iterable[NewTask]) -> list[list[object]]:
    """New tasks as `admit.lua` reads them: in their order, those that follow each other and are alike together."""
    groups: list[list[object]] = []
    alike: tuple[object, ...] = ()
    flat: list[object] = []
    for task in tasks:
        berth = task.lane if task.pool is None else task.berth
        traits = (berth, task.priority, task.wait, task.ttl)
        if traits != alike:
            alike = traits
            flat = []
            groups.append([berth, task.priority, task.wait, -1 if task.ttl is None else task.ttl, flat])
        key = task.key
        number, bucket = (False, _names(task)) if key is None else seen_row(key)
        extra = None if task.extra is NO_EXTRA else opaque(_json(task.extra))
        flat += (task.site, number, bucket, opaque(encode((task.url, task.handler, task.depth, extra))))
    return groups


def _names(task: NewTask) -> object:
    """What stands in place of a set where a page is let in again: its names, so that its old endings are forgotten."""
    page = page_of(task.url, task.extra)
    return False if page is None else opaque(b"".join(names_of(page)))


def seen_row(key: bytes) -> tuple[str, str]:
    """What a run remembers of a key, and the set that it is in."""
    number, bucket = _KEY.unpack_from(key)
    return str(number), BUCKETS[bucket % SEEN_BUCKETS]


def packed_token(token: int) -> bytes:
    """A token as the scripts know it: its msgpack form, which they only compare and pass on."""
    return b"\xcf" + token.to_bytes(8, "big")


def random_tokens(number: int) -> bytes:
    """New tokens of 53 bits, each as `packed_token` has it, one behind the other."""
    chance = os.urandom(_TOKEN_BYTES * number)
    tokens = bytearray(9 * number)
    tokens[0::9] = b"\xcf" * number
    tokens[2::9] = chance[:number].translate(_FIVE_BITS)
    for place in range(1, _TOKEN_BYTES):
        tokens[place + 2 :: 9] = chance[place * number : (place + 1) * number]
    return bytes(tokens)


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


def ending_row(ending: PackedEnding) -> tuple[object, ...]:
    """How a page ended, from another store, as `unpack_endings.lua` reads it: 5 values."""
    return (opaque(ending.name), ending.state, ending.ended_at, ending.reason or False, ending.url or False)


def site_row(site: PackedSite) -> tuple[object, ...]:
    """The clocks of a site that come from another store, as `unpack_sites.lua` reads them."""
    whole = [PackedSlot("", site.begun_at, 0, 0, 0)] if site.begun_at else []
    return (site.site, site.crawl_delay, [*site.slots, *whole])


def _body(task: PackedTask | PackedLetter) -> msgspec.Raw:
    return opaque(encode((task.url, task.handler, task.depth, task.extra)))


def note_rows(notes: Iterable[Note]) -> list[tuple[object, ...]]:
    """Notes as `notes.lua` reads them."""
    return [(note.stream, opaque(note.body), -1 if note.ttl is None else note.ttl) for note in notes]


def home_of(key: str) -> str:
    """What decides on the partition of an entry: the site that it lies beside, or else its whole key."""
    return key.partition(" ")[0]


def entry_rows(entries: Iterable[Entry]) -> list[tuple[object, ...]]:
    """Entries of the cache as `entries.lua` reads them."""
    return [(entry.key, opaque(entry.value), entry.ttl) for entry in entries]


def remembered(notes: Iterable[Note], entries: Iterable[Entry]) -> dict[str, object]:
    """What `remember.lua` is asked to keep."""
    return {"notes": note_rows(notes), "entries": entry_rows(entries)}


def question(ask: Ask, settlements: Sequence[object], want: int, notes: Sequence[Note] = ()) -> dict[str, object]:
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
