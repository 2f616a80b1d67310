"""The examples, each run against the demo shop that they are written for."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from shoal.api.scraper import Scraper
from shoal.demo.books import BOOKS, PER_PAGE
from shoal.demo.grocer import find_products
from shoal.demo.shop import DemoShop
from shoal.frontier.sqlite.engine import SqliteEngine
from support.working import Crawled, crawl

EXAMPLES = Path(__file__).parents[2] / "examples"


async def run(engine: SqliteEngine, shop: DemoShop, name: str, monkeypatch: pytest.MonkeyPatch) -> Crawled:
    monkeypatch.setenv("SHOAL_DEMO_URL", shop.url)
    found = runpy.run_path(str(EXAMPLES / f"{name}.py"))
    [scraper] = [each for each in found.values() if isinstance(each, Scraper)]
    scraper.delay = 0.0
    crawled = await crawl(engine, scraper)
    assert not crawled.dead
    return crawled


def by(name: str, items: list[dict[str, Any]]) -> dict[Any, dict[str, Any]]:
    return {item[name]: item for item in items}


async def test_structured_data(engine: SqliteEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    async with DemoShop() as shop:
        crawled = await run(engine, shop, "structured_data", monkeypatch)
        image = f"{shop.url}covers/{BOOKS[0].number}.png"
    assert len(crawled.items) == PER_PAGE
    first = BOOKS[0]
    assert by("name", crawled.items)[first.title] == {
        "name": first.title,
        "author": first.author,
        "price": first.price[1:],
        "currency": "GBP",
        "in_stock": first.stock > 0,
        "image": image,
    }


async def test_json_api(engine: SqliteEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    async with DemoShop() as shop:
        crawled = await run(engine, shop, "json_api", monkeypatch)
        assert shop.visits["/api/books"] == 3
    wanted = {book.title: book.price[1:] for book in BOOKS if book.category == "Mystery"}
    assert {item["title"]: item["price"] for item in crawled.items} == wanted


async def test_search_form(engine: SqliteEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    async with DemoShop() as shop:
        crawled = await run(engine, shop, "search_form", monkeypatch)
    assert [(item["title"], item["price"], item["store"]) for item in crawled.items] == [
        (card.title, card.price[1:], card.store) for card in find_products("milk", "10001")
    ]


async def test_error_pages(engine: SqliteEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    async with DemoShop() as shop:
        crawled = await run(engine, shop, "error_pages", monkeypatch)
        url = shop.url
    told = {item["link"].removeprefix(url): (item["status"], item["dead"], item["redirects"]) for item in crawled.items}
    assert told == {
        "books/how-fish-decide-3": (200, False, []),
        "books/a-book-that-never-was": (404, True, []),
        "moved/how-fish-decide-3": (200, False, [301]),
        "page/999": (404, True, []),
    }
