"""What every contestant does: get ready, wait for the start, work, and tell how many jobs it has finished."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    Batch = list[tuple[str, str]]

SITES = 1000
PRODUCERS = 4


async def produce(count: int, size: int, enqueue: Callable[[Batch], Awaitable[object]]) -> None:
    """Enqueue all of the work, a batch at a time by each of a few producers."""
    work = _batches(count, size)

    async def producer() -> None:
        for some in work:
            await enqueue(some)

    await asyncio.gather(*(producer() for _ in range(PRODUCERS)))


def _batches(count: int, size: int) -> Iterator[Batch]:
    """URLs of 60 characters, each with its site, as the frontier gets them too."""
    for first in range(0, count, size):
        sites = [f"shop-{number % SITES:07d}.example" for number in range(first, min(first + size, count))]
        yield [(f"https://{site}/books/item-{number:09d}/index.html", site) for number, site in enumerate(sites, first)]


def wait_for_start() -> None:
    """Everything that is not part of the work is done."""
    print("ready", flush=True)
    sys.stdin.readline()


def finished(count: int) -> None:
    """The work is done. The process stays until what it used has been read."""
    print(json.dumps({"finished": count}), flush=True)
    sys.stdin.readline()
