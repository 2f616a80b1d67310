"""The shop's second trade: groceries, priced by ZIP code. The same query finds the same, and most find something."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from shoal.demo.books import money

MOST_CARDS = 20
_STORES = ("Corner Larder", "Harbour Foods", "Greenway Market", "Pantry & Co", "Tidewater Grocers", "The Daily Basket")
_MAKERS = ("Meadow", "Old Mill", "Farmhouse", "Northern", "Sunny Hill", "Everyday", "Finest", "Blue Gate")
NOT_SOLD = "unicorn"
"""Who looks for one finds nothing."""
OUT_OF_ORDER = "teapot"
"""Who looks for one is told that the shop is one (418)."""
_SIZES = ("small", "regular", "large", "family pack", "organic", "value")


@dataclass(frozen=True, slots=True)
class Card:
    """One product as one store near the ZIP code sells it. `distance`: in miles."""

    title: str
    price: str
    store: str
    distance: str


def find_products(query: str, zipcode: str) -> list[Card]:
    """Between 6 and `MOST_CARDS` products for a query; which, where and for how much depends on the ZIP code.

    None for a unicorn.
    """
    if NOT_SOLD in query.lower():
        return []
    seed = hashlib.sha256(f"{query.strip().lower()}|{zipcode.strip()}".encode()).digest()
    count = 6 + seed[0] % (MOST_CARDS - 5)
    cards = []
    for index in range(count):
        draw = hashlib.sha256(seed + bytes([index])).digest()
        title = f"{_MAKERS[draw[0] % len(_MAKERS)]} {query.strip()}, {_SIZES[draw[1] % len(_SIZES)]}"
        price = money(80 + (draw[2] << 8 | draw[3]) % 900)
        store = draw[4] % len(_STORES)
        cards.append(Card(title, price, _STORES[store], f"{1 + seed[1 + store] % 60 / 10:.1f} mi"))
    return cards
