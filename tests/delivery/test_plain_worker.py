"""The example that works on a run with nothing but a lease client."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from shoal.demo.shop import DemoShop
from shoal.runs.seeding import seed
from support.working import opened, reader, result_of

EXAMPLE = Path(__file__).parents[2] / "examples" / "plain_worker.py"

pytestmark = pytest.mark.usefixtures("notebooks")


async def test_it_crawls_the_shop(tmp_path: Path) -> None:
    """Every page that its links lead to, once, and at its pace; a rate limit of the shop costs nothing."""
    async with opened(tmp_path) as engine, DemoShop(port=0) as shop:
        await seed(engine, reader("shop", delay=0.01, start=[shop.url]), "run")
        command = (sys.executable, str(EXAMPLE), f"sqlite:///{tmp_path}/shoal.db", "shop", "run")
        working = await asyncio.create_subprocess_exec(*command)
        async with asyncio.timeout(120):
            assert await working.wait() == 0
        crawled = await result_of(engine)
    counts = crawled.counters
    urls = [item["url"] for item in crawled.items]
    assert (counts.remaining, counts.late, counts.crashes) == (0, 0, 0)
    assert len(urls) == len(set(urls)) == counts.done > 60
    assert counts.requests == counts.done + counts.snoozes + counts.retries + counts.dead
