"""Worker liveness: who a worker is, whether it still lives, and what it had in hand when it died.

A crash must be charged to the task that caused it, and to no other that merely was in flight at that moment. So each
worker notes the tasks that its handlers are reading, in a small memory-mapped file that outlives a `kill -9`.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import secrets
import socket
import struct
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import psutil

from shoal.core.clock import Clock, Moment, SystemClock
from shoal.frontier.contract.frontier import Duties, WorkerInfo
from shoal.frontier.shared.private_files import new_private_file, private_folder, read_private_file

PLACES = 256
"""How many tasks a notebook has room for. Those beyond are not noted, and so not charged."""

KEPT_SECONDS = 7 * 24 * 3600
"""How long the notebook of a dead worker is kept for whoever brings back its leases."""

NOTEBOOKS = "shoal-*-*-*.hand"
"""How notebooks are named: after the machine, the process and chance."""

NO_DUTIES = Duties()

_ENTRY = struct.Struct("<q")


@cache
def this_machine() -> str:
    """Names this machine, its boot and its process space: within one name, process ids can be compared."""
    parts = [socket.gethostname()]
    for word, file in (("boot", "/proc/sys/kernel/random/boot_id"), ("id", "/etc/machine-id")):
        with contextlib.suppress(OSError):
            parts.append(f"{word}={Path(file).read_text().strip()}")
    with contextlib.suppress(OSError):
        parts.append(f"processes={Path('/proc/self/ns/pid').stat().st_ino}")
    return "/".join(parts)


def is_of_another_boot(machine: str) -> bool:
    """Whether a machine's name tells that it was not given since this machine was started."""
    boots = [{part for part in name.split("/") if part.startswith("boot=")} for name in (machine, this_machine())]
    return all(boots) and boots[0] != boots[1]


def started(pid: int) -> int | None:
    """When a process of this machine was started, in milliseconds; None = there is none, or only a zombie."""
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return round(process.create_time() * 1000)
    except psutil.NoSuchProcess:
        return None
    except psutil.AccessDenied:
        return 0


def is_gone(pid: int, pid_started: int) -> bool:
    """Whether the process that had this id and start time no longer runs on this machine."""
    now_there = started(pid)
    if now_there is None:
        return True
    return bool(now_there) and abs(now_there - pid_started) > 2000


class Notebook:
    """The tasks in hand, written where a sudden death cannot take them away."""

    def __init__(self, path: Path) -> None:
        self.path = path
        file = new_private_file(path)
        try:
            os.write(file, bytes(PLACES * _ENTRY.size))
            self._map = mmap.mmap(file, 0)
        finally:
            os.close(file)
        self._free = list(range(PLACES - 1, -1, -1))

    @contextlib.contextmanager
    def holding(self, task: int) -> Iterator[None]:
        """Note a task for as long as the block runs."""
        if not self._free:
            yield
            return
        place = self._free.pop()
        _ENTRY.pack_into(self._map, place * _ENTRY.size, task)
        try:
            yield
        finally:
            _ENTRY.pack_into(self._map, place * _ENTRY.size, 0)
            self._free.append(place)

    def charge_only(self, task: int) -> None:
        """Before a death of which this task is the cause: it alone is noted. May be called by another thread."""
        self._map[:] = _ENTRY.pack(task).ljust(PLACES * _ENTRY.size, b"\0")

    def close(self) -> None:
        """Throw it away: its owner ends in order."""
        self._map.close()
        self.path.unlink(missing_ok=True)


def read_notebook(path: str | None) -> frozenset[int] | None:
    """The tasks that a worker had in hand when it died; None = cannot be known."""
    if path is None:
        return None
    try:
        content = read_private_file(Path(path), PLACES * _ENTRY.size)
    except (OSError, ValueError):  # a path that is none, too: it is what the store says
        return None
    whole = len(content) - len(content) % _ENTRY.size
    return frozenset(task for (task,) in _ENTRY.iter_unpack(content[:whole]) if task)


def owners_of_notebooks() -> dict[str, int]:
    """The process of each notebook that lies here, by the notebook's name. It may be long dead."""
    owners: dict[str, int] = {}
    for book in _folder().glob(NOTEBOOKS):
        *_, pid, _ = book.name.split("-")
        if pid.isdecimal():
            owners[book.name] = int(pid)
    return owners


def _folder() -> Path:
    """Of this user alone, so that nobody else can lay out files there for its workers to write to, or to watch."""
    return private_folder(Path(tempfile.gettempdir()) / f"shoal-{os.getuid()}")


def _clear_away(folder: Path, now: Moment) -> None:
    """Throw away notebooks that nobody has asked for in a week."""
    for old in folder.glob(NOTEBOOKS):
        with contextlib.suppress(OSError):
            if now / 1000 - old.stat().st_mtime > KEPT_SECONDS:
                old.unlink()


def introduce(duties: Duties = NO_DUTIES, clock: Clock | None = None) -> tuple[WorkerInfo, Notebook]:
    """A new worker in this process: host, process and chance make its id unique. `clock`: None = of this machine."""
    pid = os.getpid()
    worker_id = f"{socket.gethostname()}-{pid}-{secrets.token_hex(3)}"
    folder = _folder()
    _clear_away(folder, (clock or SystemClock()).now())
    notebook = Notebook(folder / f"shoal-{worker_id}.hand")
    return WorkerInfo(worker_id, this_machine(), pid, started(pid) or 0, str(notebook.path), duties), notebook
