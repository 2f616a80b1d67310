"""Workers: a sign of life from each, and what it holds."""

from __future__ import annotations

from shoal.frontier.contract.frontier import WorkerInfo
from shoal.frontier.sqlite.store.transaction import Transaction, encode


def leases_of(tx: Transaction, worker: int) -> list[tuple[str, int, int]]:
    """What a worker holds: run id, task and token of each lease."""
    held: list[tuple[str, int, int]] = tx.rows("find_leases_of_worker", worker=worker)
    return held


def greet(tx: Transaction, worker: WorkerInfo) -> int:
    """That a worker was seen now, to half a second: one that has nothing to do need not wait for the disk each time."""
    known = tx.value("find_worker", worker_id=worker.worker_id, now=tx.now)
    if known is not None:
        return int(known)
    return int(
        tx.value(
            "greet_worker",
            worker_id=worker.worker_id,
            machine=worker.machine,
            pid=worker.pid,
            pid_started=worker.pid_started,
            notebook=worker.notebook,
            duties=encode(worker.duties).decode(),
            now=tx.now,
        )
    )
