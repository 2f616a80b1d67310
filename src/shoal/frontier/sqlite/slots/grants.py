"""Granting leases: the openings of due sites, each paired with a task at the head of the site's list."""

from __future__ import annotations

import secrets
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from shoal.core.clock import Moment
from shoal.core.task import NO_EXTRA, Extra, Lease, RunState, State, Task
from shoal.frontier.sqlite.records.endings import Ending, end_otherwise
from shoal.frontier.sqlite.slots.choose_exit import Constraints, DueSite
from shoal.frontier.sqlite.slots.slot_clocks import Slot, save_site_clocks, save_slots
from shoal.frontier.sqlite.store.transaction import Transaction

STOPPED = frozenset({RunState.PAUSED, RunState.CANCELLED})

_extra = msgspec.json.Decoder(Extra)


@dataclass(slots=True)
class ClaimLine:
    """A line that the worker may draw from. `own`: by exits that other workers do not have.

    `look_at`: if it was looked at by own exits, when it is worth another look; 0 = was not.
    """

    id: int
    scraper: str
    lane: str
    pool: str
    auto_ack: bool
    waiting: int
    own: bool = False
    look_at: Moment = 0


class Head(msgspec.Struct, array_like=True, gc=False):
    """A task at the head of a site's list."""

    site: int
    id: int
    run: int
    expires_at: Moment | None
    priority: int
    depth: int
    attempts: int
    crashes: int
    url: str
    handler: str | None
    extra: str | None


_heads = msgspec.json.Decoder(list[Head])


def grant(
    tx: Transaction, line: ClaimLine, worker: int, visits: list[DueSite], constraints: Constraints | None
) -> tuple[list[Lease], int]:
    """Pair the openings of each site with the heads of its list, and write down what that changes.

    Answers the leases, and how many tasks ended on the way without being handed out.
    """
    heads = _find_heads(tx, line, visits)
    runs = tx.name_runs({head.run for found in heads.values() for head in found})
    tokens = _tokens(sum(len(found) for found in heads.values()))
    leases: list[Lease] = []
    taken = Taken()
    for visit in visits:
        found = heads.get(visit.site, ())
        for slot, head, token in zip(visit.openings, found, tokens, strict=False):
            run_id, state = runs[head.run]
            if state in STOPPED:
                if state == RunState.PAUSED:
                    taken.held.append(head.id)
                else:
                    taken.end(tx, line, head, State.CANCELLED)
            elif head.expires_at is not None and head.expires_at <= tx.now:
                taken.end(tx, line, head, State.EXPIRED)
            else:
                task = _task(line, visit, head, run_id)
                lease = _lease(task, visit, slot, token, tx.now, constraints)
                leases.append(lease)
                taken.rows.append(
                    (head.id, token, worker, head.run, line.id, visit.site, slot.exit, lease.expires_at, line.auto_ack)
                )
                taken.slots[slot] = visit.site
                if visit.site_delay:
                    taken.paced.append(visit)
        visit.ready -= len(found)
        if visit.ready:
            due_at = visit.due_at(tx.now, constraints)
            if line.own:
                line.look_at = min(line.look_at, due_at)
                due_at = tx.now
            taken.later.append((line.id, visit.site, due_at, visit.ready))
        else:
            taken.left.append(visit.site)
    taken.write(tx, line)
    return leases, len(taken.ended)


def _find_heads(tx: Transaction, line: ClaimLine, visits: list[DueSite]) -> dict[int, list[Head]]:
    """For each site with openings, as many tasks as it has openings."""
    by_number: dict[int, list[int]] = {}
    for visit in visits:
        if visit.openings:
            by_number.setdefault(len(visit.openings), []).append(visit.site)
    heads: dict[int, list[Head]] = {}
    for number, sites in by_number.items():
        for head in tx.read("find_heads", _heads, line=line.id, sites=sites, most=number):
            heads.setdefault(head.site, []).append(head)
        if number > 1:
            for found in heads.values():
                found.sort(key=lambda head: (-head.priority, head.id))
    return heads


def _tokens(count: int) -> Iterator[int]:
    """Random numbers of 53 bits, none of them 0: what any program can hold, and nobody can guess."""
    chances: tuple[int, ...] = struct.unpack(f"{count}Q", secrets.token_bytes(8 * count))
    return iter([chance >> 11 or 1 for chance in chances])


def _task(line: ClaimLine, visit: DueSite, head: Head, run_id: str) -> Task:
    return Task(
        head.id,
        run_id,
        line.scraper,
        head.url,
        visit.key,
        line.lane,
        head.handler,
        head.priority,
        head.depth,
        head.attempts,
        head.crashes,
        NO_EXTRA if head.extra is None else _extra.decode(head.extra),
    )


def _lease(task: Task, visit: DueSite, slot: Slot, token: int, now: Moment, constraints: Constraints | None) -> Lease:
    start_at, start_by, exclusive = visit.take(slot, token, now)
    exit_failures = 0
    if constraints is not None:
        constraints.limits.take(visit.site, slot.exit, token)
        constraints.gate.take(slot.exit, token)
        exit_failures = constraints.gate.failures(slot.exit)
    until = now + visit.lease
    penalty = slot.penalty and slot.penalty_at(now)
    return Lease(task, token, slot.exit, now, start_at, start_by, until, visit.delay, exclusive, penalty, exit_failures)


@dataclass(slots=True)
class Taken:
    """What a claim changes in one line, gathered before anything is written."""

    rows: list[tuple[Any, ...]] = field(default_factory=list)
    slots: dict[Slot, int] = field(default_factory=dict)
    paced: list[DueSite] = field(default_factory=list)
    held: list[int] = field(default_factory=list)
    ended: dict[int, Ending] = field(default_factory=dict)
    later: list[tuple[int, ...]] = field(default_factory=list)
    left: list[int] = field(default_factory=list)

    def end(self, tx: Transaction, line: ClaimLine, head: Head, how: State) -> None:
        self.ended[head.id] = how, None
        tx.runs[head.run]["waiting"] -= 1
        tx.runs[head.run][how.value] += 1
        tx.lines[line.id]["waiting"] -= 1

    def count(self, tx: Transaction, line: ClaimLine) -> None:
        tx.lines[line.id]["waiting"] -= len(self.rows)
        tx.lines[line.id]["leased"] += len(self.rows)
        for run, number in Counter([row[3] for row in self.rows]).items():
            tx.runs[run]["waiting"] -= number
            tx.runs[run]["done" if line.auto_ack else "leased"] += number

    def write(self, tx: Transaction, line: ClaimLine) -> None:
        if self.rows:
            self.count(tx, line)
            tx.write_rows("grant_leases", self.rows)
            tx.run("end_tasks" if line.auto_ack else "lease_tasks", tasks=[row[0] for row in self.rows])
            save_slots(tx, ((site, slot) for slot, site in self.slots.items()))
        if self.paced:
            save_site_clocks(tx, [(it.site, it.begun_at, it.begun_before, it.last_token) for it in self.paced])
        if self.held:
            tx.run("hold_tasks", tasks=self.held)
        if self.ended:
            end_otherwise(tx, self.ended)
            tx.run("end_tasks", tasks=list(self.ended))
        if self.later:
            tx.write_rows("save_visits", self.later)
        if self.left:
            tx.run("leave_sites", line=line.id, sites=self.left)
