"""Values as the columns that the functions of the store take: one array per field."""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from typing import Any, assert_never

import msgspec

from shoal.frontier.endings import names_of, page_of
from shoal.frontier.protocol import Ask, NewRun, WorkerInfo
from shoal.frontier.seen import seen_key
from shoal.outcome import Dead, Done, Dropped, Retried, Settlement, Snoozed
from shoal.task import NO_EXTRA, Extra, Lease, NewTask, Task

encode = msgspec.json.encode
_extra = msgspec.json.Decoder(Extra)

DONE, RETRY, SNOOZE, DEAD, DROP = range(5)

SETTLEMENT_FIELDS = 33
LINK_FIELDS = 11


def run_values(run: NewRun) -> list[Any]:
    """A new run: as it is stored, and what the frontier needs of its policy."""
    policy = run.policy
    lanes = {name: {"ttl": lane.ttl, "auto_ack": lane.auto_ack} for name, lane in policy.lanes.items()}
    return [
        run.run_id,
        run.scraper,
        run.mode,
        run.queue or run.run_id,
        encode(policy).decode(),
        run.input,
        policy.delay,
        policy.site_delay,
        policy.concurrency,
        policy.pool,
        policy.lease,
        policy.hard_timeout,
        policy.limit_exits,
        policy.limit_window,
        policy.crashes,
        policy.results_ttl,
        encode(lanes).decode(),
    ]


def worker_values(worker: WorkerInfo) -> list[Any]:
    """Who the worker is."""
    return [
        worker.worker_id,
        worker.machine,
        worker.pid,
        worker.pid_started,
        worker.notebook,
        encode(worker.duties).decode(),
    ]


def task_columns(tasks: Sequence[NewTask]) -> list[list[Any]]:
    """New tasks: url, site, key, lane (and pool, as `berth`), handler, priority, depth, wait, ttl, extra."""
    return [
        [task.url for task in tasks],
        [task.site for task in tasks],
        [_names(task) if task.key is None else seen_key(task.key) for task in tasks],
        [task.lane if task.pool is None else task.berth for task in tasks],
        as_sent([task.handler for task in tasks]),
        _counts([task.priority for task in tasks]),
        _counts([task.depth for task in tasks]),
        _counts([task.wait for task in tasks]),
        as_sent([task.ttl for task in tasks]),
        as_sent([None if task.extra is NO_EXTRA else encode(task.extra).decode() for task in tasks]),
    ]


def _names(task: NewTask) -> bytes | None:
    """What stands in place of a key where a page is let in again: its names, so that its old endings are forgotten."""
    page = page_of(task.url, task.extra)
    return None if page is None else b"".join(names_of(page))


def as_sent(column: list[Any]) -> list[Any]:
    """A column as it is sent: one of nothing but None need not be, because the store reads None where a list ends."""
    return [] if column.count(None) == len(column) else column


def _counts(column: list[Any]) -> list[Any]:
    """As `as_sent`, for a column where the store takes None for 0."""
    return column if any(column) else []


def ask_values(ask: Ask, want: int, *, patient: bool) -> list[Any]:
    """What a worker wants and, the first time, its notes. Each lease gets a token that nobody can guess."""
    notes = () if patient else ask.notes
    exits = [(pool, name) for pool, names in ask.exits.items() for name in names]
    return [
        *worker_values(ask.worker),
        list(ask.scrapers),
        list(ask.lanes),
        None if ask.queues is None else list(ask.queues),
        [pool for pool, _ in exits],
        [name for _, name in exits],
        want,
        ask.ahead,
        [number >> 11 for number in struct.unpack(f"{want}Q", os.urandom(8 * want))],
        patient,
        list(ask.private),
        [note.stream for note in notes],
        [note.body for note in notes],
        as_sent([note.ttl for note in notes]),
    ]


def settlement_columns(settlements: Sequence[Settlement]) -> list[list[Any]]:
    """Settlements, then the links that they bring, each with the position of its settlement."""
    if not settlements:
        return [[] for _ in range(SETTLEMENT_FIELDS + LINK_FIELDS)]
    outcomes = [_outcome(settlement) for settlement in settlements]
    kinds, waits, penalties, urls, notes, groups, numbers, bodies, causes = map(list, zip(*outcomes, strict=True))
    links: list[NewTask] = []
    link_of: list[int] = []
    known: set[tuple[int, int, str]] = set()
    for position, settlement in enumerate(settlements, 1):
        lease = (settlement.task, settlement.token, settlement.run_id)
        if isinstance(settlement.outcome, Done) and settlement.outcome.tasks and lease not in known:
            links.extend(settlement.outcome.tasks)
            link_of.extend([position] * len(settlement.outcome.tasks))
        known.add(lease)  # the same lease again cannot stand
    return [
        [settlement.run_id for settlement in settlements],
        [settlement.task for settlement in settlements],
        [settlement.token for settlement in settlements],
        kinds,
        [settlement.started_at for settlement in settlements],
        _counts(waits),
        penalties if any(waits) else [],
        _counts([settlement.requests for settlement in settlements]),
        _counts([settlement.received for settlement in settlements]),
        _counts([settlement.refused for settlement in settlements]),
        _counts([settlement.duplicates for settlement in settlements]),
        as_sent([settlement.crawl_delay for settlement in settlements]),
        as_sent(urls),
        as_sent(notes),
        as_sent(groups),
        _counts(numbers),
        as_sent(bodies),
        as_sent([settlement.pace for settlement in settlements]),
        as_sent(causes),
        *_told_about_exits(settlements),
        *_left_behind(settlements),
        link_of,
        *task_columns(links),
    ]


def _told_about_exits(settlements: Sequence[Settlement]) -> list[list[Any]]:
    """What settlements tell about exits: the position of each, the exit's name, and whether it works."""
    told = [
        (position, name, works)
        for position, settlement in enumerate(settlements, 1)
        if settlement.exits_failed or settlement.exits_ok
        for works, names in ((False, settlement.exits_failed), (True, settlement.exits_ok))
        for name in names
    ]
    return [[row[column] for row in told] for column in range(3)]


def _left_behind(settlements: Sequence[Settlement]) -> list[list[Any]]:
    """Notes, entries and savings of settlements, each with the position of its settlement."""
    notes: list[tuple[Any, ...]] = []
    entries: list[tuple[Any, ...]] = []
    saved: list[tuple[int, ...]] = []
    for position, settlement in enumerate(settlements, 1):
        notes += [(position, note.stream, note.body, note.ttl) for note in settlement.notes]
        entries += [(position, entry.key, entry.value, entry.ttl) for entry in settlement.entries]
        if settlement.saved_requests or settlement.saved_bytes:
            saved.append((position, settlement.saved_requests, settlement.saved_bytes))
    return [
        [row[column] for row in rows]
        for rows, width in ((notes, 4), (entries, 4), (saved, 3))
        for column in range(width)
    ]


def _outcome(settlement: Settlement) -> tuple[Any, ...]:
    """Kind, wait, penalty, url, note, group, number of items, items, what a rate limit said."""
    match settlement.outcome:
        case Done(items=()):
            return DONE, 0, 0, None, None, None, 0, None, None
        case Done(items=items, url=url, group=group):
            return DONE, 0, 0, url, None, group, len(items), b"[" + b",".join(items) + b"]", None
        case Retried(wait=wait):
            return RETRY, wait, 0, None, None, None, 0, None, None
        case Snoozed(wait=wait, penalty=penalty, url=url, extra=extra, reason=reason):
            cause = reason.text if reason and wait else None
            return SNOOZE, wait, penalty, url, None if extra is None else encode(extra).decode(), None, 0, None, cause
        case Dead(reason=reason, attempts=attempts):
            return DEAD, attempts, 0, None, encode(reason).decode(), None, 0, None, None
        case Dropped(reason=reason):
            return DROP, 0, 0, None, encode(reason).decode(), None, 0, None, None
        case other:
            assert_never(other)


def lease_of(row: Any, now: int) -> Lease:
    """A lease from a row of `exchange`."""
    (task, token, exit_name, start_at, start_by, expires_at, delay, exclusive, penalty, run_id, url, site, handler) = (
        row[:13]
    )
    priority, depth, attempts, crashes, extra, scraper, lane = row[13:20]
    body = NO_EXTRA if extra is None else _extra.decode(extra)
    what = Task(task, run_id, scraper, url, site, lane, handler, priority, depth, attempts, crashes, body)
    failures = row[25]
    return Lease(what, token, exit_name, now, start_at, start_by, expires_at, delay, exclusive, penalty, failures)
