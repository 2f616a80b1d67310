"""arq: it has no way to enqueue several jobs at once, so many calls are under way together; one worker, no results.

Usage: with_arq.py REDIS_URL JOBS BATCH CONCURRENCY
"""

from __future__ import annotations

import asyncio
import logging
import sys

import uvloop
from arq import Worker, create_pool
from arq.connections import RedisSettings
from arq.worker import func
from contest import finished, produce, wait_for_start


async def main(url: str, count: int, batch: int, concurrency: int) -> None:
    """Enqueue, work, and count."""
    done = 0
    pool = await create_pool(RedisSettings.from_dsn(url))

    async def fetch(_context: object, url: str, site: str) -> None:
        nonlocal done
        done += 1

    async def enqueue(some: list[tuple[str, str]]) -> None:
        await asyncio.gather(*(pool.enqueue_job("fetch", url, site) for url, site in some))

    wait_for_start()
    await produce(count, batch, enqueue)
    worker = Worker(
        [func(fetch, name="fetch", keep_result=0)],
        redis_pool=pool,
        burst=True,
        max_jobs=concurrency,
        poll_delay=0.001,
        handle_signals=False,
        log_results=False,
    )
    await worker.async_run()
    finished(done)


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    uvloop.run(main(sys.argv[1], *map(int, sys.argv[2:5])))
