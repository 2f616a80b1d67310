"""What tests ask of an engine on PostgreSQL, and with what: a worker elsewhere, its pages, how it settles them."""

from __future__ import annotations

from shoal.core.outcome import Done, Settlement
from shoal.core.task import DEFAULT_POOL, Lease, NewTask
from shoal.frontier.contract.frontier import Ask, WorkerInfo

WORKER = WorkerInfo("w", "another machine", 1, 1)


def ask(want: int = 0, *settlements: Settlement, worker: WorkerInfo = WORKER) -> Ask:
    return Ask(worker, ("shop",), ("bulk",), {DEFAULT_POOL: ("direct",)}, want, None, settlements)


def done(lease: Lease, *items: bytes) -> Settlement:
    return Settlement(lease.task.run_id, lease.task.id, lease.token, Done(items), lease.claimed_at, 1)


def pages(site: str, number: int) -> list[NewTask]:
    return [NewTask(f"https://{site}/{n}", site, None) for n in range(number)]
