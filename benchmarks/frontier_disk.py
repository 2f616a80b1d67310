"""What a waiting URL takes on disk."""

from __future__ import annotations

from load import Tasks, fill, new_run, site_names
from report import BenchmarkError, progress
from stores import bytes_on_disk

from shoal.engines import open_engine

SITES = 1000


async def bytes_per_waiting_url(store: str, urls: int) -> float | None:
    """Bytes of the closed store for each of `urls` waiting tasks, everything counted; None where it cannot be told."""
    progress(f"enqueueing {urls:,} tasks to see what they take on disk …")
    engine = await open_engine(store)
    try:
        run_id = await new_run(engine.frontier, "disk", delay=1000)
        await fill(engine.frontier, run_id, Tasks(site_names(SITES)), urls)
        waiting = (await engine.reader.run(run_id)).counters.waiting
        if waiting != urls:
            raise BenchmarkError(f"{urls} tasks were enqueued, but {waiting} wait.")
    finally:
        await engine.close()
    taken = bytes_on_disk(store)
    return taken / urls if taken else None
