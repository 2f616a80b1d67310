"""Enqueue: tasks go to the partitions of their sites, all or none in each."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.core.task import NewTask
from shoal.errors import BeingMoved, UsageError
from shoal.frontier.contract.frontier import Enqueued
from shoal.frontier.redis.codec.tasks import task_groups
from shoal.frontier.redis.store.client import RedisStore
from shoal.frontier.redis.store.partitions import Partitions
from shoal.frontier.shared.refusals import storable_only


async def enqueue(store: RedisStore, partitions: Partitions, run_id: str, tasks: Sequence[NewTask]) -> Enqueued:
    """Accept tasks. Raises UnknownRun, UsageError if the run was cancelled, BeingMoved if it is between two stores."""
    accepted = 0
    with storable_only(store.name):
        apart = {partition: task_groups(some) for partition, some in _apart(store, tasks).items()}
    for partition, groups in apart.items():
        state, number = await partitions.enqueue(partition, run_id, groups)
        if state == "cancelled":
            raise UsageError(f"Run {run_id!r} was cancelled and takes no more tasks. Start a new run.")
        if state in ("leaving", "arriving"):
            raise BeingMoved(run_id, arriving=state == "arriving")
        accepted += number
    return Enqueued(accepted, len(tasks) - accepted)


def _apart(store: RedisStore, tasks: Sequence[NewTask]) -> dict[int, Sequence[NewTask]]:
    """Tasks by partition; without any, the first partition still says if the run takes some."""
    if store.partitions == 1 or not tasks:
        return {0: tasks}
    apart: dict[int, list[NewTask]] = {}
    for task in tasks:
        apart.setdefault(store.partition_of(task.site), []).append(task)
    return dict(apart)
