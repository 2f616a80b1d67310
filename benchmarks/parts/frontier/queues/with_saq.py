"""SAQ on Redis: it has no way to enqueue several jobs at once, so many calls are under way together; one worker.

Usage: with_saq.py REDIS_URL JOBS BATCH CONCURRENCY
"""

from __future__ import annotations

import asyncio
import logging
import sys

import uvloop
from contest import finished, produce, wait_for_start
from saq import Queue, Worker


async def main(url: str, count: int, batch: int, concurrency: int) -> None:
    """Enqueue, work, and count."""
    done = 0
    queue = Queue.from_url(url, max_concurrent_ops=batch)
    await queue.connect()

    async def fetch(_context: object, *, url: str, site: str) -> None:
        nonlocal done
        done += 1

    async def enqueue(some: list[tuple[str, str]]) -> None:
        await asyncio.gather(*(queue.enqueue("fetch", url=url, site=site) for url, site in some))

    wait_for_start()
    await produce(count, batch, enqueue)
    worker = Worker(queue, [("fetch", fetch)], concurrency=concurrency, burst=True, dequeue_timeout=0.1)
    await worker.start()
    finished(done)


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    uvloop.run(main(sys.argv[1], *map(int, sys.argv[2:5])))
