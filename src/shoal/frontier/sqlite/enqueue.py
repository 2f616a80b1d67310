"""Letting tasks in: deduplicated, put in line, and their sites scheduled."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.errors import UsageError
from shoal.frontier.protocol import Enqueued
from shoal.frontier.sqlite.transaction import DELAYED, READY, RunRow, Transaction, encode
from shoal.task import NO_EXTRA, LanePolicy, NewTask, Policy, RunState

_DEFAULT_LANE = LanePolicy()


def enqueue(tx: Transaction, run: RunRow, tasks: Sequence[NewTask]) -> Enqueued:
    """Accept tasks for a run that is known to exist."""
    if run.state is RunState.CANCELLED:
        raise UsageError(f"Run {run.run_id!r} was cancelled and takes no more tasks. Start a new run.")
    fresh = _unseen(tx, run, tasks)
    counts = tx.runs[run.id]
    counts["duplicates"] += len(tasks) - len(fresh)
    if not fresh:
        return Enqueued(0, len(tasks))
    lines = {lane: line_of(tx, run, lane) for lane in {task.lane for task in fresh}}
    loads: dict[str, int] = {}
    for task in fresh:
        loads[task.site] = loads.get(task.site, 0) + 1
        tx.lines[lines[task.lane]]["waiting"] += 1
    sites: list[list[object]] = [[site, load] for site, load in loads.items()]
    open_sites(tx, run.policy, sites)
    numbers = tx.number_sites(loads)
    rows = [_row(tx, run, task, lines[task.lane], numbers[task.site]) for task in fresh]
    tx.run("insert_tasks", run=run.id, tasks=rows)
    counts["waiting"] += len(fresh)
    if run.state is RunState.FINISHED:
        tx.run("reopen_run", run=run.id)
    return Enqueued(len(fresh), len(tasks) - len(fresh))


def open_sites(tx: Transaction, policy: Policy, sites: list[list[object]]) -> None:
    """Tasks of these sites come in, so many for each: the sites keep the strictest rules of all who visit them."""
    tx.run(
        "open_sites",
        sites=sites,
        delay=policy.delay,
        site_delay=policy.site_delay,
        concurrency=policy.concurrency,
        hard_timeout=policy.hard_timeout,
        lease=policy.lease,
    )


def line_of(tx: Transaction, run: RunRow, lane: str) -> int:
    """The number of the line where this run's tasks of that lane wait; opened if need be."""
    place = {"queue": run.queue, "scraper": run.scraper, "lane": lane, "pool": run.policy.pool}
    found = tx.value("find_line", **place)
    if found is None:
        auto_ack = run.policy.lanes.get(lane, _DEFAULT_LANE).auto_ack
        held = run.state is RunState.PAUSED and run.queue == run.run_id
        found = tx.value("open_line", **place, auto_ack=auto_ack, held=held)
    return int(found)


def _unseen(tx: Transaction, run: RunRow, tasks: Sequence[NewTask]) -> list[NewTask]:
    """The tasks whose key the run has not seen, each once; from now on it has."""
    keyed: dict[bytes, int] = {}
    for task in tasks:
        if task.key is not None:
            keyed.setdefault(task.key, len(keyed))
    if not keyed:
        return list(tasks)
    new = set(_remember_keys(tx, run, b"".join(keyed), len(keyed)))
    fresh: list[NewTask] = []
    for task in tasks:
        if task.key is None:
            fresh.append(task)
        elif (index := keyed[task.key]) in new:
            new.discard(index)
            fresh.append(task)
    return fresh


def _remember_keys(tx: Transaction, run: RunRow, keys: bytes, count: int) -> list[int]:
    """The places of the keys that are new to the run; from now on they are not. Most often all are: so that first."""
    everything = list(range(count))
    tx.connection.execute("SAVEPOINT keys")
    if tx.run("remember_keys", run=run.id, keys=keys, indices=everything) == count:
        fresh = everything
    else:
        tx.connection.execute("ROLLBACK TO keys")
        fresh = tx.rows("find_fresh", run=run.id, keys=keys, indices=everything)
        tx.run("remember_keys", run=run.id, keys=keys, indices=fresh)
    tx.connection.execute("RELEASE keys")
    return fresh


def _row(tx: Transaction, run: RunRow, task: NewTask, line: int, site: int) -> list[object]:
    if not task.wait:
        tx.ready[line, site] += 1
    ttls = [ttl for ttl in (task.ttl, run.policy.lanes.get(task.lane, _DEFAULT_LANE).ttl) if ttl is not None]
    return [
        line,
        site,
        DELAYED if task.wait else READY,
        task.priority,
        task.depth,
        tx.now + task.wait if task.wait else None,
        tx.now + min(ttls) if ttls else None,
        task.url,
        task.handler,
        None if task.extra is NO_EXTRA else encode(task.extra).decode(),
    ]
