"""Workers as the SQL engines answer them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from shoal.frontier.contract.frontier import Duties, WorkerInfo
from shoal.frontier.contract.reader import HeldTask, WorkerRecord

_duties = msgspec.json.Decoder(Duties)
_held = msgspec.json.Decoder(list[HeldTask])


def worker_record(row: Sequence[Any]) -> WorkerRecord:
    """One row of `read_workers`."""
    worker_id, machine, pid, pid_started, notebook, duties, seen_at, leases, silent, tasks = row
    info = WorkerInfo(worker_id, machine, pid, pid_started, notebook, _duties.decode(duties))
    return WorkerRecord(info, seen_at, leases, silent, _held.decode(tasks))
