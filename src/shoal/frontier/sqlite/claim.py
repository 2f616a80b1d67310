"""Handing out tasks, slots first: walk the sites that may be visited now, take the head of each one's own list."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

import msgspec

from shoal.clock import Millis, Moment
from shoal.frontier.protocol import Ask
from shoal.frontier.sqlite.expiry import ripen
from shoal.frontier.sqlite.transaction import Transaction
from shoal.politeness import start_window
from shoal.task import NO_EXTRA, Extra, Lease, RunState, Task

RIPEN_AT_MOST = 1000
ROUNDS = 8
"""How often one claim may come back to a line whose due visits turned out not to be due."""

_extra = msgspec.json.Decoder(Extra)


@dataclass(slots=True)
class Line:
    """A line that the worker may draw from."""

    id: int
    scraper: str
    lane: str
    pool: str
    auto_ack: bool
    waiting: int


@dataclass(slots=True)
class Claimed:
    """The answer to a claim, before it is sent."""

    leases: list[Lease]
    left: int
    wake_at: Moment | None


class Slot(msgspec.Struct):
    """One way out of a site, as it is now."""

    exit: str
    begun_at: Moment = 0
    blocked_until: Moment = 0
    live: int = 0
    last_at: Moment = 0
    penalty: int = 0
    begun_before: Moment = 0


class Visit(msgspec.Struct):
    """A site that is due, and through which slots it can be visited how often right now."""

    site: int
    ready: int
    key: str
    delay: Millis
    site_delay: Millis
    concurrency: int
    lease: Millis
    begun_at: Moment
    slots: list[Slot]
    openings: list[Slot] = []
    last_token: int = 0
    begun_before: Moment = 0

    @property
    def next_at(self) -> Moment:
        """When the clock over all exits allows the next start."""
        return self.begun_at + self.site_delay if self.site_delay else 0

    def free_at(self, slot: Slot) -> Moment:
        """When the slot's own clock and its rate limit allow the next start."""
        return max(slot.begun_at + self.delay, slot.blocked_until)

    def find_openings(self, horizon: Moment, want: int) -> None:
        """List each possible lease by its slot, least recently used slot first; not more than there are tasks."""
        if self.next_at > horizon:
            return
        most = min(1 if self.site_delay else want, self.ready)
        rooms = [
            (slot, 1 if self.delay else self.concurrency - slot.live)
            for slot in sorted(self.slots, key=lambda slot: slot.last_at)
            if self.free_at(slot) <= horizon and slot.live < self.concurrency
        ]
        taken = 0
        while rooms and len(self.openings) < most:
            taken += 1
            self.openings.extend([slot for slot, _ in rooms])
            rooms = [(slot, room) for slot, room in rooms if room > taken]
        del self.openings[most:]

    def due_at(self, now: Moment) -> Moment:
        """When the site may next be visited, as far as can be known; a full slot is looked at when a lease ends."""
        frees = [now + self.lease if slot.live >= self.concurrency else self.free_at(slot) for slot in self.slots]
        return max(self.next_at, min(frees), now)

    def take(self, slot: Slot, now: Moment) -> tuple[Moment, Moment, bool]:
        """Count one lease on a slot and move its clocks. Answers from when until when it may start, and if alone."""
        start_at = max(now, self.next_at, self.free_at(slot))
        slot.live += 1
        slot.last_at = now
        slot.begun_before, self.begun_before = slot.begun_at, self.begun_at
        if self.concurrency == 1 and not self.site_delay:
            return start_at, start_at + self.lease // 2, True
        paces = [pace for pace in (self.delay, self.site_delay) if pace]
        window = start_window(min(paces)) if paces else 0
        slot.begun_at = self.begun_at = start_at + window
        return start_at, start_at + (window or self.lease // 2), False


def claim(tx: Transaction, ask: Ask, worker: int) -> Claimed:
    """Grant up to `ask.want` leases from what is due now."""
    ripen(tx, RIPEN_AT_MOST)
    tx.close_books()
    rows = tx.rows(
        "find_lines",
        scrapers=list(ask.scrapers),
        lanes=list(ask.lanes),
        queues=None if ask.queues is None else list(ask.queues),
    )
    left = sum(waiting + leased for *_, waiting, leased in rows)
    lines = _in_order(rows, ask)
    leases: list[Lease] = []
    ended = 0
    for line in lines:
        if len(leases) >= ask.want:
            break
        ended += _draw(tx, ask, worker, line, leases)
    if 0 < ask.want == len(leases):
        waiting = sum(line.waiting for line in lines) - len(leases) - ended
        return Claimed(leases, left - ended, tx.now if waiting else None)
    return Claimed(leases, left - ended, _wake(tx, ask, lines))


def _in_order(rows: list[Any], ask: Ask) -> list[Line]:
    """Preferred lanes first; within a lane at random, so that no run waits behind another for ever."""
    preference = {lane: position for position, lane in enumerate(ask.lanes)}
    lines = [
        Line(number, scraper, lane, pool, bool(auto_ack), waiting)
        for number, scraper, lane, pool, auto_ack, held, waiting, _ in rows
        if ask.exits.get(pool) and not held and waiting
    ]
    if len(lines) > 1:
        lines.sort(key=lambda line: (preference[line.lane], secrets.randbits(16)))
    return lines


def _draw(tx: Transaction, ask: Ask, worker: int, line: Line, leases: list[Lease]) -> int:
    """Claim from one line. Answers how many tasks ended on the way without being handed out."""
    ended = 0
    exits = list(ask.exits[line.pool])
    horizon = tx.now + ask.ahead
    for _ in range(ROUNDS):
        want = ask.want - len(leases)
        rows = tx.rows("find_due_visits", line=line.id, horizon=horizon, exits=exits, most=want)
        if not rows:
            break
        visits: list[Visit] = []
        for row in rows:
            visit = _visit(row, exits)
            visit.find_openings(horizon, want)
            visits.append(visit)
            want -= len(visit.openings)
            if want <= 0:
                break
        ended += _take_heads(tx, line, worker, visits, leases)
        if len(leases) >= ask.want:
            break
    return ended


def _visit(row: list[Any], exits: list[str]) -> Visit:
    site, ready, key, delay, site_delay, concurrency, lease, begun_at, known = row
    slots = [Slot(name, *known.get(name, ())) for name in exits]
    return Visit(site, ready, key, delay, site_delay, concurrency, lease, begun_at, slots)


def _take_heads(tx: Transaction, line: Line, worker: int, visits: list[Visit], leases: list[Lease]) -> int:
    """Pair the openings of each site with the heads of its list, and write down what that changes."""
    heads = _find_heads(tx, line, visits)
    rows: list[list[Any]] = []
    later: list[list[int]] = []
    held: list[int] = []
    ended: list[int] = []
    for visit in visits:
        tasks = heads.get(visit.site, []) if visit.openings else []
        for slot, head in zip(visit.openings, tasks, strict=False):
            task, run, run_id, state, expires_at, *rest = head
            if state == RunState.PAUSED:
                held.append(task)
            elif state == RunState.CANCELLED or (expires_at is not None and expires_at <= tx.now):
                ended.append(task)
                _count_end(tx, line, run, visit.site, "cancelled" if state == RunState.CANCELLED else "expired")
            else:
                lease = _lease(visit, slot, tx.now, _task(line, visit, task, run_id, *rest))
                leases.append(lease)
                rows.append([task, lease.token, run, visit.site, slot.exit, lease.expires_at])
                _count_claim(tx, line, run)
        later.append([line.id, visit.site, visit.due_at(tx.now), len(tasks)])
        visit.ready -= len(tasks)
    _write(tx, line, worker, rows, visits)
    if held:
        tx.run("hold_tasks", tasks=held)
    if ended:
        tx.run("end_tasks", tasks=ended)
    tx.run("put_off_visits", visits=later)
    if any(not visit.ready for visit in visits):
        tx.run("end_visits", places=later)
    return len(ended)


def _find_heads(tx: Transaction, line: Line, visits: list[Visit]) -> dict[int, list[Any]]:
    """For each site with openings, as many tasks as it has openings."""
    by_number: dict[int, list[int]] = {}
    for visit in visits:
        if visit.openings:
            by_number.setdefault(len(visit.openings), []).append(visit.site)
    heads: dict[int, list[Any]] = {}
    for number, sites in by_number.items():
        heads.update(tx.rows("find_heads", line=line.id, sites=sites, most=number))
    return heads


def _task(
    line: Line, visit: Visit, task: int, run_id: str, priority: int, depth: int, attempts: int, crashes: int, *what: Any
) -> Task:
    url, handler, extra = what
    body = NO_EXTRA if extra is None else _extra.decode(extra)
    where = (line.scraper, url, visit.key, line.lane, handler)
    return Task(task, run_id, *where, priority, depth, attempts, crashes, body)


def _lease(visit: Visit, slot: Slot, now: Moment, task: Task) -> Lease:
    start_at, start_by, exclusive = visit.take(slot, now)
    token = visit.last_token = secrets.randbits(53)
    until = now + visit.lease
    return Lease(task, token, slot.exit, now, start_at, start_by, until, visit.delay, exclusive, slot.penalty)


def _count_end(tx: Transaction, line: Line, run: int, site: int, how: str) -> None:
    tx.runs[run]["waiting"] -= 1
    tx.runs[run][how] += 1
    tx.lines[line.id]["waiting"] -= 1
    tx.loads[site] -= 1


def _count_claim(tx: Transaction, line: Line, run: int) -> None:
    counts = tx.runs[run]
    tx.lines[line.id]["waiting"] -= 1
    tx.lines[line.id]["leased"] += 1
    counts["waiting"] -= 1
    if line.auto_ack:
        counts["done"] += 1
    else:
        counts["leased"] += 1


def _write(tx: Transaction, line: Line, worker: int, rows: list[list[Any]], visits: list[Visit]) -> None:
    if not rows:
        return
    tasks = [row[0] for row in rows]
    tx.run("grant_leases", leases=rows, worker=worker, line=line.id, now=tx.now, auto_ack=line.auto_ack)
    tx.run("end_tasks" if line.auto_ack else "lease_tasks", tasks=tasks)
    clocks = {(visit.site, slot.exit): slot for visit in visits for slot in visit.openings}
    slots: dict[tuple[int, str], list[Any]] = {}
    for _, token, _, site, exit_name, _ in rows:
        slot = clocks[site, exit_name]
        taken = slots.setdefault((site, exit_name), [site, exit_name, slot.begun_at, slot.begun_before, 0, 0])
        taken[4] += 1
        taken[5] = token
    tx.run("take_slots", slots=list(slots.values()), now=tx.now)
    paced = [
        [visit.site, visit.begun_at, visit.begun_before, visit.last_token]
        for visit in visits
        if visit.last_token and visit.site_delay
    ]
    if paced:
        tx.run("take_sites", sites=paced)


def _wake(tx: Transaction, ask: Ask, lines: list[Line]) -> Moment | None:
    """A slot is of use `ahead` of its time; a task that waits for its own time is not."""
    visit, delayed = tx.rows("find_wake", lines=[line.id for line in lines])
    times = [] if visit is None else [max(tx.now, visit - ask.ahead)]
    return min([*times, delayed] if delayed is not None else times, default=None)
