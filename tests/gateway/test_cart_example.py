"""The scraper of the cart example: what it asks the shop for, and what it makes of the answer."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from pydantic import ValidationError

from shoal import Page
from shoal.demo.grocer import find_products
from shoal.demo.pages import search_page

EXAMPLE: dict[str, Any] = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "cart" / "cart.py"))
Cart, searches, products = EXAMPLE["Cart"], EXAMPLE["searches"], EXAMPLE["products"]


def test_one_search_for_each_item_in_its_own_group() -> None:
    requests = list(searches(Cart(items=[" milk ", "salt & pepper", "#1 eggs?"], zipcode="10001")))
    asked = [parse_qs(urlsplit(request.url).query) for request in requests]
    assert asked == [{"q": [item], "zip": ["10001"]} for item in ("milk", "salt & pepper", "#1 eggs?")]
    assert [request.group for request in requests] == ["milk", "salt & pepper", "#1 eggs?"]


def test_at_most_twenty_products_of_an_item() -> None:
    cards = find_products("eggs", "10001") + find_products("eggs", "94105") + find_products("eggs", "60601")
    assert len(cards) > 20
    found = list(products(Page.from_html(search_page("eggs", "10001", cards))))
    assert [(each["title"], each["price"], each["store"], each["distance"]) for each in found] == [
        (card.title, card.price, card.store, card.distance) for card in cards[:20]
    ]


@pytest.mark.parametrize(
    "cart",
    [
        {"items": [], "zipcode": "10001"},
        {"items": ["x"] * 21, "zipcode": "10001"},
        {"items": ["  "], "zipcode": "10001"},
        {"items": ["x" * 81], "zipcode": "10001"},
        {"items": ["milk"], "zipcode": "1000"},
        {"items": ["milk"], "zipcode": "10001\n"},
        {"items": ["milk"], "zipcode": "\uff11\uff10\uff10\uff10\uff11"},
        {"items": ["milk"], "zipcode": "../.."},
    ],
)
def test_what_is_no_cart(cart: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Cart(**cart)
