"""`shoal stats --workers`: who is at work, and on what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.cli.output.text import count, duration, print_line, table
from shoal.insight.workers import WorkerState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shoal.insight.workers import WorkerStatus

NO_WORKERS = "No worker has been seen in the last hour. Start one with `shoal worker file.py`."


def print_workers(workers: Sequence[WorkerStatus]) -> None:
    """A row for each worker that lives or still holds leases; the others are only counted."""
    shown = [worker for worker in workers if worker.leases or worker.state is not WorkerState.GONE]
    if shown:
        header = ("worker", "machine", "pid", "state", "last seen", "leases", "scrapers", "lanes", "doing")
        print_line(table(header, [_row(worker) for worker in shown]))
    if len(shown) < len(workers):
        print_line(f"{count(len(workers) - len(shown), 'worker')} gone within the last hour.")


def _row(worker: WorkerStatus) -> tuple[object, ...]:
    return (
        worker.worker_id,
        worker.machine,
        worker.pid,
        worker.state.value,
        f"{duration(worker.silent)} ago",
        worker.leases,
        ", ".join(worker.scrapers) or "-",
        ", ".join(worker.lanes) or "-",
        _doing(worker),
    )


def _doing(worker: WorkerStatus) -> str:
    if not worker.tasks:
        return "-"
    first = worker.tasks[0]
    more = f" and {worker.leases - 1:,} more" if worker.leases > 1 else ""
    return f"{first.url} ({first.run_id}){more}"
