"""The least that can crawl the site: aiohttp, selectolax and a set. No queue on disk, no politeness, nothing stored.

Usage: bare_loop.py START_URL. Prints one JSON object with pages and items.
"""

from __future__ import annotations

import asyncio
import json
import sys
from urllib.parse import urljoin

import aiohttp
import uvloop
from selectolax.lexbor import LexborHTMLParser

CONCURRENCY = 64


class BareLoop:
    """Sixty-four coroutines around one queue in memory."""

    def __init__(self, start: str) -> None:
        self.pages = 0
        self.items = 0
        self._seen = {start}
        self._waiting: asyncio.Queue[str] = asyncio.Queue()
        self._waiting.put_nowait(start)

    async def crawl(self) -> None:
        """Fetch until nothing waits."""
        connector = aiohttp.TCPConnector(limit=CONCURRENCY)
        session = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
        async with session, asyncio.TaskGroup() as group:
            fetchers = [group.create_task(self._fetch(session)) for _ in range(CONCURRENCY)]
            await self._waiting.join()
            for fetcher in fetchers:
                fetcher.cancel()

    async def _fetch(self, session: aiohttp.ClientSession) -> None:
        while True:
            url = await self._waiting.get()
            async with session.get(url) as answer:
                body = await answer.read()
            self._read(url, LexborHTMLParser(body))
            self._waiting.task_done()

    def _read(self, url: str, page: LexborHTMLParser) -> None:
        self.pages += 1
        items = [
            {"title": product.css_first("h3 a").attributes["title"], "price": product.css_first("p.price").text()}
            for product in page.css("article.product")
        ]
        self.items += len(items)
        for link in page.css("ul.nav a"):
            target = urljoin(url, link.attributes["href"])
            if target not in self._seen:
                self._seen.add(target)
                self._waiting.put_nowait(target)


if __name__ == "__main__":
    loop = BareLoop(sys.argv[1])
    uvloop.run(loop.crawl())
    print(json.dumps({"pages": loop.pages, "items": loop.items}))
