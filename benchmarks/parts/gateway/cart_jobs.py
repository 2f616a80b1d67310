"""The scraper behind Shoal's side: one page for each item, from the echo of `SITE`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pydantic import BaseModel

from shoal import Page, Request, Scraper

if TYPE_CHECKING:
    from collections.abc import Iterator

SITE_PORT = os.environ.get("SITE_PORT", "9")
SITES = 50


class Cart(BaseModel):
    """What a user wants to have looked up."""

    items: list[str]
    zipcode: str


cart = Scraper("cart", input=Cart, delay=0, concurrency=64, obey_robots=False)


@cart.start
def searches(given: Cart) -> Iterator[Request]:
    """A page for each item; users are spread over the sites by their code."""
    site = int(given.zipcode) % SITES + 1
    for item in given.items:
        yield Request(f"http://127.0.1.{site}:{SITE_PORT}/?q={item}&zip={given.zipcode}", group=item)


@cart.page
def product(page: Page) -> Iterator[dict[str, str | None]]:
    """What the site says it was asked for."""
    yield {"found": page.text("p")}
