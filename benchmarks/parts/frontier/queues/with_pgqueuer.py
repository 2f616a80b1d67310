"""pgqueuer: jobs enqueued in batches, done by one worker on an asyncpg connection, as its own benchmark does it.

Usage: with_pgqueuer.py POSTGRESQL_URL JOBS BATCH CONCURRENCY. It takes BATCH jobs at once.
"""

from __future__ import annotations

import logging
import sys

import asyncpg
import uvloop
from contest import finished, produce, wait_for_start
from pgqueuer import PgQueuer
from pgqueuer.models import Job
from pgqueuer.queries import Queries
from pgqueuer.types import QueueExecutionMode


async def main(url: str, count: int, batch: int, _concurrency: int) -> None:
    """Enqueue, work, and count."""
    done = 0
    pool = await asyncpg.create_pool(url, min_size=2, max_size=8)
    queuer = PgQueuer.from_asyncpg_pool(pool)
    queries = Queries(queuer.connection)
    await queries.install()

    @queuer.entrypoint("fetch")
    async def fetch(job: Job) -> None:
        nonlocal done
        done += 1

    async def enqueue(some: list[tuple[str, str]]) -> None:
        payloads = [f"{site} {url}".encode() for url, site in some]
        await queries.enqueue(["fetch"] * len(payloads), payloads, [0] * len(payloads))

    wait_for_start()
    await produce(count, batch, enqueue)
    await queuer.run(batch_size=batch, mode=QueueExecutionMode.drain)
    finished(done)


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    uvloop.run(main(sys.argv[1], *map(int, sys.argv[2:5])))
