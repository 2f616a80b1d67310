"""What a waiting URL takes: on disk, or in the memory of Redis."""

from __future__ import annotations

from dataclasses import dataclass

from parts.frontier.load import Tasks, fill, new_run, site_names
from parts.shared.report import BenchmarkError, progress
from parts.shared.stores import bytes_taken, delete_store, empty_store

from shoal.frontier.open import open_engine


@dataclass(frozen=True)
class Size:
    """Bytes for each of `urls` waiting tasks of so many sites, everything counted."""

    urls: int
    sites: int
    each: float


async def bytes_per_waiting_url(engine: str, urls: int, sites: int) -> Size:
    """Measured in a store of its own, which is gone afterwards."""
    progress(f"enqueueing {urls:,} tasks of {sites:,} sites to see what they take …")
    store = await empty_store(engine, f"size-{sites}")
    before = await bytes_taken(store) if engine.startswith("redis") else 0
    opened = await open_engine(store)
    try:
        run_id = await new_run(opened.frontier, "size", delay=1000)
        await fill(opened.frontier, run_id, Tasks(site_names(sites)), urls)
        waiting = (await opened.reader.run(run_id)).counters.waiting
        if waiting != urls:
            raise BenchmarkError(f"{urls} tasks were enqueued, but {waiting} wait.")
    finally:
        await opened.close()
    taken = await bytes_taken(store) - before
    await delete_store(store)
    return Size(urls, sites, taken / urls)
