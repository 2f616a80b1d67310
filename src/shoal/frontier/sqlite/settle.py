"""Ending leases: results, links, counters and clocks in the one transaction that the caller holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import assert_never

import msgspec

from shoal.clock import Millis, Moment
from shoal.frontier.sqlite.enqueue import enqueue
from shoal.frontier.sqlite.transaction import Transaction, encode
from shoal.outcome import Dead, Done, Dropped, Retried, Settlement, Snoozed
from shoal.task import NewTask, RunState


class Rest(msgspec.Struct):
    """Since when a slot, or a site over all its exits, is at rest, as this batch of settlements leaves it.

    `begun_at` is by when the last request has surely begun; `begun_before`, what it was before the last lease.
    """

    begun_at: Moment
    begun_before: Moment

    def end(self, started: Moment | None, *, last: bool) -> None:
        """Count one lease that ended. `last`: none was granted after it.

        The last one knows when the last request began, or that the clock stands where it stood before. For any other,
        the clock was already set by those granted later, to the latest moment at which they may begin.
        """
        if last:
            self.begun_at = max(self.begun_before, started or 0)
        else:
            self.begun_at = max(self.begun_at, started or 0)
            self.begun_before = max(self.begun_before, started or 0)


class SlotClock(Rest):
    """A slot: its rest, its rate limit, its delay, and how many leases it is rid of."""

    blocked_until: Moment
    penalty: int
    delay: Millis
    freed: int = 0

    @property
    def free_at(self) -> Moment:
        return max(self.begun_at + self.delay, self.blocked_until)


class SiteClock(Rest):
    """A site over all its exits. `look_at`: as early as that, it may be worth a visit."""

    crawl_delay: Millis
    look_at: Moment


@dataclass(slots=True)
class Settled:
    """What a batch of settlements comes to, gathered before anything is written."""

    leases: list[int] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)
    delayed: list[list[int]] = field(default_factory=list)
    returned: list[list[object]] = field(default_factory=list)
    buried: list[list[object]] = field(default_factory=list)
    items: list[list[object]] = field(default_factory=list)
    bodies: bytearray = field(default_factory=bytearray)
    tasks: dict[str, list[NewTask]] = field(default_factory=dict)
    slots: dict[tuple[int, str], SlotClock] = field(default_factory=dict)
    sites: dict[int, SiteClock] = field(default_factory=dict)


def settle(tx: Transaction, settlements: Sequence[Settlement]) -> list[int]:
    """Give effect to each settlement whose lease still stands. Answers the tokens of those that came too late."""
    if not settlements:
        return []
    standing = tx.rows("find_leases", leases=[[s.task, s.token, s.run_id] for s in settlements])
    settled = Settled()
    on_time: set[int] = set()
    ended: set[int] = set()
    for index, run, line, site, exit_name, auto_ack, cancelled, clocks in standing:
        settlement = settlements[index]
        if settlement.task in ended:
            continue
        on_time.add(index)
        ended.add(settlement.task)
        settled.leases.append(settlement.task)
        counts = tx.runs[run]
        counts["requests"] += settlement.requests
        counts["received"] += settlement.received
        counts["refused"] += settlement.refused
        counts["duplicates"] += settlement.duplicates
        _free(settled, tx.now, settlement, (site, exit_name), clocks)
        if auto_ack:
            tx.lines[line]["leased"] -= 1
            tx.loads[site] -= 1
            if not cancelled and isinstance(settlement.outcome, Done):
                _keep(tx, settled, settlement, settlement.outcome, run)
            continue
        counts["leased"] -= 1
        tx.lines[line]["leased"] -= 1
        if cancelled:
            settled.ended.append(settlement.task)
            tx.loads[site] -= 1
            counts["cancelled"] += 1
        else:
            _apply(tx, settled, settlement, run, line, site)
    _write(tx, settled)
    return _refuse(tx, [s for index, s in enumerate(settlements) if index not in on_time])


def _apply(tx: Transaction, settled: Settled, settlement: Settlement, run: int, line: int, site: int) -> None:
    counts = tx.runs[run]
    task = settlement.task
    match settlement.outcome:
        case Done() as done:
            settled.ended.append(task)
            tx.loads[site] -= 1
            counts["done"] += 1
            _keep(tx, settled, settlement, done, run)
        case Retried(wait=wait):
            settled.delayed.append([task, wait])
            tx.lines[line]["waiting"] += 1
            counts["waiting"] += 1
            counts["retries"] += 1
        case Snoozed(wait=wait, url=url, extra=extra):
            settled.returned.append([task, url, None if extra is None else encode(extra).decode()])
            tx.ready[line, site] += 1
            tx.lines[line]["waiting"] += 1
            counts["waiting"] += 1
            counts["snoozes"] += 1 if wait else 0
        case Dead(reason=reason):
            settled.buried.append([task, encode(reason).decode(), 1, 0])
            settled.ended.append(task)
            tx.loads[site] -= 1
            counts["dead"] += 1
        case Dropped():
            settled.ended.append(task)
            tx.loads[site] -= 1
            counts["dropped"] += 1
        case other:
            assert_never(other)


def _keep(tx: Transaction, settled: Settled, settlement: Settlement, done: Done, run: int) -> None:
    if done.items:
        body = b"[" + b",".join(done.items) + b"]"
        settled.items.append([run, len(done.items), done.url, done.group, len(settled.bodies), len(body)])
        settled.bodies += body
        tx.runs[run]["items"] += len(done.items)
    if done.tasks:
        settled.tasks.setdefault(settlement.run_id, []).extend(done.tasks)


def _free(settled: Settled, now: Moment, settlement: Settlement, slot: tuple[int, str], clocks: list[int]) -> None:
    """Move the clocks of the slot, and of the site over all its exits where that has one."""
    delay, site_delay, crawl_delay, site_last, site_begun, site_before, *of_slot = clocks
    slot_last, slot_begun, slot_before, blocked_until, penalty = of_slot
    started = settlement.started_at
    asked = crawl_delay if settlement.crawl_delay is None else settlement.crawl_delay
    clock = settled.slots.setdefault(slot, SlotClock(slot_begun, slot_before, blocked_until, penalty, delay))
    clock.freed += 1
    clock.delay = max(delay, asked)
    clock.end(started, last=settlement.token == slot_last)
    outcome = settlement.outcome
    if isinstance(outcome, Snoozed) and outcome.wait:
        clock.blocked_until = max(clock.blocked_until, now + outcome.wait)
        clock.penalty = outcome.penalty
    elif started and clock.penalty and not isinstance(outcome, Snoozed):
        clock.penalty -= 1
    if not site_delay and asked == crawl_delay:
        return
    site = settled.sites.setdefault(slot[0], SiteClock(site_begun, site_before, crawl_delay, clock.free_at))
    if site_delay:
        site.end(started, last=settlement.token == site_last)
        site.look_at = min(site.look_at, site.begun_at + site_delay)
    if asked != crawl_delay:
        site.crawl_delay, site.look_at = asked, now


def _write(tx: Transaction, settled: Settled) -> None:
    if not settled.leases:
        return
    tx.run("end_leases", tasks=settled.leases)
    if settled.buried:
        tx.run("bury_tasks", tasks=settled.buried, now=tx.now)
    if settled.ended:
        tx.run("end_tasks", tasks=settled.ended)
    if settled.delayed:
        tx.run("delay_tasks", tasks=settled.delayed, now=tx.now)
    if settled.returned:
        tx.run("return_tasks", tasks=settled.returned)
    if settled.items:
        tx.run("store_items", rows=settled.items, bodies=bytes(settled.bodies))
    free_slots(tx, settled.slots, {site: clock.look_at for site, clock in settled.sites.items()})
    if settled.sites:
        tx.run(
            "set_site_clocks",
            sites=[[site, c.begun_at, c.begun_before, c.crawl_delay] for site, c in settled.sites.items()],
        )
    for run_id, tasks in settled.tasks.items():
        run = tx.find_run(run_id)
        if run.state is not RunState.CANCELLED:
            enqueue(tx, run, tasks)


def free_slots(tx: Transaction, slots: dict[tuple[int, str], SlotClock], look_at: dict[int, Moment]) -> None:
    """Write slots back, and let those who wait for their sites come as early as they may, but not before others."""
    rows = [[*slot, c.freed, c.begun_at, c.begun_before, c.blocked_until, c.penalty] for slot, c in slots.items()]
    tx.run("free_slots", slots=rows)
    earliest = dict(look_at)
    for (site, _), clock in slots.items():
        earliest[site] = min(clock.free_at, earliest.get(site, clock.free_at))
    tx.run("move_visits", sites=[[site, max(due, tx.now)] for site, due in earliest.items()])


def _refuse(tx: Transaction, settlements: list[Settlement]) -> list[int]:
    for settlement in settlements:
        number = tx.value("find_run_number", run_id=settlement.run_id)
        if number is not None:
            tx.runs[number]["late"] += 1
    return [settlement.token for settlement in settlements]
