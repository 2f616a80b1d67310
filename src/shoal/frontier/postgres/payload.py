"""Values as the columns that the functions of the store take: one array per field."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any, assert_never

import msgspec

from shoal.frontier.protocol import Ask, NewRun, WorkerInfo
from shoal.outcome import Dead, Done, Dropped, Retried, Settlement, Snoozed
from shoal.task import NO_EXTRA, Extra, Lease, NewTask, Task

encode = msgspec.json.encode
_extra = msgspec.json.Decoder(Extra)

DONE, RETRY, SNOOZE, DEAD, DROP = range(5)

SETTLEMENT_FIELDS = 17
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
        policy.crashes,
        policy.results_ttl,
        encode(lanes).decode(),
    ]


def worker_values(worker: WorkerInfo) -> list[Any]:
    """Who the worker is."""
    return [worker.worker_id, worker.machine, worker.pid, worker.pid_started, worker.notebook]


def task_columns(tasks: Sequence[NewTask]) -> list[list[Any]]:
    """New tasks: url, site, key, lane, handler, priority, depth, wait, ttl, extra."""
    return [
        [task.url for task in tasks],
        [task.site for task in tasks],
        [task.key for task in tasks],
        [task.lane for task in tasks],
        [task.handler for task in tasks],
        [task.priority for task in tasks],
        [task.depth for task in tasks],
        [task.wait for task in tasks],
        [task.ttl for task in tasks],
        [None if task.extra is NO_EXTRA else encode(task.extra).decode() for task in tasks],
    ]


def ask_values(ask: Ask, want: int, *, patient: bool) -> list[Any]:
    """What a worker wants, without what it brings. Each lease gets a token that nobody can guess."""
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
        [secrets.randbits(53) for _ in range(want)],
        patient,
    ]


def settlement_columns(settlements: Sequence[Settlement]) -> list[list[Any]]:
    """Settlements, then the links that they bring, each with the position of its settlement."""
    if not settlements:
        return [[] for _ in range(SETTLEMENT_FIELDS + LINK_FIELDS)]
    outcomes = [_outcome(settlement) for settlement in settlements]
    kinds, waits, penalties, urls, notes, groups, numbers, bodies = map(list, zip(*outcomes, strict=True))
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
        waits,
        penalties,
        [settlement.requests for settlement in settlements],
        [settlement.received for settlement in settlements],
        [settlement.refused for settlement in settlements],
        [settlement.duplicates for settlement in settlements],
        [settlement.crawl_delay for settlement in settlements],
        urls,
        notes,
        groups,
        numbers,
        bodies,
        link_of,
        *task_columns(links),
    ]


def _outcome(settlement: Settlement) -> tuple[Any, ...]:
    """Kind, wait, penalty, url, note, group, number of items, items."""
    match settlement.outcome:
        case Done(items=items, url=url, group=group):
            body = b"[" + b",".join(items) + b"]" if items else None
            return DONE, 0, 0, url, None, group, len(items), body
        case Retried(wait=wait):
            return RETRY, wait, 0, None, None, None, 0, None
        case Snoozed(wait=wait, penalty=penalty, url=url, extra=extra):
            return SNOOZE, wait, penalty, url, None if extra is None else encode(extra).decode(), None, 0, None
        case Dead(reason=reason):
            return DEAD, 0, 0, None, encode(reason).decode(), None, 0, None
        case Dropped():
            return DROP, 0, 0, None, None, None, 0, None
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
    return Lease(what, token, exit_name, now, start_at, start_by, expires_at, delay, exclusive, penalty)
