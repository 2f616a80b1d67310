"""procrastinate: jobs deferred in batches, done by one worker that deletes what it has done.

Usage: with_procrastinate.py POSTGRESQL_URL JOBS BATCH CONCURRENCY
"""

from __future__ import annotations

import logging
import sys

import procrastinate
import uvloop
from contest import finished, produce, wait_for_start


async def main(url: str, count: int, batch: int, concurrency: int) -> None:
    """Defer, work, and count."""
    done = 0
    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=url, min_size=1, max_size=concurrency))

    @app.task(name="fetch")
    async def fetch(url: str, site: str) -> None:
        nonlocal done
        done += 1

    async def enqueue(some: list[tuple[str, str]]) -> None:
        await fetch.batch_defer_async(*({"url": url, "site": site} for url, site in some))

    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        wait_for_start()
        await produce(count, batch, enqueue)
        await app.run_worker_async(
            wait=False,
            concurrency=concurrency,
            delete_jobs="always",
            listen_notify=False,
            install_signal_handlers=False,
        )
        finished(done)


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    uvloop.run(main(sys.argv[1], *map(int, sys.argv[2:5])))
