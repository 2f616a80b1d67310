"""Looks which of a list of links are dead: pages that are gone are answers too, and not failures.

python -m shoal.demo -- shoal run examples/error_pages.py -o links.jsonl
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from shoal import Page, Request, Scraper

SHOP = os.environ.get("SHOAL_DEMO_URL", "http://127.0.0.1:8808/")
LINKS = ("books/how-fish-decide-3", "books/a-book-that-never-was", "moved/how-fish-decide-3", "page/999")

links = Scraper(
    "links",
    start=[Request(SHOP + path) for path in LINKS],
    accept=[404, 410],  # of these a handler is told; all other failures are retried, or become dead letters
    delay=0.05,  # the demo shop is our own; leave the default of one second for everybody else's
)


@links.page
def look(page: Page) -> Iterator[object]:
    """One link: whether it leads somewhere, and by which way."""
    yield {
        "link": page.request.url,
        "status": page.status,
        "dead": page.status >= 400,
        "moved_to": page.url if page.history else None,
        "redirects": [hop.status for hop in page.history],
    }
