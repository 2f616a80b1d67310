"""Settlements as the store takes them, with their links, notes, entries, and what they tell about exits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, assert_never

from shoal.core.outcome import Dead, Done, Dropped, Retried, Settlement, Snoozed
from shoal.core.task import Extra, NewTask
from shoal.frontier.postgres.enqueue import task_columns
from shoal.frontier.postgres.store.columns import (
    Byproducts,
    Composite,
    ExitReports,
    NewTasks,
    Settlements,
    as_sent,
    counts,
    encode,
    turned,
)

DONE, RETRY, SNOOZE, DEAD, DROP = range(5)

NOTHING: tuple[Composite | list[int], ...] = (
    Settlements(**{field: [] for field in Settlements.__struct_fields__}),
    ExitReports(**{field: [] for field in ExitReports.__struct_fields__}),
    Byproducts(**{field: [] for field in Byproducts.__struct_fields__}),
    [],
    NewTasks(**{field: [] for field in NewTasks.__struct_fields__}),
)
"""No settlements."""


def settled_values(settlements: Sequence[Settlement]) -> tuple[Composite | list[int], ...]:
    """Settlements, exit reports, byproducts; and the links, behind the positions of their settlements."""
    if not settlements:
        return NOTHING
    link_of, links = _links(settlements)
    return (_columns(settlements), _exit_reports(settlements), _byproducts(settlements), link_of, task_columns(links))


def _columns(settlements: Sequence[Settlement]) -> Settlements:
    outcomes = [_outcome(settlement) for settlement in settlements]
    kinds, waits, penalties, urls, reasons, groups, numbers, bodies, causes, asides, extras = map(
        list, zip(*outcomes, strict=True)
    )
    return Settlements(
        run_id=[settlement.run_id for settlement in settlements],
        task=[settlement.task for settlement in settlements],
        token=[settlement.token for settlement in settlements],
        kind=kinds,
        started=[settlement.started_at for settlement in settlements],
        wait=counts(waits),
        penalty=penalties if any(waits) else [],
        requests=counts([settlement.requests for settlement in settlements]),
        received=counts([settlement.received for settlement in settlements]),
        refused=counts([settlement.refused for settlement in settlements]),
        duplicates=counts([settlement.duplicates for settlement in settlements]),
        crawl_delay=as_sent([settlement.crawl_delay for settlement in settlements]),
        url=as_sent(urls),
        reason=as_sent(reasons),
        group_name=as_sent(groups),
        n=counts(numbers),
        body=as_sent(bodies),
        pace=as_sent([settlement.pace for settlement in settlements]),
        cause=as_sent(causes),
        aside=counts(asides),
        extra=as_sent(extras),
    )


def _links(settlements: Sequence[Settlement]) -> tuple[list[int], list[NewTask]]:
    links: list[NewTask] = []
    link_of: list[int] = []
    known: set[tuple[int, int, str]] = set()
    for position, settlement in enumerate(settlements, 1):
        lease = (settlement.task, settlement.token, settlement.run_id)
        if isinstance(settlement.outcome, Done) and settlement.outcome.tasks and lease not in known:
            links.extend(settlement.outcome.tasks)
            link_of.extend([position] * len(settlement.outcome.tasks))
        known.add(lease)  # the same lease again cannot stand
    return link_of, links


def _exit_reports(settlements: Sequence[Settlement]) -> ExitReports:
    told = [
        (position, name, works)
        for position, settlement in enumerate(settlements, 1)
        if settlement.exits_failed or settlement.exits_ok
        for works, names in ((False, settlement.exits_failed), (True, settlement.exits_ok))
        for name in names
    ]
    return ExitReports(*turned(told, 3))


def _byproducts(settlements: Sequence[Settlement]) -> Byproducts:
    notes: list[tuple[Any, ...]] = []
    entries: list[tuple[Any, ...]] = []
    saved: list[tuple[Any, ...]] = []
    for position, settlement in enumerate(settlements, 1):
        if settlement.notes:
            notes += [(position, note.stream, note.body, note.ttl) for note in settlement.notes]
        if settlement.entries:
            entries += [(position, entry.key, entry.value, entry.ttl) for entry in settlement.entries]
        if settlement.saved_requests or settlement.saved_bytes:
            saved.append((position, settlement.saved_requests, settlement.saved_bytes))
    return Byproducts(*turned(notes, 4), *turned(entries, 4), *turned(saved, 3))


def _outcome(settlement: Settlement) -> tuple[Any, ...]:
    """Kind, wait, penalty, url, reason, group, number of items, items, what a rate limit said, aside, new extra."""
    match settlement.outcome:
        case Done(items=()):
            return DONE, 0, 0, None, None, None, 0, None, None, 0, None
        case Done(items=items, url=url, group=group):
            return DONE, 0, 0, url, None, group, len(items), b"[" + b",".join(items) + b"]", None, 0, None
        case Retried(wait=wait):
            return RETRY, wait, 0, None, None, None, 0, None, None, 0, None
        case Snoozed(wait=wait, penalty=penalty, extra=extra, reason=reason, aside=aside):
            cause = reason.text if reason and wait else None
            return SNOOZE, wait, penalty, None, None, None, 0, None, cause, aside, _extra(extra)
        case Dead(reason=reason, extra=extra, attempts=attempts):
            return DEAD, attempts, 0, None, encode(reason).decode(), None, 0, None, None, 0, _extra(extra)
        case Dropped(reason=reason):
            return DROP, 0, 0, None, encode(reason).decode(), None, 0, None, None, 0, None
        case other:
            assert_never(other)


def _extra(extra: Extra | None) -> str | None:
    return None if extra is None else encode(extra).decode()
