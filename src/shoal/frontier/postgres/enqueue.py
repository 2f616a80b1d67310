"""Letting tasks in: each key once in its run, each task at the end of the line for its site."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.core.storable import findable
from shoal.core.task import NO_EXTRA, NewTask
from shoal.frontier.contract.frontier import Enqueued
from shoal.frontier.postgres.runs import run_errors
from shoal.frontier.postgres.store.columns import NewTasks, as_sent, counts, encode, record_reader
from shoal.frontier.postgres.store.connections import Connections
from shoal.frontier.shared.endings import names_of, page_of
from shoal.frontier.shared.refusals import storable_only
from shoal.frontier.shared.seen import seen_key

_enqueued = record_reader(Enqueued)


async def enqueue(connections: Connections, run_id: str, tasks: Sequence[NewTask]) -> Enqueued:
    """The verb `enqueue`. Raises UnknownRun, UsageError if the run was cancelled, BeingMoved."""
    with run_errors(run_id, cancelled=f"Run {run_id!r} was cancelled and takes no more tasks. Start a new run."):
        with storable_only(connections.name):
            columns = task_columns(tasks)
        return _enqueued(await connections.row("enqueue", connections.now(), findable(run_id), columns))


def task_columns(tasks: Sequence[NewTask]) -> NewTasks:
    """New tasks as the store takes them."""
    return NewTasks(
        url=[task.url for task in tasks],
        site=[task.site for task in tasks],
        key=[_names(task) if task.key is None else seen_key(task.key) for task in tasks],
        lane=[task.lane if task.pool is None else task.pooled_lane for task in tasks],
        handler=as_sent([task.handler for task in tasks]),
        priority=counts([task.priority for task in tasks]),
        depth=counts([task.depth for task in tasks]),
        wait=counts([task.wait for task in tasks]),
        ttl=as_sent([task.ttl for task in tasks]),
        extra=as_sent([None if task.extra is NO_EXTRA else encode(task.extra).decode() for task in tasks]),
    )


def _names(task: NewTask) -> bytes | None:
    """What stands in place of a key where a page is let in again: its names, so that its old endings are forgotten."""
    page = page_of(task.url, task.extra)
    return None if page is None else b"".join(names_of(page))
