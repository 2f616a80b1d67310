"""Time's effect on waiting tasks: those whose moment has come are ready, those whose time is over end."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.core.task import State
from shoal.frontier.sqlite.records.endings import end_otherwise
from shoal.frontier.sqlite.store.transaction import READY, Transaction


def ripen(tx: Transaction, most: int) -> tuple[int, bool]:
    """Ready what was delayed, end what expired; at most so many of each. Answers how many ended, and if more may."""
    ready, over = tx.rows("find_ripe", now=tx.now, most=most)
    more = most in (len(ready), len(over))
    expired_ids = {task for task, *_ in over}
    ready = [row for row in ready if row[0] not in expired_ids]
    if ready:
        make_ready(tx, ready)
    if over:
        end_otherwise(tx, dict.fromkeys(expired_ids, (State.EXPIRED, None)))
        tx.run("end_tasks", tasks=list(expired_ids))
    for _, run, line, site, state in over:
        if state == READY:
            tx.ready[line, site] -= 1
        tx.runs[run]["waiting"] -= 1
        tx.runs[run]["expired"] += 1
        tx.lines[line]["waiting"] -= 1
    return len(over), more


def make_ready(tx: Transaction, tasks: Sequence[tuple[int, int, int]]) -> None:
    """Tasks (number, line, site) that were aside wait for nothing but their site from now on."""
    tx.run("ready_tasks", tasks=[task for task, _, _ in tasks])
    for _, line, site in tasks:
        tx.ready[line, site] += 1
