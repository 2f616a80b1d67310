"""Settlements as the scripts read them: what is as usual takes no words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import assert_never

import msgspec

from shoal.core.notes import Entry, Note
from shoal.core.outcome import Dead, Done, Dropped, Retried, Settlement, Snoozed
from shoal.core.task import Extra, NewTask
from shoal.frontier.contract.mover import PackedItems
from shoal.frontier.redis.codec.encoding import encode, opaque
from shoal.frontier.redis.codec.items import packed_items
from shoal.frontier.redis.codec.notes import entry_rows, home_of, note_rows, remembered
from shoal.frontier.redis.codec.tasks import task_groups

_json = msgspec.json.encode

PartitionOf = Callable[[str], int]
"""Which partition a site belongs to; HERE = the one that is asked."""

HERE = -1


def settlement_groups(settlements: Iterable[Settlement], partition_of: PartitionOf) -> list[object]:
    """Settlements as `settle.lua` reads them: in their order, those of one run that follow each other together."""
    groups: list[object] = []
    run_id = None
    flat: list[object] = []
    for settlement in settlements:
        if settlement.run_id != run_id:
            run_id = settlement.run_id
            flat = []
            groups += (run_id, flat)
        flat += (
            str(settlement.task),
            msgspec.Raw(b"\xa9\xcf" + settlement.token.to_bytes(8, "big")),
            settlement.started_at or 0,
            settlement.received,
            _rest(settlement, partition_of),
        )
    return groups


def _rest(settlement: Settlement, partition_of: PartitionOf) -> int | tuple[object, ...]:
    """What else there is to say: mostly little."""
    outcome = settlement.outcome
    if settlement.requests == 1 and type(outcome) is Done and _says_no_more(settlement):
        return _outcome(settlement, partition_of) if outcome.items or outcome.tasks else 0
    said = (settlement.requests, settlement.refused, settlement.duplicates, _about_others(settlement, partition_of))
    aside = (outcome.aside,) if type(outcome) is Snoozed and outcome.aside else ()
    return (*_outcome(settlement, partition_of), *said, *aside)


def _says_no_more(of: Settlement) -> bool:
    """Whether there is nothing but what became of its task."""
    counted = of.refused or of.duplicates or of.saved_requests or of.saved_bytes
    left = of.notes or of.entries or of.exits_failed or of.exits_ok
    return not counted and not left and of.crawl_delay is None and of.pace is None


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
        entries.setdefault(partition_of(home_of(entry.key)), []).append(entry)
    parcels = [
        (target, opaque(encode(remembered(notes.get(target, ()), entries.get(target, ())))))
        for target in sorted({*notes, *entries} - {HERE})
    ]
    return (note_rows(notes.get(HERE, ())), entry_rows(entries.get(HERE, ())), parcels)


def _outcome(settlement: Settlement, partition_of: PartitionOf) -> tuple[object, ...]:
    match settlement.outcome:
        case Done() as done:
            return (0, *_items(done), *_links(done.tasks, partition_of))
        case Retried(wait=wait):
            return (1, wait, False, False, False)
        case Snoozed(wait=wait, penalty=penalty, extra=extra):
            return (2, wait, penalty, False, _extra(extra))
        case Dead(reason=reason, extra=extra, attempts=attempts):
            return (3, opaque(_json(reason)), False, attempts, _extra(extra))
        case Dropped(reason=reason):
            return (4, opaque(_json(reason)), False, False, False)
        case other:
            assert_never(other)


def _extra(extra: Extra | None) -> object:
    return False if extra is None else opaque(_json(extra))


def _items(done: Done) -> tuple[object, ...]:
    if not done.items:
        return (0, False)
    batch = PackedItems(len(done.items), done.url, done.group, b"[" + b",".join(done.items) + b"]")
    return (batch.items, opaque(packed_items(batch)))


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
