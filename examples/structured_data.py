"""Reads what shops say about their products for machines: JSON-LD, which a new design of the page does not break.

python -m shoal.demo -- shoal run examples/structured_data.py -o products.jsonl
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from shoal import Page, Scraper

products = Scraper(
    "products",
    start=[os.environ.get("SHOAL_DEMO_URL", "http://127.0.0.1:8808/")],
    delay=0.05,  # the demo shop is our own; leave the default of one second for everybody else's
)


@products.page
def listing(page: Page) -> Iterator[object]:
    """The first page of the listing: every book on it, and nothing that is no book."""
    yield from page.follow("main a::attr(href)", to="product", allow=f"{page.url}books/")


@products.page("product")
def product(page: Page) -> Iterator[object]:
    """One product, by its JSON-LD; the picture by what the page says for those who link to it."""
    for said in page.jsonld("Product"):
        offer = said.get("offers", {})
        yield {
            "name": said.get("name"),
            "author": said.get("author", {}).get("name"),
            "price": offer.get("price"),
            "currency": offer.get("priceCurrency"),
            "in_stock": offer.get("availability") == "https://schema.org/InStock",
            "image": page.url_for(page.opengraph().get("og:image", [None])[0]),
        }
