"""Fills in the shop's own search form, with all the fields that it has, and reads what is found.

python -m shoal.demo -- shoal run examples/search_form.py -o milk.jsonl
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from shoal import Page, Request, Scraper

groceries = Scraper(
    "groceries",
    start=[os.environ.get("SHOAL_DEMO_URL", "http://127.0.0.1:8808/") + "search"],
    delay=0.05,  # the demo shop is our own; leave the default of one second for everybody else's
)


@groceries.page
def search(page: Page) -> Request:
    """The page with the form, which knows best where to send it."""
    return page.form(values={"q": "milk", "zip": "10001"}, to="found")


@groceries.page("found")
def found(page: Page) -> Iterator[object]:
    """What was found: each card is asked like a page of its own."""
    for card in page.select("article.card"):
        yield {
            "title": card.text(".title"),
            "price": card.texts(".price").re_first(r"[\d.]+"),
            "store": card.text(".store"),
        }
