"""Ending leases: results, links, counters and clocks in the one transaction that the caller holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import assert_never

import msgspec

from shoal.core.clock import Millis, Moment
from shoal.core.notes import Entry, Note
from shoal.core.outcome import Dead, Done, Dropped, Retried, Settlement, Snoozed
from shoal.core.task import NewTask, RunState, State
from shoal.frontier.sqlite.cache import keep_entries
from shoal.frontier.sqlite.enqueue import enqueue
from shoal.frontier.sqlite.records.endings import Ending, end_otherwise
from shoal.frontier.sqlite.records.notes import keep_notes
from shoal.frontier.sqlite.slots.exit_health import learn
from shoal.frontier.sqlite.slots.rate_limits import RateLimits
from shoal.frontier.sqlite.slots.slot_clocks import RequestClock, Slot, save_site_clocks, save_slots
from shoal.frontier.sqlite.store.transaction import Transaction, encode


class LiveLease(msgspec.Struct, array_like=True, gc=False):
    """A lease that lives, with the clocks that its end will move. `clock`: where there is a `site_delay`.

    `limited`: whether anything is known about rate limits of its site.
    """

    task: int
    token: int
    run: int
    line: int
    site: int
    auto_ack: int
    delay: Millis
    site_delay: Millis
    crawl_delay: Millis
    pace: Millis
    limited: int
    slot: Slot
    clock: RequestClock | None


@dataclass(slots=True)
class SiteEnd:
    """A site over all its exits, as settlements leave it. `look_at`: as early as that, it may be worth a visit.

    `clock`: None = it has none.
    """

    clock: RequestClock | None
    look_at: Moment


Slots = dict[tuple[int, str], Slot]
"""By site and exit."""


@dataclass(slots=True)
class Settled:
    """What a batch of settlements comes to, gathered before anything is written.

    `otherwise`: those of `ended` that are neither done nor dead.
    `paces`: by site, the crawl delay and the pace that the last settlement about it leaves.
    """

    leases: list[int] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)
    otherwise: dict[int, Ending] = field(default_factory=dict)
    delayed: list[list[object]] = field(default_factory=list)
    returned: list[list[object]] = field(default_factory=list)
    buried: list[list[object]] = field(default_factory=list)
    items: list[tuple[object, ...]] = field(default_factory=list)
    tasks: dict[str, list[NewTask]] = field(default_factory=dict)
    slots: Slots = field(default_factory=dict)
    sites: dict[int, SiteEnd] = field(default_factory=dict)
    paces: dict[int, tuple[Millis, Millis]] = field(default_factory=dict)
    about_exits: list[Settlement] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)


class LeasesFound(msgspec.Struct, array_like=True, gc=False):
    """What is asked for before leases end. `probes`: the tokens of leases by which an exit is tried again."""

    leases: list[LiveLease]
    probes: list[int]


_found = msgspec.json.Decoder(LeasesFound)


def settle(tx: Transaction, settlements: Sequence[Settlement]) -> list[int]:
    """Give effect to each settlement whose lease still stands. Answers the tokens of those that came too late."""
    if not settlements:
        return []
    found = tx.read("find_leases", _found, tasks=[settlement.task for settlement in settlements])
    standing = {lease.task: lease for lease in found.leases}
    runs = tx.name_runs({lease.run for lease in found.leases})
    limits = _limits(tx, settlements, standing)
    cancelled = {run for run, (_, state) in runs.items() if state == RunState.CANCELLED}
    settled = Settled()
    late: list[Settlement] = []
    for settlement in settlements:
        lease = standing.get(settlement.task)
        if lease is None or lease.token != settlement.token or runs[lease.run][0] != settlement.run_id:
            late.append(settlement)
            continue
        del standing[settlement.task]
        _free(settled, tx.now, settlement, lease, limits)
        _end(tx, settled, settlement, lease, cancelled=lease.run in cancelled)
        if settlement.exits_failed or settlement.exits_ok or settlement.token in found.probes:
            settled.about_exits.append(settlement)
    _write(tx, settled)
    if limits is not None:
        limits.write(tx)
    if settled.about_exits:
        learn(tx, settled.about_exits, [it.token for it in settled.about_exits if it.token in found.probes])
    return _refuse(tx, late)


def _limits(tx: Transaction, settlements: Sequence[Settlement], standing: dict[int, LiveLease]) -> RateLimits | None:
    """What is known about rate limits of the sites where these leases bear on them; None = nowhere."""
    sites = {lease.site for lease in standing.values() if lease.limited}
    for settlement in settlements:
        if isinstance(settlement.outcome, Snoozed) and settlement.outcome.wait and settlement.task in standing:
            sites.add(standing[settlement.task].site)
    return RateLimits.find(tx, sites) if sites else None


def _end(tx: Transaction, settled: Settled, settlement: Settlement, lease: LiveLease, *, cancelled: bool) -> None:
    settled.leases.append(settlement.task)
    counts = tx.runs[lease.run]
    counts["requests"] += settlement.requests
    counts["received"] += settlement.received
    if settlement.refused:
        counts["refused"] += settlement.refused
    if settlement.duplicates:
        counts["duplicates"] += settlement.duplicates
    if settlement.saved_requests or settlement.saved_bytes:
        counts["saved_requests"] += settlement.saved_requests
        counts["saved_bytes"] += settlement.saved_bytes
    if settlement.entries or settlement.notes:
        settled.entries += [entry for entry in settlement.entries if not (cancelled and entry.ttl)]
        settled.notes += () if cancelled else settlement.notes
    tx.lines[lease.line]["leased"] -= 1
    if lease.auto_ack:
        if not cancelled and isinstance(settlement.outcome, Done):
            _keep(tx, settled, settlement, settlement.outcome, lease.run)
        return
    counts["leased"] -= 1
    if cancelled:
        settled.ended.append(settlement.task)
        settled.otherwise[settlement.task] = State.CANCELLED, None
        counts["cancelled"] += 1
    else:
        _apply(tx, settled, settlement, lease)


def _apply(tx: Transaction, settled: Settled, settlement: Settlement, lease: LiveLease) -> None:
    counts = tx.runs[lease.run]
    task = settlement.task
    match settlement.outcome:
        case Done() as done:
            settled.ended.append(task)
            counts["done"] += 1
            if done.items or done.tasks:
                _keep(tx, settled, settlement, done, lease.run)
        case Retried(wait=wait):
            settled.delayed.append([task, wait, 1, None])
            tx.lines[lease.line]["waiting"] += 1
            counts["waiting"] += 1
            counts["retries"] += 1
        case Snoozed(wait=wait, extra=extra, aside=aside):
            changed = None if extra is None else encode(extra).decode()
            if aside:
                settled.delayed.append([task, aside, 0, changed])
            else:
                settled.returned.append([task, changed])
                tx.ready[lease.line, lease.site] += 1
            tx.lines[lease.line]["waiting"] += 1
            counts["waiting"] += 1
            counts["snoozes"] += 1 if wait else 0
        case Dead(reason=reason, extra=extra, attempts=attempts):
            changed = None if extra is None else encode(extra).decode()
            settled.buried.append([task, encode(reason).decode(), attempts, 0, changed])
            settled.ended.append(task)
            counts["dead"] += 1
        case Dropped(reason=reason):
            settled.ended.append(task)
            settled.otherwise[task] = State.DROPPED, encode(reason).decode()
            counts["dropped"] += 1
        case other:
            assert_never(other)


def _keep(tx: Transaction, settled: Settled, settlement: Settlement, done: Done, run: int) -> None:
    if done.items:
        body = b"[" + b",".join(done.items) + b"]"
        settled.items.append((run, len(done.items), done.url, done.group, body))
        tx.runs[run]["items"] += len(done.items)
    if done.tasks:
        settled.tasks.setdefault(settlement.run_id, []).extend(done.tasks)


def _free(settled: Settled, now: Moment, settlement: Settlement, lease: LiveLease, limits: RateLimits | None) -> None:
    """Move the clocks of the slot, and of the site over all its exits where that has one."""
    started = settlement.started_at
    before_asked, before_pace = settled.paces.get(lease.site) or (lease.crawl_delay, lease.pace)
    asked = before_asked if settlement.crawl_delay is None else settlement.crawl_delay
    pace = before_pace if settlement.pace is None else settlement.pace
    slot = settled.slots.setdefault((lease.site, lease.slot.exit), lease.slot)
    slot.live -= 1
    slot.last_at = now
    slot.delay = max(asked, lease.delay, pace)
    slot.end(settlement.token, started)
    outcome = settlement.outcome
    if isinstance(outcome, Snoozed) and outcome.wait:
        slot.blocked_until = max(slot.blocked_until, now + outcome.wait)
        slot.penalty = outcome.penalty
    for_all = limits is not None and limits.settle(lease.site, slot.exit, settlement, now)
    unchanged = asked == before_asked and pace == before_pace
    if lease.clock is None and unchanged and not for_all:
        return
    site = settled.sites.setdefault(lease.site, SiteEnd(lease.clock, slot.free_at()))
    if site.clock is not None:
        site.clock.end(settlement.token, started)
        site.look_at = min(site.look_at, site.clock.begun_at + lease.site_delay)
    if not unchanged:
        settled.paces[lease.site] = asked, pace
    if not unchanged or for_all:
        site.look_at = now


def _write(tx: Transaction, settled: Settled) -> None:
    if not settled.leases:
        return
    tx.run("end_leases", tasks=settled.leases)
    if settled.buried:
        tx.run("bury_tasks", tasks=settled.buried, now=tx.now)
    if settled.otherwise:
        end_otherwise(tx, settled.otherwise)
    if settled.ended:
        tx.run("end_tasks", tasks=settled.ended)
    if settled.delayed:
        tx.run("delay_tasks", tasks=settled.delayed, now=tx.now)
    if settled.returned:
        tx.run("return_tasks", tasks=settled.returned)
    if settled.items:
        store_items(tx, settled.items)
    if settled.entries or settled.notes:
        keep_entries(tx, settled.entries)
        keep_notes(tx, settled.notes)
    free_slots(tx, settled.slots, {site: end.look_at for site, end in settled.sites.items()})
    if settled.sites:
        clocks = [(site, end.clock) for site, end in settled.sites.items() if end.clock is not None]
        save_site_clocks(tx, [(site, it.begun_at, it.begun_before, it.last_token) for site, it in clocks])
        tx.write_rows("set_paces", [(site, *pace) for site, pace in settled.paces.items()])
    for run_id, tasks in settled.tasks.items():
        run = tx.find_run(run_id)
        if run.state is not RunState.CANCELLED:
            enqueue(tx, run, tasks)


def store_items(tx: Transaction, batches: Sequence[tuple[object, ...]]) -> None:
    """Keep batches of items: run, how many, url, group, JSON array."""
    tx.write_rows("store_items", batches)


def free_slots(tx: Transaction, slots: Slots, look_at: dict[int, Moment]) -> None:
    """Write slots back, and let those who wait for their sites come as early as they may, but not before others."""
    save_slots(tx, ((site, slot) for (site, _), slot in slots.items()))
    earliest = dict(look_at)
    for (site, _), slot in slots.items():
        free_at = slot.free_at()
        if free_at < earliest.setdefault(site, free_at):
            earliest[site] = free_at
    tx.freed.update(earliest)
    come_as_early(tx, {site: max(due, tx.now) for site, due in earliest.items()})


def come_as_early(tx: Transaction, moments: dict[int, Moment]) -> None:
    """Those who wait for these sites may come as early as that."""
    tx.write_rows("move_visits", list(moments.items()))


def _refuse(tx: Transaction, settlements: list[Settlement]) -> list[int]:
    for settlement in settlements:
        number = tx.value("find_run_number", run_id=settlement.run_id)
        if number is not None:
            tx.runs[number]["late"] += 1
    return [settlement.token for settlement in settlements]
