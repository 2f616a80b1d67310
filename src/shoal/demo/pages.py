"""The HTML of the demo shop: plain, pleasant and easy to select from."""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING

from shoal.demo.books import BOOKS, DEALS, PER_PAGE, Book, deal_price

if TYPE_CHECKING:
    from collections.abc import Iterable

    from shoal.demo.grocer import Card

PER_API_PAGE = 4
LAST_PAGE = -(-len(BOOKS) // PER_PAGE)
_STYLE = """
body{font:16px/1.5 Georgia,serif;color:#233;background:#fbf9f4;max-width:60rem;margin:0 auto;padding:1rem}
a{color:#0b5c74}header{display:flex;gap:1.5rem;align-items:baseline;border-bottom:2px solid #0b5c74}
nav a{margin-right:1rem}.shelf{display:grid;grid-template-columns:repeat(auto-fill,minmax(10rem,1fr));gap:1.2rem}
article h3{font-size:1rem;margin:.3rem 0}.price{font-weight:bold;color:#8a3b12}.was{color:#888}
ul.pager{list-style:none;display:flex;gap:2rem;padding:0}img.cover{border-radius:4px;box-shadow:0 2px 6px #0003}
footer{margin-top:2rem;border-top:1px solid #ccc;font-size:.85rem}
"""


def _layout(title: str, content: str, head: str = "") -> str:
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style>{head}</head><body>\n"
        '<header><strong>The Shoal Bookshop</strong><nav><a class="home" href="/">Books</a>'
        '<a class="deals" href="/deals/">Deals</a><a class="search" href="/search">Groceries</a></nav></header>\n'
        f"<main>\n{content}\n</main>\n"
        '<footer>A demo shop: nothing here is for sale. <a class="private" href="/private/staff">Staff only</a>'
        "</footer></body></html>\n"
    )


def _shelf(books: Iterable[Book], folder: str) -> str:
    articles = "\n".join(
        f'<article class="book"><a href="/{folder}/{book.slug}"><img src="/covers/{book.number}.png" alt="" '
        f'width="120" height="160"></a><h3><a href="/{folder}/{book.slug}">{escape(book.title)}</a></h3>'
        f'<p class="price">{deal_price(book) if folder == "deals" else book.price}</p></article>'
        for book in books
    )
    return f'<div class="shelf">\n{articles}\n</div>'


def listing_page(page: int) -> str:
    """Page `page` of the listing, from 1 to `LAST_PAGE`."""
    steps = ""
    if page > 1:
        steps += f'<li class="previous"><a href="{"/" if page == 2 else f"/page/{page - 1}"}">previous</a></li>'
    steps += f'<li class="current">Page {page} of {LAST_PAGE}</li>'
    if page < LAST_PAGE:
        steps += f'<li class="next"><a href="/page/{page + 1}">next</a></li>'
    shelf = _shelf(BOOKS[(page - 1) * PER_PAGE : page * PER_PAGE], "books")
    return _layout(f"Books, page {page}", f'<h1>Books</h1>\n{shelf}\n<ul class="pager">{steps}</ul>')


def deals_page() -> str:
    """The entrance of the deals corner."""
    return _layout("Deals", f"<h1>Deals</h1><p>One visitor at a time, please.</p>\n{_shelf(DEALS, 'deals')}")


def book_page(book: Book, *, deal: bool = False) -> str:
    """The page of one book, at its usual price or as a deal."""
    price = f'<p class="price">{deal_price(book) if deal else book.price}</p>'
    was = f'<p class="was">was <del>{book.price}</del></p>' if deal else ""
    stock = f"In stock: {book.stock}" if book.stock else "Out of stock"
    return _layout(
        book.title,
        f'<article class="detail"><h1>{escape(book.title)}</h1>'
        f'<img class="cover" src="/covers/{book.number}.png" alt="Cover of {escape(book.title)}">'
        f'<p class="author">{escape(book.author)}</p>{price}{was}<p class="stock">{stock}</p>'
        f'<p class="category">{escape(book.category)}</p>'
        f'<div class="description"><p>{escape(book.description)}</p></div></article>',
        _for_machines(book, deal_price(book) if deal else book.price),
    )


def _for_machines(book: Book, price: str) -> str:
    """The book as JSON-LD and OpenGraph."""
    stock = "InStock" if book.stock else "OutOfStock"
    offer = {
        "@type": "Offer",
        "price": price[1:],
        "priceCurrency": "GBP",
        "availability": f"https://schema.org/{stock}",
    }
    product = {
        "@context": "https://schema.org",
        "@type": ["Product", "Book"],
        "name": book.title,
        "author": {"@type": "Person", "name": book.author},
        "offers": offer,
    }
    written = json.dumps(product).replace("<", "\\u003c")
    return (
        f'<script type="application/ld+json">{written}</script>'
        f'<meta property="og:title" content="{escape(book.title)}">'
        f'<meta property="og:image" content="/covers/{book.number}.png">'
    )


def books_as_json(category: str | None, page: int) -> dict[str, object]:
    """What the API says: one page of the books of a category (None = of all), and how many pages there are."""
    found = [book for book in BOOKS if category in (None, book.category)]
    shown = found[(page - 1) * PER_API_PAGE : page * PER_API_PAGE]
    books = [{"title": book.title, "price": {"amount": book.price[1:], "currency": "GBP"}} for book in shown]
    return {"books": books, "page": page, "pages": -(-len(found) // PER_API_PAGE)}


def search_page(query: str, zipcode: str, cards: Iterable[Card]) -> str:
    """What the grocer has near a ZIP code."""
    found = "\n".join(
        f'<article class="card"><h3 class="title">{escape(card.title)}</h3><p class="price">{escape(card.price)}</p>'
        f'<p class="store">{escape(card.store)}</p><p class="distance">{escape(card.distance)}</p></article>'
        for card in cards
    )
    if query and not found:
        found = '<p class="nothing">Nobody near you sells that.</p>'
    form = (
        f'<form action="/search"><input name="q" value="{escape(query)}" placeholder="milk">'
        f'<input name="zip" value="{escape(zipcode)}" placeholder="10001"><button>Search</button></form>'
    )
    heading = f"{escape(query)} near {escape(zipcode)}" if query else "Groceries"
    return _layout("Groceries", f'<h1>{heading}</h1>{form}\n<div class="shelf">{found}</div>')


def notice_page(title: str, text: str) -> str:
    """A page that only says something."""
    return _layout(title, f"<h1>{escape(title)}</h1><p>{escape(text)}</p>")


def sitemap(origin: str) -> str:
    """sitemap.xml: the listing and every book, under `origin` (no slash at its end)."""
    paths = ["/", *(f"/page/{page}" for page in range(2, LAST_PAGE + 1)), *(f"/books/{book.slug}" for book in BOOKS)]
    urls = "\n".join(f"<url><loc>{escape(origin + path)}</loc></url>" for path in paths)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{urls}\n</urlset>\n'
    )
