"""Shoal crawls the site: every product of every page, every link followed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal import Scraper

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shoal import Page

products = Scraper("products", delay=0, concurrency=64, obey_robots=False)


@products.page
def listing(page: Page) -> Iterator[object]:
    """Items of one page, and its links."""
    for product in page.css("article.product"):
        yield {"title": product.css_first("h3 a").attributes["title"], "price": product.css_first("p.price").text()}
    yield from page.follow("ul.nav a")
