"""What a cart of groceries costs near a ZIP code: one search of the bundled demo shop for each item.

python -m shoal.demo -- shoal serve cart.py --with-workers
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from typing import Annotated
from urllib.parse import urlencode

from pydantic import BaseModel, Field, StringConstraints

from shoal import Page, Request, Scraper

SHOP = os.environ.get("SHOAL_DEMO_URL", "http://127.0.0.1:8808/")
MOST_PRODUCTS = 20


class Cart(BaseModel):
    """What somebody wants to buy, and where."""

    items: list[Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=80)]] = Field(
        min_length=1, max_length=20
    )
    zipcode: str = Field(pattern=r"^[0-9]{5}$")


cart = Scraper("cart", input=Cart, delay=0.5)  # half a second between two searches; POST /cart exists because of this


@cart.start
def searches(cart: Cart) -> Iterator[Request]:
    """One search for each item. Results are grouped by it."""
    for item in cart.items:
        yield Request(f"{SHOP}search?{urlencode({'q': item, 'zip': cart.zipcode})}", group=item)


@cart.page
def products(page: Page) -> Iterator[dict[str, str | None]]:
    """The first products of a search, each a card."""
    for card in islice(page.css("article.card"), MOST_PRODUCTS):
        yield {part: card.css_first(f".{part}").text(strip=True) for part in ("title", "price", "store", "distance")}
