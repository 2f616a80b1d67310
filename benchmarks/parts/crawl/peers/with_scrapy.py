"""Scrapy crawls the site.

Usage: with_scrapy.py START_URL. Prints one JSON object with pages and items.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import scrapy
from scrapy.crawler import CrawlerProcess

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from scrapy.http import Response

SETTINGS = {
    "CONCURRENT_REQUESTS": 64,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 64,
    "COOKIES_ENABLED": False,
    "DOWNLOAD_DELAY": 0,
    "LOG_LEVEL": "ERROR",
    "RETRY_ENABLED": False,
    "ROBOTSTXT_OBEY": False,
    "TELNETCONSOLE_ENABLED": False,
}
counted = {"pages": 0, "items": 0}


class Products(scrapy.Spider):
    """All products of all pages."""

    name = "products"

    async def start(self) -> AsyncIterator[scrapy.Request]:
        """The first page, remembered as seen: Scrapy's own `start_urls` are not, and would be fetched twice."""
        yield scrapy.Request(sys.argv[1])

    def parse(self, response: Response) -> Iterator[object]:
        """Items of one page, and its links."""
        counted["pages"] += 1
        for product in response.css("article.product"):
            counted["items"] += 1
            yield {"title": product.css("h3 a::attr(title)").get(), "price": product.css("p.price::text").get()}
        yield from response.follow_all(css="ul.nav a")


if __name__ == "__main__":
    process = CrawlerProcess(SETTINGS)
    process.crawl(Products)
    process.start()
    print(json.dumps(counted))
