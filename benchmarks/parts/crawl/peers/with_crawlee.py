"""Crawlee crawls the site, with its Parsel crawler and its storage in memory.

Usage: with_crawlee.py START_URL. Prints one JSON object with pages and items.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys

from crawlee import ConcurrencySettings
from crawlee.crawlers import ParselCrawler, ParselCrawlingContext
from crawlee.storage_clients import MemoryStorageClient

counted = {"pages": 0, "items": 0}


async def crawl(start: str) -> None:
    """Fetch until nothing waits."""
    crawler = ParselCrawler(
        concurrency_settings=ConcurrencySettings(min_concurrency=32, desired_concurrency=64, max_concurrency=64),
        configure_logging=False,
        max_request_retries=0,
        storage_client=MemoryStorageClient(),
    )

    @crawler.router.default_handler
    async def read(context: ParselCrawlingContext) -> None:
        counted["pages"] += 1
        items = [
            {"title": product.css("h3 a::attr(title)").get(), "price": product.css("p.price::text").get()}
            for product in context.selector.css("article.product")
        ]
        counted["items"] += len(items)
        await context.push_data(items)
        await context.enqueue_links(selector="ul.nav a")

    await crawler.run([start])


if __name__ == "__main__":
    logging.disable(logging.INFO)
    asyncio.run(crawl(sys.argv[1]))
    print(json.dumps(counted))
