"""Handing out tasks, slots first: walk the sites that may be visited now, take the head of each one's own list. And
letting leases run anew."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from shoal.core.clock import Millis, Moment
from shoal.core.task import Lease
from shoal.frontier.contract.frontier import Ask, Renewal, WorkerInfo
from shoal.frontier.sqlite.records.workers import greet
from shoal.frontier.sqlite.slots.choose_exit import Constraints, DueSite
from shoal.frontier.sqlite.slots.delayed_tasks import ripen
from shoal.frontier.sqlite.slots.exit_health import ExitGate
from shoal.frontier.sqlite.slots.grants import ClaimLine, grant
from shoal.frontier.sqlite.slots.rate_limits import limits_of
from shoal.frontier.sqlite.store.transaction import Transaction

RIPEN_AT_MOST = 1000
ROUNDS = 8
"""How often one claim may come back to a line whose due visits turned out not to be due."""

OWN_LOOKS, OWN_LOOKS_LEAST = 4, 64
"""How many sites a claim by own exits looks at, for each lease that it wants, and besides."""

LOOK_ON: Millis = 100
"""After a claim by own exits that has not looked at all sites."""

NEVER: Moment = 1 << 60

_visits = msgspec.json.Decoder(list[DueSite])


@dataclass(slots=True)
class Claimed:
    """The answer to a claim, before it is sent."""

    leases: list[Lease]
    left: int
    wake_at: Moment | None


@dataclass(slots=True)
class Claim:
    """One claim while it is made. `ended`: how many tasks it met that ended without being handed out."""

    tx: Transaction
    ask: Ask
    worker: int
    gate: ExitGate
    leases: list[Lease] = field(default_factory=list)
    ended: int = 0

    @property
    def horizon(self) -> Moment:
        """By when a slot must be free."""
        return self.tx.now + self.ask.ahead

    @property
    def wanted(self) -> int:
        """How many leases are still wanted."""
        return self.ask.want - len(self.leases)


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
    left = sum(waiting + leased for *_, waiting, leased in rows)
    lines = _in_order(rows, ask)
    made = Claim(tx, ask, worker, ExitGate(tx, exits))
    for line in lines:
        if made.wanted <= 0:
            break
        if line.own:
            _draw_by_own_exits(made, line)
        else:
            _draw(made, line)
    if made.gate.heeded:
        made.gate.write()
    if 0 < ask.want == len(made.leases):
        waiting = sum(line.waiting for line in lines) - len(made.leases) - made.ended
        return Claimed(made.leases, left - made.ended, tx.now if waiting else None)
    return Claimed(made.leases, left - made.ended, _wake(made, lines))


def renew(tx: Transaction, worker: WorkerInfo, leases: Sequence[Renewal]) -> Sequence[int]:
    """Let leases run anew. Answers the tokens of those that are lost."""
    greet(tx, worker)
    rows = [[lease.task, lease.token] for lease in leases]
    tx.run("renew_leases", leases=rows, now=tx.now)
    alive = set(tx.rows("find_live_tokens", leases=rows))
    return [lease.token for lease in leases if lease.token not in alive]


def _in_order(rows: list[Any], ask: Ask) -> list[ClaimLine]:
    """Preferred lanes first; within a lane at random, so that no run waits behind another for ever."""
    preference = {lane: position for position, lane in enumerate(ask.lanes)}
    lines = [
        ClaimLine(number, scraper, lane, pool, bool(auto_ack), waiting, pool in ask.private)
        for number, scraper, lane, pool, auto_ack, held, waiting, _ in rows
        if ask.exits.get(pool) and not held and waiting
    ]
    if len(lines) > 1:
        lines.sort(key=lambda line: (preference[line.lane], secrets.randbits(16)))
    return lines


def _draw(claim: Claim, line: ClaimLine) -> None:
    """Claim from one line.

    While no exit can be used, its visits are left as they are: they are due as soon as one can be used again.
    """
    exits = list(claim.ask.exits[line.pool])
    for _ in range(ROUNDS):
        if claim.gate.all_closed(exits, claim.horizon):
            break
        visits = _due(claim, line, exits, claim.wanted)
        if not visits:
            break
        _visit(claim, line, exits, visits)
        if claim.wanted <= 0:
            break


def _draw_by_own_exits(claim: Claim, line: ClaimLine) -> None:
    """The same for exits that other workers do not have: a site where mine are not free is due for the others.

    So visits stay due. Those that were looked at stand behind the others, which are looked at by the next claim.
    """
    exits = list(claim.ask.exits[line.pool])
    if claim.gate.all_closed(exits, claim.horizon):
        return
    most = OWN_LOOKS * claim.wanted + OWN_LOOKS_LEAST
    visits = _due(claim, line, exits, most)
    if visits:
        line.look_at = claim.horizon + LOOK_ON if len(visits) == most else NEVER
        _visit(claim, line, exits, visits)


def _due(claim: Claim, line: ClaimLine, exits: list[str], most: int) -> list[DueSite]:
    return claim.tx.read("find_due_visits", _visits, line=line.id, horizon=claim.horizon, exits=exits, most=most)


def _visit(claim: Claim, line: ClaimLine, exits: list[str], visits: list[DueSite]) -> None:
    """Take what can be had at these sites."""
    tx, gate, horizon, want = claim.tx, claim.gate, claim.horizon, claim.wanted
    limited = [visit.site for visit in visits if visit.limited]
    constraints = Constraints(limits_of(tx, limited), gate) if limited or gate.heeded else None
    looked = 0
    for visit in visits:
        if constraints is not None and gate.all_closed(exits, horizon):
            break
        visit.find_openings(exits, horizon, want, constraints)
        looked += 1
        want -= len(visit.openings)
        if want <= 0:
            break
    leases, ended = grant(tx, line, claim.worker, visits[:looked], constraints)
    claim.leases += leases
    claim.ended += ended
    if constraints is not None:
        constraints.limits.write(tx)
        gate.forget_reserved()


def _wake(claim: Claim, lines: list[ClaimLine]) -> Moment | None:
    """A slot is of use `ahead` of its time; a task that waits for its own time is not."""
    tx, ask, gate = claim.tx, claim.ask, claim.gate
    closed = [line for line in lines if gate.all_closed(ask.exits[line.pool], claim.horizon)] if gate.heeded else []
    open_lines = [line.id for line in lines if not line.look_at and line not in closed]
    visit, delayed = tx.rows("find_wake", visited=open_lines, lines=[line.id for line in lines])
    times = [] if visit is None else [max(tx.now, visit - ask.ahead)]
    looked = [line.look_at for line in lines if 0 < line.look_at < NEVER and line not in closed]
    times += [max(tx.now, moment - ask.ahead) for moment in looked]
    for line in closed:
        visit, _ = tx.rows("find_wake", visited=[line.id], lines=[])
        if visit is not None:
            times.append(max(tx.now, visit - ask.ahead, gate.open_at(ask.exits[line.pool]) - ask.ahead))
    return min([*times, delayed] if delayed is not None else times, default=None)
