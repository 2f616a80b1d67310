"""`shoal stats --workers`: who is at work, and on what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.cli.text import count, duration, print_line, table
from shoal.url import without_credentials
from shoal.workers import WorkerState, state_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shoal.frontier.reading import WorkerRecord

NO_WORKERS = "No worker has been seen in the last hour. Start one with `shoal worker file.py`."


def print_workers(records: Sequence[WorkerRecord]) -> None:
    """A row for each worker that lives or still holds leases; the others are only counted."""
    shown = [record for record in records if record.leases or state_of(record) is not WorkerState.GONE]
    if shown:
        header = ("worker", "machine", "pid", "state", "last seen", "leases", "scrapers", "lanes", "doing")
        print_line(table(header, [_row(record) for record in shown]))
    if len(shown) < len(records):
        print_line(f"{count(len(records) - len(shown), 'worker')} gone within the last hour.")


def _row(record: WorkerRecord) -> tuple[object, ...]:
    info = record.info
    return (
        info.worker_id,
        info.machine.partition("/")[0],
        info.pid,
        state_of(record).value,
        f"{duration(record.silent / 1000)} ago",
        record.leases,
        ", ".join(info.duties.scrapers) or "-",
        ", ".join(info.duties.lanes) or "-",
        _doing(record),
    )


def _doing(record: WorkerRecord) -> str:
    if not record.tasks:
        return "-"
    first = record.tasks[0]
    more = f" and {record.leases - 1:,} more" if record.leases > 1 else ""
    return f"{without_credentials(first.url)} ({first.run_id}){more}"
