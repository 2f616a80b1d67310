"""Crawls the bundled demo shop: listing, detail pages, and the corner that limits its visitors.

python -m shoal.demo -- shoal run examples/books.py -o books.jsonl
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from shoal import Page, Scraper

books = Scraper(
    "books",
    start=[os.environ.get("SHOAL_DEMO_URL", "http://127.0.0.1:8808/")],
    delay=0.05,  # the demo shop is our own; leave the default of one second for everybody else's
)


@books.page
def listing(page: Page) -> Iterator[object]:
    """Pages of the listing: every book, the next page, and the way to the deals."""
    yield from page.follow("article h3 a", to="detail")
    yield from page.follow("li.next a")
    yield from page.follow("nav a.deals", to="deals")


@books.page("detail")
def detail(page: Page) -> Iterator[object]:
    """One book: what is yielded as a dict is kept as an item."""
    yield {
        "title": page.text("h1"),
        "price": page.text(".price"),
        "category": page.text(".category"),
        "stock": page.text(".stock"),
        "url": page.url,
    }


@books.page("deals")
def deals(page: Page) -> Iterator[object]:
    """The deals corner answers 429 to anyone in a hurry: the site waits as told, and no book is lost."""
    yield from page.follow("article h3 a", to="detail")
