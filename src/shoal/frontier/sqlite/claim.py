"""Handing out tasks, slots first: walk the sites that may be visited now, take the head of each one's own list."""

from __future__ import annotations

import secrets
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from shoal.clock import Millis, Moment
from shoal.frontier.protocol import Ask
from shoal.frontier.sqlite.clocks import Slot
from shoal.frontier.sqlite.endings import Ending, end_otherwise
from shoal.frontier.sqlite.expiry import ripen
from shoal.frontier.sqlite.limits import limits_of
from shoal.frontier.sqlite.transaction import Transaction
from shoal.frontier.sqlite.visits import Care, Visit
from shoal.frontier.sqlite.ways import Ways
from shoal.task import NO_EXTRA, Extra, Lease, RunState, State, Task

RIPEN_AT_MOST = 1000
ROUNDS = 8
"""How often one claim may come back to a line whose due visits turned out not to be due."""

OWN_LOOKS, OWN_LOOKS_LEAST = 4, 64
"""How many sites a claim by own exits looks at, for each lease that it wants, and besides."""

LOOK_ON: Millis = 100
"""After a claim by own exits that has not looked at all sites."""

NEVER: Moment = 1 << 60

STOPPED = frozenset({RunState.PAUSED, RunState.CANCELLED})

_extra = msgspec.json.Decoder(Extra)


@dataclass(slots=True)
class Line:
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


@dataclass(slots=True)
class Claimed:
    """The answer to a claim, before it is sent."""

    leases: list[Lease]
    left: int
    wake_at: Moment | None


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


_visits = msgspec.json.Decoder(list[Visit])
_heads = msgspec.json.Decoder(list[Head])


def claim(tx: Transaction, ask: Ask, worker: int) -> Claimed:
    """Grant up to `ask.want` leases from what is due now."""
    ripen(tx, RIPEN_AT_MOST)
    tx.count_lines()
    tx.schedule()
    rows, exits = tx.rows(
        "find_lines",
        scrapers=list(ask.scrapers),
        lanes=list(ask.lanes),
        queues=None if ask.queues is None else list(ask.queues),
    )
    ways = Ways(tx, exits)
    left = sum(waiting + leased for *_, waiting, leased in rows)
    lines = _in_order(rows, ask)
    leases: list[Lease] = []
    ended = 0
    for line in lines:
        if len(leases) >= ask.want:
            break
        if line.own:
            ended += _draw_by_own_exits(tx, ask, worker, line, leases, ways)
        else:
            ended += _draw(tx, ask, worker, line, leases, ways)
    if ways.heeded:
        ways.write()
    if 0 < ask.want == len(leases):
        waiting = sum(line.waiting for line in lines) - len(leases) - ended
        return Claimed(leases, left - ended, tx.now if waiting else None)
    return Claimed(leases, left - ended, _wake(tx, ask, lines, ways))


def _in_order(rows: list[Any], ask: Ask) -> list[Line]:
    """Preferred lanes first; within a lane at random, so that no run waits behind another for ever."""
    preference = {lane: position for position, lane in enumerate(ask.lanes)}
    lines = [
        Line(number, scraper, lane, pool, bool(auto_ack), waiting, pool in ask.private)
        for number, scraper, lane, pool, auto_ack, held, waiting, _ in rows
        if ask.exits.get(pool) and not held and waiting
    ]
    if len(lines) > 1:
        lines.sort(key=lambda line: (preference[line.lane], secrets.randbits(16)))
    return lines


def _draw(tx: Transaction, ask: Ask, worker: int, line: Line, leases: list[Lease], ways: Ways) -> int:
    """Claim from one line. Answers how many tasks ended on the way without being handed out.

    While no exit can be used, its visits are left as they are: they are due as soon as one can be used again.
    """
    ended = 0
    exits = list(ask.exits[line.pool])
    horizon = tx.now + ask.ahead
    for _ in range(ROUNDS):
        if ways.all_closed(exits, horizon):
            break
        want = ask.want - len(leases)
        visits = tx.read("find_due_visits", _visits, line=line.id, horizon=horizon, exits=exits, most=want)
        if not visits:
            break
        ended += _visit(tx, ask, worker, line, leases, visits, _care(tx, visits, ways))
        if len(leases) >= ask.want:
            break
    return ended


def _draw_by_own_exits(tx: Transaction, ask: Ask, worker: int, line: Line, leases: list[Lease], ways: Ways) -> int:
    """The same for exits that other workers do not have: a site where mine are not free is due for the others.

    So visits stay due. Those that were looked at stand behind the others, which are looked at by the next claim.
    """
    exits = list(ask.exits[line.pool])
    horizon = tx.now + ask.ahead
    if ways.all_closed(exits, horizon):
        return 0
    most = OWN_LOOKS * (ask.want - len(leases)) + OWN_LOOKS_LEAST
    visits = tx.read("find_due_visits", _visits, line=line.id, horizon=horizon, exits=exits, most=most)
    if not visits:
        return 0
    line.look_at = tx.now + ask.ahead + LOOK_ON if len(visits) == most else NEVER
    return _visit(tx, ask, worker, line, leases, visits, _care(tx, visits, ways))


def _care(tx: Transaction, visits: list[Visit], ways: Ways) -> Care | None:
    """What is to be heeded at these sites; None = only their clocks."""
    limited = [visit.site for visit in visits if visit.limited]
    return Care(limits_of(tx, limited), ways) if limited or ways.heeded else None


def _visit(
    tx: Transaction, ask: Ask, worker: int, line: Line, leases: list[Lease], visits: list[Visit], care: Care | None
) -> int:
    """Take what can be had at these sites. Answers as `_draw`."""
    exits = list(ask.exits[line.pool])
    horizon = tx.now + ask.ahead
    want = ask.want - len(leases)
    looked = 0
    for visit in visits:
        if care is not None and care.ways.all_closed(exits, horizon):
            break
        visit.find_openings(exits, horizon, want, care)
        looked += 1
        want -= len(visit.openings)
        if want <= 0:
            break
    ended = _take_heads(tx, line, worker, visits[:looked], leases, care)
    if care is not None:
        care.limits.write(tx)
        care.ways.forget_reserved()
    return ended


def _take_heads(
    tx: Transaction, line: Line, worker: int, visits: list[Visit], leases: list[Lease], care: Care | None
) -> int:
    """Pair the openings of each site with the heads of its list, and write down what that changes."""
    heads = _find_heads(tx, line, visits)
    runs = tx.name_runs({head.run for found in heads.values() for head in found})
    tokens = _tokens(sum(len(found) for found in heads.values()))
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
                lease = _lease(line, visit, slot, token, tx.now, head, run_id, care)
                leases.append(lease)
                taken.rows.append(
                    (head.id, token, worker, head.run, line.id, visit.site, slot.exit, lease.expires_at, line.auto_ack)
                )
                taken.slots[slot] = visit.site
                if visit.site_delay:
                    taken.paced.append(visit)
        visit.ready -= len(found)
        if visit.ready:
            due_at = visit.due_at(tx.now, care)
            if line.own:
                line.look_at = min(line.look_at, due_at)
                due_at = tx.now
            taken.later.append((line.id, visit.site, due_at, visit.ready))
        else:
            taken.left.append(visit.site)
    taken.write(tx, line)
    return len(taken.ended)


def _find_heads(tx: Transaction, line: Line, visits: list[Visit]) -> dict[int, list[Head]]:
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


def _lease(
    line: Line, visit: Visit, slot: Slot, token: int, now: Moment, head: Head, run_id: str, care: Care | None
) -> Lease:
    start_at, start_by, exclusive = visit.take(slot, token, now)
    exit_failures = 0
    if care is not None:
        care.limits.take(visit.site, slot.exit, token)
        care.ways.take(slot.exit, token)
        exit_failures = care.ways.failures(slot.exit)
    task = Task(
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
    until = now + visit.lease
    penalty = slot.penalty and slot.penalty_at(now)
    return Lease(task, token, slot.exit, now, start_at, start_by, until, visit.delay, exclusive, penalty, exit_failures)


@dataclass(slots=True)
class Taken:
    """What a claim changes in one line, gathered before anything is written."""

    rows: list[tuple[Any, ...]] = field(default_factory=list)
    slots: dict[Slot, int] = field(default_factory=dict)
    paced: list[Visit] = field(default_factory=list)
    held: list[int] = field(default_factory=list)
    ended: dict[int, Ending] = field(default_factory=dict)
    later: list[tuple[int, ...]] = field(default_factory=list)
    left: list[int] = field(default_factory=list)

    def end(self, tx: Transaction, line: Line, head: Head, how: State) -> None:
        self.ended[head.id] = how, None
        tx.runs[head.run]["waiting"] -= 1
        tx.runs[head.run][how.value] += 1
        tx.lines[line.id]["waiting"] -= 1

    def count(self, tx: Transaction, line: Line) -> None:
        tx.lines[line.id]["waiting"] -= len(self.rows)
        tx.lines[line.id]["leased"] += len(self.rows)
        for run, number in Counter([row[3] for row in self.rows]).items():
            tx.runs[run]["waiting"] -= number
            tx.runs[run]["done" if line.auto_ack else "leased"] += number

    def write(self, tx: Transaction, line: Line) -> None:
        if self.rows:
            self.count(tx, line)
            tx.write_rows("grant_leases", self.rows)
            tx.run("end_tasks" if line.auto_ack else "lease_tasks", tasks=[row[0] for row in self.rows])
            tx.write_rows("save_slots", [slot.row(site) for slot, site in self.slots.items()])
        if self.paced:
            tx.write_rows("set_site_clocks", [(v.site, v.begun_at, v.begun_before, v.last_token) for v in self.paced])
        if self.held:
            tx.run("hold_tasks", tasks=self.held)
        if self.ended:
            end_otherwise(tx, self.ended)
            tx.run("end_tasks", tasks=list(self.ended))
        if self.later:
            tx.write_rows("save_visits", self.later)
        if self.left:
            tx.run("leave_sites", line=line.id, sites=self.left)


def _wake(tx: Transaction, ask: Ask, lines: list[Line], ways: Ways) -> Moment | None:
    """A slot is of use `ahead` of its time; a task that waits for its own time is not."""
    horizon = tx.now + ask.ahead
    closed = [line for line in lines if ways.all_closed(ask.exits[line.pool], horizon)] if ways.heeded else []
    open_lines = [line.id for line in lines if not line.look_at and line not in closed]
    visit, delayed = tx.rows("find_wake", visited=open_lines, lines=[line.id for line in lines])
    times = [] if visit is None else [max(tx.now, visit - ask.ahead)]
    looked = [line.look_at for line in lines if 0 < line.look_at < NEVER and line not in closed]
    times += [max(tx.now, moment - ask.ahead) for moment in looked]
    for line in closed:
        visit, _ = tx.rows("find_wake", visited=[line.id], lines=[])
        if visit is not None:
            times.append(max(tx.now, visit - ask.ahead, ways.open_at(ask.exits[line.pool]) - ask.ahead))
    return min([*times, delayed] if delayed is not None else times, default=None)
