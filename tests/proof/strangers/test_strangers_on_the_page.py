"""Nothing that a page sends stops a worker: answers made up by chance go the whole way, from fetch to settlement.

`make proof` does so for minutes, on every engine; a number that fails is all that is needed to see it again.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from proof.strangers.odd_answers import OddAnswer
from shoal.api.page import Page
from shoal.api.request import Request
from shoal.api.scraper import Scraper
from shoal.core.outcome import Blame
from shoal.frontier.contract.engine import Engine
from shoal.frontier.open import open_engine
from shoal.work.options import WorkTiming
from support.engine_urls import ENGINES, empty_store
from support.serving import server
from support.working import crawl

SHORT = 250
"""Answers on each engine in `make test`."""
ROUND = 500
AT_ONCE = WorkTiming(retry_first=5, backoff_first=5, outage_first=5)
"""Sites that fail or refuse are asked again within milliseconds."""
MINUTES = float(os.environ.get("SHOAL_PROOF_MINUTES", "3"))
"""How long each engine is tried in `make proof`."""


def curious(**options: Any) -> Scraper:
    """A scraper that reads whatever there is, and believes it."""
    scraper = Scraper(
        "curious", delay=0, concurrency=16, obey_robots=False, attempts=1, max_depth=1, site_down_after=0, **options
    )

    @scraper.page
    def read(page: Page) -> Any:
        for node in page.css("a"):
            url = page.url_for(node.attributes.get("href") or "")
            if url is not None and "/good/" in url:
                yield Request(url, group=node.attributes.get("data-group"))
        yield from page.follow("a", group=page.text("h1"))
        yield {"title": page.text("h1"), "links": list(page.links())[:3], "html": page.html[:2_000]}

    return scraper


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    line = await reader.readline()
    await reader.readuntil(b"\r\n\r\n")
    path = line.split()[1]
    number = path.rpartition(b"/odd/")[2]
    if number.isdigit() and path.startswith(b"/odd/"):
        writer.write(bytes(OddAnswer(int(number))))
    else:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\nConnection: close\r\n\r\n<h1>ok</h1>")
    await writer.drain()


@asynccontextmanager
async def _opened(store: str) -> AsyncIterator[Engine]:
    engine = await open_engine(store)
    try:
        yield engine
    finally:
        await engine.close()


async def _crawl_odd_answers(store: str, first: int, count: int) -> Counter[str]:
    """All of them, and one good page behind them: everything ends, and the worker says nothing of itself."""
    async with server(_answer) as port, _opened(store) as engine:
        site = f"http://127.0.0.1:{port}"
        urls = [f"{site}/odd/{number}" for number in range(first, first + count)]
        with capture_logs() as logs:
            crawled = await crawl(engine, curious(), f"run-{first}", urls=[*urls, f"{site}/last"], timing=AT_ONCE)
        counters = crawled.counters
        assert counters.remaining == 0, counters
        assert f"{site}/last" in {item.url for item in crawled.stored}
        ours = [letter.reason.text for letter in crawled.dead.values() if letter.reason.blame is Blame.WORKER]
        assert not ours, ours[:3]
        loud = [log for log in logs if log["log_level"] in ("error", "critical")]
        assert not loud, loud[:3]
        return Counter({"answers": count, "items": len(crawled.stored), "dead": counters.dead, "done": counters.done})


@pytest.mark.parametrize("engine", ENGINES)
async def test_no_answer_stops_a_worker(tmp_path: Path, engine: str) -> None:
    with empty_store(engine, tmp_path) as store:
        print(dict(await _crawl_odd_answers(store, 0, SHORT)))


@pytest.mark.proof
@pytest.mark.parametrize("engine", ENGINES)
async def test_no_answer_of_many_stops_a_worker(tmp_path: Path, engine: str) -> None:
    seen: Counter[str] = Counter()
    end = time.monotonic() + MINUTES * 60
    with empty_store(engine, tmp_path) as store:
        while time.monotonic() < end:
            seen += await _crawl_odd_answers(store, seen["answers"], ROUND)
    print(engine, dict(seen))
