"""Asks a JSON API page by page: the question is the body of a POST, and the answer says how many pages there are.

python -m shoal.demo -- shoal run examples/json_api.py -o mysteries.jsonl
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from shoal import Page, Request, Scraper

API = os.environ.get("SHOAL_DEMO_URL", "http://127.0.0.1:8808/") + "api/books"

mysteries = Scraper(
    "mysteries",
    start=[Request(API, json={"category": "Mystery", "page": 1}, data={"page": 1})],
    delay=0.05,  # the demo shop is our own; leave the default of one second for everybody else's
)


@mysteries.page
def answer(page: Page) -> Iterator[object]:
    """One page of the answer: its books, and the question for the next."""
    yield from page.json("books[*].{title: title, price: price.amount}")
    asked = page.data["page"]
    if asked < page.json("pages"):
        following = {"category": "Mystery", "page": asked + 1}
        yield Request(API, json=following, data={"page": asked + 1})
