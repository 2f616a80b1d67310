"""Letting tasks in: deduplicated, put in line, and their sites scheduled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

import msgspec

from shoal.core.task import NO_EXTRA, LanePolicy, NewTask, Policy, RunState, lane_and_pool
from shoal.errors import UsageError
from shoal.frontier.contract.frontier import Enqueued
from shoal.frontier.shared.seen import seen_key
from shoal.frontier.sqlite.records.endings import begin_again
from shoal.frontier.sqlite.store.transaction import DELAYED, READY, RunRow, Transaction, encode
from shoal.frontier.sqlite.store.writer_cache import SitePolicy

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
    pooled_lanes = [task.lane if task.pool is None else task.pooled_lane for task in fresh]
    lines = {pooled_lane: line_of(tx, run, pooled_lane) for pooled_lane in set(pooled_lanes)}
    numbers = open_sites(tx, run.policy, dict.fromkeys(task.site for task in fresh))
    _insert(tx, run, list(zip(fresh, pooled_lanes, strict=True)), lines, numbers)
    counts["waiting"] += len(fresh)
    if run.state is RunState.FINISHED:
        tx.run("reopen_run", run=run.id)
    return Enqueued(len(fresh), len(tasks) - len(fresh))


def open_sites(tx: Transaction, policy: Policy, keys: Collection[str]) -> dict[str, int]:
    """The numbers of these sites, for which tasks come in.

    A site keeps the strictest rules of all who visit it; one that bears nothing takes those of the run that comes.
    Where rules differ, sweeps look whether all of them are still needed (`slots/contested_sites.py`).
    """
    rules = SitePolicy.of(policy)
    sites = tx.cache.sites
    unsure = [key for key in keys if (site := sites.get(key)) is None or site[1] != rules]
    if unsure:
        tx.schedule()  # what was enqueued a moment ago is borne already
        opened: list[tuple[object, ...]] = []
        contested: list[int] = []
        for key, number, bears, *found in tx.rows("find_sites", sites=unsure):
            old = SitePolicy(*found)
            is_busy = bears or number in tx.freed
            new = rules.strictest(old) if is_busy else rules
            sites[key] = number, new
            if is_busy and old != rules:
                contested.append(number)
            if new != old:
                opened.append((key, *msgspec.structs.astuple(new)))
        new_keys = [key for key in unsure if key not in sites]
        opened += [(key, *msgspec.structs.astuple(rules)) for key in new_keys]
        if opened:
            tx.write_rows("open_sites", opened)
        if contested:
            tx.run("contest_sites", sites=contested)
        if new_keys:
            sites.update((key, (number, rules)) for key, number in tx.rows("number_sites", sites=new_keys))
    return {key: sites[key][0] for key in keys}


def know_sites(tx: Transaction, policy: Policy, keys: Collection[str]) -> dict[str, int]:
    """The numbers of these sites, for which no tasks come in: those that are new begin with the rules of the policy."""
    ordered, rules = sorted(keys), msgspec.structs.astuple(SitePolicy.of(policy))
    tx.write_rows("know_sites", [(key, *rules) for key in ordered])
    return dict(tx.rows("number_sites", sites=ordered))


def line_of(tx: Transaction, run: RunRow, pooled_lane: str) -> int:
    """The number of the line where this run's tasks of that lane and pool wait; opened if need be."""
    lane, pool = lane_and_pool(pooled_lane)
    place = {"queue": run.queue, "scraper": run.scraper, "lane": lane, "pool": pool or run.policy.pool}
    found = tx.value("find_line", **place)
    if found is None:
        auto_ack = run.policy.lanes.get(lane, _DEFAULT_LANE).auto_ack
        held = run.state is RunState.PAUSED and run.queue == run.run_id
        found = tx.value("open_line", **place, auto_ack=auto_ack, held=held)
    return int(found)


def _unseen(tx: Transaction, run: RunRow, tasks: Sequence[NewTask]) -> Sequence[NewTask]:
    """The tasks whose key the run has not seen, each once; from now on it has."""
    keys = [None if task.key is None else seen_key(task.key) for task in tasks]
    keyed = {key for key in keys if key is not None}
    if None in keys:
        begin_again(tx, run.id, [task for task in tasks if task.key is None])
    if not keyed:
        return tasks
    new = tx.cache.seen.accept(tx, run.id, keyed)
    if len(new) == len(tasks):
        return tasks
    fresh: list[NewTask] = []
    for task, key in zip(tasks, keys, strict=True):
        if key is None:
            fresh.append(task)
        elif key in new:
            new.discard(key)
            fresh.append(task)
    return fresh


def _insert(
    tx: Transaction,
    run: RunRow,
    tasks: Sequence[tuple[NewTask, str]],
    lines: dict[str, int],
    sites: dict[str, int],
) -> None:
    for pooled_lane, number in Counter([pooled_lane for _, pooled_lane in tasks]).items():
        tx.lines[lines[pooled_lane]]["waiting"] += number
    lives = {
        pooled_lane: run.policy.lanes.get(lane_and_pool(pooled_lane)[0], _DEFAULT_LANE).ttl for pooled_lane in lines
    }
    rows: list[tuple[object, ...]] = []
    for task, pooled_lane in tasks:
        line, site = lines[pooled_lane], sites[task.site]
        if not task.wait:
            tx.ready[line, site] += 1
        ttl = lives[pooled_lane]
        if task.ttl is not None:
            ttl = task.ttl if ttl is None else min(ttl, task.ttl)
        rows.append(
            (
                run.id,
                line,
                site,
                DELAYED if task.wait else READY,
                task.priority,
                task.depth,
                tx.now + task.wait if task.wait else None,
                None if ttl is None else tx.now + task.wait + ttl,
                task.url,
                task.handler,
                None if task.extra is NO_EXTRA else encode(task.extra).decode(),
                (task.extra.group or "") if run.is_job else None,
            )
        )
    tx.write_rows("insert_tasks", rows)
