"""Empty stores for a benchmark, and what they hold on disk: all that has to be known about each kind of engine."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path

from report import BenchmarkError

SQLITE = "sqlite:///"


def empty_store(engine: str, purpose: str) -> str:
    """The URL of a store with nothing in it, beside the one that `engine` names and apart from it."""
    if not engine.startswith(SQLITE):
        kind = engine.partition(":")[0]
        raise BenchmarkError(f"benchmarks/stores.py does not know how to make an empty {kind} store; teach it there.")
    path = Path(engine.removeprefix(SQLITE))
    path.parent.mkdir(parents=True, exist_ok=True)
    store = f"{SQLITE}{path.with_name(f'{path.stem}-{purpose}{path.suffix}')}"
    delete_store(store)
    return store


def delete_store(store: str) -> None:
    """Remove a store that `empty_store` named. Nothing, if it is gone."""
    for file in _files(store):
        file.unlink()


def bytes_on_disk(store: str) -> int | None:
    """What a closed store takes on disk; None where that cannot be told."""
    return sum(file.stat().st_size for file in _files(store)) or None


def sync_milliseconds(engine: str) -> float | None:
    """What the disk under an embedded engine takes to make 4 KB durable (median); None for a server."""
    if not engine.startswith(SQLITE):
        return None
    times = []
    with tempfile.TemporaryFile(dir=Path(engine.removeprefix(SQLITE)).parent) as file:
        for _ in range(50):
            file.write(bytes(4096))
            file.flush()
            begin = time.perf_counter()
            os.fsync(file.fileno())
            times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1000


def _files(store: str) -> list[Path]:
    if not store.startswith(SQLITE):
        return []
    path = Path(store.removeprefix(SQLITE))
    return [
        file for file in (path, *(path.with_name(f"{path.name}-{part}") for part in ("wal", "shm"))) if file.exists()
    ]
