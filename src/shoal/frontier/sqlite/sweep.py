"""Putting things right: leases of the dead come back, what is over ends, what is old goes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shoal.clock import Moment
from shoal.frontier.protocol import Swept
from shoal.frontier.sqlite.expiry import ripen
from shoal.frontier.sqlite.settle import SlotClock, free_slots
from shoal.frontier.sqlite.transaction import READY, Transaction, encode
from shoal.outcome import Blame, Reason

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
    lost = tx.rows("find_lost_leases", now=tx.now, gone=list(dead_workers), most=MOST)
    returned, buried, refused = _bring_back(tx, lost, dead_workers) if lost else (0, 0, 0)
    expired, ripe = ripen(tx, MOST)
    cancelled = _end_cancelled(tx)
    deleted = tx.numbers("delete_old_items", now=tx.now, most=MOST)
    tx.run("forget_results", now=tx.now)
    tx.run("delete_old_cache", now=tx.now, most=MOST)
    tx.run("forget_workers", now=tx.now)
    tx.close_books()
    more = ripe or MOST in (len(lost), cancelled, len(deleted))
    return Swept(returned, buried, expired, cancelled + refused, sum(deleted), more)


def _bring_back(tx: Transaction, lost: list[Any], dead_workers: Dead) -> tuple[int, int, int]:
    """End lost leases. Answers how many tasks wait again, became dead letters, or ended with their cancelled run.

    Where the owner is known to be dead, its last request started before now: the slot waits for one delay. Otherwise it
    may be alive and slow: the slot waits until anything it may have started has surely ended.
    """
    slots: dict[tuple[int, str], SlotClock] = {}
    returned: list[list[int]] = []
    buried: list[list[object]] = []
    ended: list[int] = []
    for task, run, line, site, exit_name, auto_ack, expires_at, worker, cancelled, limit, crashes, *clocks in lost:
        delay, hard_timeout, begun_at, begun_before, blocked_until, penalty = clocks
        clock = slots.setdefault((site, exit_name), SlotClock(begun_at, begun_before, blocked_until, penalty, delay))
        clock.freed += 1
        known_dead = worker in dead_workers
        free_at: Moment = tx.now + delay if known_dead else expires_at + hard_timeout + delay
        clock.blocked_until = max(clock.blocked_until, free_at)
        tx.lines[line]["leased"] -= 1
        if auto_ack:
            tx.loads[site] -= 1
            continue
        counts = tx.runs[run]
        counts["leased"] -= 1
        hand = dead_workers.get(worker)
        charged = int(hand is None or task in hand)
        counts["crashes"] += charged
        if cancelled:
            ended.append(task)
            counts["cancelled"] += 1
        elif charged and crashes + 1 >= limit:
            reason = Reason(Blame.WORKER, f"its worker died {crashes + 1} times while it had this task in hand")
            buried.append([task, encode(reason).decode(), 0, charged])
            ended.append(task)
            counts["dead"] += 1
        else:
            returned.append([task, charged])
            tx.ready[line, site] += 1
            counts["waiting"] += 1
            tx.lines[line]["waiting"] += 1
            continue
        tx.loads[site] -= 1
    tx.run("end_leases", tasks=[row[0] for row in lost])
    if buried:
        tx.run("bury_tasks", tasks=buried, now=tx.now)
    if ended:
        tx.run("end_tasks", tasks=ended)
    if returned:
        tx.run("return_lost_tasks", tasks=returned)
    free_slots(tx, slots, {})
    return len(returned), len(buried), len(ended) - len(buried)


def _end_cancelled(tx: Transaction) -> int:
    runs = tx.rows("find_cancelled_runs")
    if not runs:
        return 0
    rows = tx.rows("find_cancelled_tasks", runs=runs, most=MOST)
    if rows:
        tx.run("end_tasks", tasks=[task for task, *_ in rows])
    for _, run, line, site, state in rows:
        if state == READY:
            tx.ready[line, site] -= 1
        tx.runs[run]["waiting"] -= 1
        tx.runs[run]["cancelled"] += 1
        tx.lines[line]["waiting"] -= 1
        tx.loads[site] -= 1
    return len(rows)
