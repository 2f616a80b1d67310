"""What the shop sells. The same books at the same prices, every time."""

from __future__ import annotations

import re
from dataclasses import dataclass

PER_PAGE = 20
_SHELVES = {
    "Fiction": (
        "The Lighthouse Keeper's Ledger",
        "A Season of Small Boats",
        "Eleven Letters to Lisbon",
        "The Salt Road",
        "What the Tide Returned",
        "Mrs Abernathy Goes to Sea",
        "The Orchard at Low Water",
        "Nobody's Harbour",
        "A Map of Quiet Rooms",
        "The Last Ferry to Skye",
    ),
    "Mystery": (
        "Murder on the Mackerel Quay",
        "The Herring Conspiracy",
        "Death Wears Oilskins",
        "The Clockmaker's Third Alibi",
        "A Body in the Boathouse",
        "The Silent Foghorn",
        "Inspector Plaice Investigates",
        "The Vanishing Trawler",
        "Poison at the Regatta",
        "The Case of the Borrowed Anchor",
    ),
    "Science": (
        "How Fish Decide",
        "The Physics of Puddles",
        "A Short History of the Deep",
        "Swarm: Order Without Orders",
        "The Curious Life of Plankton",
        "Tides & Timetables",
        "What Eels Know",
        "Counting the Uncountable",
        "The Architecture of Shells",
        "Light Below 200 Metres",
    ),
    "Cooking": (
        "Forty Ways with Sardines",
        "The Honest Chowder Book",
        "Bread for Sailors",
        "Smoke, Salt & Retrying",
        "A Kitchen by the Pier",
        "Seaweed Suppers",
        "The Lemon and the Sole",
        "Pickles of the Northern Coast",
        "One Pan, Two Mackerel",
        "Puddings for Bad Weather",
    ),
    "Travel": (
        "Slow Trains to Cold Beaches",
        "Around Iceland in a Rowing Boat",
        "The Islands Nobody Mentions",
        "Postcards from the Baltic",
        "Walking the Hanseatic Coast",
        "A Night in Every Harbour",
        "The Café at the End of the Jetty",
        "Rain, Mostly: A Year in Bergen",
        "Where Rivers Give Up",
        "Lagoons for Beginners",
    ),
    "Children": (
        "Cod Can't Sleep",
        "The Octopus Who Wrote Eight Letters",
        "Goodnight, Little Shrimp",
        "Penny Puffin Finds a Hat",
        "The Very Polite Shark",
        "Ten Fish and One Umbrella",
        "Whale School",
        "The Crab Who Walked Straight",
        "Otto and the Enormous Net",
        "A Shoal of Questions",
    ),
}
_AUTHORS = (
    "Marta Lindqvist",
    "J. P. Whitlock",
    "Aoife Brennan",
    "Teodor Ilves",
    "Hana Okonkwo",
    "Samuel Pryce",
    "Inès Corbière",
)
_PRAISE = (
    "A book to read in one sitting, preferably near water.",
    "Patiently made, and funnier than it lets on.",
    "Everyone at the shop has lent it to somebody and never got it back.",
    "Begins like a weather report and ends like a storm.",
)


@dataclass(frozen=True, slots=True)
class Book:
    """One book. `number` counts from 1; `pence` is its price; `stock` may be 0."""

    number: int
    title: str
    author: str
    category: str
    pence: int
    stock: int
    description: str

    @property
    def slug(self) -> str:
        """The last part of its address."""
        return f"{re.sub(r'[^a-z0-9]+', '-', self.title.lower()).strip('-')}-{self.number}"

    @property
    def price(self) -> str:
        return money(self.pence)


def money(pence: int) -> str:
    """A price as the shop writes it."""
    return f"£{pence // 100}.{pence % 100:02}"


def _catalogue() -> tuple[Book, ...]:
    titles = [
        (title, shelf)
        for row in zip(*_SHELVES.values(), strict=True)
        for title, shelf in zip(row, _SHELVES, strict=True)
    ]
    return tuple(
        Book(
            number=number,
            title=title,
            author=_AUTHORS[number % len(_AUTHORS)],
            category=category,
            pence=499 + number * 367 % 2500,
            stock=number * 13 % 23,
            description=f"{title}, by {_AUTHORS[number % len(_AUTHORS)]}. {_PRAISE[number % len(_PRAISE)]}",
        )
        for number, (title, category) in enumerate(titles, start=1)
    )


BOOKS = _catalogue()
DEALS = BOOKS[4:60:20]
"""The books of the corner that limits its visitors, at two thirds of their price."""


def deal_price(book: Book) -> str:
    """What a book costs in the deals corner."""
    return money(book.pence * 2 // 3)
