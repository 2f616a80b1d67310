"""Putting things right: leases of the dead come back, what is over ends, what is old goes."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from shoal.core.clock import Millis, Moment
from shoal.core.outcome import Blame, Reason
from shoal.core.politeness import KEPT_AT_REST, transit_allowance
from shoal.core.task import State
from shoal.frontier.contract.frontier import Swept
from shoal.frontier.sqlite.records.endings import Ending, end_otherwise
from shoal.frontier.sqlite.settle import Slots, free_slots
from shoal.frontier.sqlite.slots.contested_sites import relax_sites
from shoal.frontier.sqlite.slots.delayed_tasks import ripen
from shoal.frontier.sqlite.slots.idle_slots import forget_slots
from shoal.frontier.sqlite.slots.rate_limits import forget_limits, limits_of
from shoal.frontier.sqlite.slots.slot_clocks import Slot
from shoal.frontier.sqlite.store.transaction import READY, Transaction, encode

MOST = 2000
"""How many rows of each kind one sweep touches."""

Gone = Callable[[int, int], bool]
"""Whether the process with this id and start time is gone from this machine."""

Rebooted = Callable[[str], bool]
"""Whether a machine's name tells that it was not given since this machine was started."""

InHand = Callable[[str | None], frozenset[int] | None]
"""The tasks that a worker had in hand, read from its notebook; None = cannot be known."""

Dead = dict[int, frozenset[int] | None]
"""Workers that are gone, each with what it had in hand."""


class LostLease(msgspec.Struct, array_like=True):
    """A lease that is over before it was settled."""

    task: int
    run: int
    line: int
    site: int
    auto_ack: int
    expires_at: Moment
    worker: int
    token: int
    limited: int
    cancelled: int
    limit: int
    crashes: int | None
    delay: Millis
    hard_timeout: Millis
    slot: Slot


_lost = msgspec.json.Decoder(list[LostLease])


def sweep(tx: Transaction, machine: str, gone: Gone, in_hand: InHand, rebooted: Rebooted) -> Swept:
    """One bounded sweep."""
    dead_workers: Dead = {
        worker: in_hand(notebook)
        for worker, pid, started, notebook in tx.rows("find_holders", machine=machine)
        if gone(pid, started)
    }
    # The file is on a disk of this machine: who held leases before it was started anew is gone, through no fault of
    # the tasks.
    dead_workers |= {
        worker: frozenset() for worker, holder in tx.rows("find_foreign_holders", machine=machine) if rebooted(holder)
    }
    lost = tx.read("find_lost_leases", _lost, now=tx.now, gone=list(dead_workers), most=MOST)
    returned, buried, refused = _bring_back(tx, lost, dead_workers) if lost else (0, 0, 0)
    expired, ripe = ripen(tx, MOST)
    cancelled = _end_cancelled(tx)
    deleted = tx.numbers("delete_old_items", now=tx.now, most=MOST)
    tx.run("forget_results", now=tx.now)
    tx.run("delete_old_cache", now=tx.now, most=MOST)
    notes = tx.run("delete_old_notes", now=tx.now, most=MOST)
    tx.run("forget_workers", now=tx.now)
    tx.run("end_bans", now=tx.now)
    forget_limits(tx, tx.now - KEPT_AT_REST, MOST)
    forget_slots(tx)
    tx.close_books()
    more = relax_sites(tx) or ripe or MOST in (len(lost), cancelled, len(deleted), notes)
    return Swept(returned, buried, expired, cancelled + refused, sum(deleted), more)


def _bring_back(tx: Transaction, lost: list[LostLease], dead_workers: Dead) -> tuple[int, int, int]:
    """End lost leases. Answers how many tasks wait again, became dead letters, or ended with their cancelled run.

    Where the owner is known to be dead, its last request was sent before now: the slot waits until the target has seen
    it, and one delay. Otherwise it may be alive and slow: the slot waits until anything it may have started has surely
    ended.
    """
    slots: Slots = {}
    returned: list[list[int]] = []
    buried: list[list[object]] = []
    ended: list[int] = []
    cancelled: dict[int, Ending] = {}
    for lease in lost:
        slot = slots.setdefault((lease.site, lease.slot.exit), lease.slot)
        slot.live -= 1
        slot.delay = lease.delay
        known_dead = lease.worker in dead_workers
        seen_by = tx.now + transit_allowance(lease.delay) if known_dead else lease.expires_at + lease.hard_timeout
        slot.blocked_until = max(slot.blocked_until, seen_by + lease.delay)
        tx.lines[lease.line]["leased"] -= 1
        if lease.auto_ack:
            continue
        counts = tx.runs[lease.run]
        counts["leased"] -= 1
        hand = dead_workers.get(lease.worker)
        charged = int(hand is None or lease.task in hand)
        counts["crashes"] += charged
        crashes = (lease.crashes or 0) + charged
        if lease.cancelled:
            ended.append(lease.task)
            cancelled[lease.task] = State.CANCELLED, None
            counts["cancelled"] += 1
        elif charged and crashes >= lease.limit:
            reason = Reason(Blame.WORKER, f"its worker died {crashes} times while it had this task in hand")
            buried.append([lease.task, encode(reason).decode(), 0, charged, None])
            ended.append(lease.task)
            counts["dead"] += 1
        else:
            returned.append([lease.task, charged])
            tx.ready[lease.line, lease.site] += 1
            counts["waiting"] += 1
            tx.lines[lease.line]["waiting"] += 1
    tx.run("end_leases", tasks=[lease.task for lease in lost])
    if buried:
        tx.run("bury_tasks", tasks=buried, now=tx.now)
    if cancelled:
        end_otherwise(tx, cancelled)
    if ended:
        tx.run("end_tasks", tasks=ended)
    if returned:
        tx.run("return_lost_tasks", tasks=returned)
    free_slots(tx, slots, dict.fromkeys(_lose_probes(tx, lost), tx.now))
    return len(returned), len(buried), len(ended) - len(buried)


def _lose_probes(tx: Transaction, lost: list[LostLease]) -> set[int]:
    """Where a lost lease was the one that goes first, another one goes first. Answers sites of which that is so."""
    tx.run("lose_probes", tokens=[lease.token for lease in lost])
    limits = limits_of(tx, [lease.site for lease in lost if lease.limited])
    concerned = {
        lease.site
        for lease in lost
        if lease.limited and limits.end_probe(lease.site, lease.slot.exit, lease.token, went_well=False)
    }
    limits.write(tx)
    return concerned


def _end_cancelled(tx: Transaction) -> int:
    runs = tx.rows("find_cancelled_runs")
    if not runs:
        return 0
    rows = tx.rows("find_cancelled_tasks", runs=runs, most=MOST)
    if rows:
        tasks = [task for task, *_ in rows]
        end_otherwise(tx, dict.fromkeys(tasks, (State.CANCELLED, None)))
        tx.run("end_tasks", tasks=tasks)
    for _, run, line, site, state in rows:
        if state == READY:
            tx.ready[line, site] -= 1
        tx.runs[run]["waiting"] -= 1
        tx.runs[run]["cancelled"] += 1
        tx.lines[line]["waiting"] -= 1
    return len(rows)
