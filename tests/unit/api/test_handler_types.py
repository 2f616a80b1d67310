"""Handlers are `Callable[[Page], …]`: mypy says so of this file, and a scraper when it is given another function.

Each `type: ignore` here is a proof: mypy runs over the tests, and complains about one that hides nothing.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, assert_type

import pytest

from shoal import BadScraper, Page, Request, Scraper


def test_a_decorated_handler_keeps_its_type() -> None:
    books = Scraper("books")

    @books.page
    def listing(page: Page) -> Iterator[Request]:
        yield from page.follow("a")

    @books.page("detail")
    async def detail(page: Page) -> AsyncIterator[dict[str, str]]:
        yield {"url": page.url}

    same: Callable[[Page], Iterator[Request]] = listing
    assert_type(listing(Page.from_html("")), Iterator[Request])
    assert_type(detail(Page.from_html("")), AsyncIterator[dict[str, str]])
    assert books.handlers[None].function is same
    assert books.handlers["detail"].function is detail


def no_argument() -> None:
    """Takes nothing."""


def two_arguments(page: Page, more: int) -> None:
    """Takes too much."""


def required_by_name(page: Page, *, more: int) -> None:
    """Nobody would give it what it asks for by name."""


def another_class(request: Request) -> None:
    """Takes something else."""


def test_another_signature_is_a_type_error_and_a_sentence() -> None:
    complaint = "must take one argument, the page"
    with pytest.raises(BadScraper, match=complaint):
        Scraper("books").page(no_argument)  # type: ignore[type-var]
    with pytest.raises(BadScraper, match=complaint):
        Scraper("books").page(two_arguments)  # type: ignore[type-var]
    with pytest.raises(BadScraper, match=complaint):
        Scraper("books").page(required_by_name)  # type: ignore[type-var]
    with pytest.raises(BadScraper, match=complaint):
        Scraper("books").page(another_class)  # type: ignore[type-var]
    with pytest.raises(BadScraper, match=complaint):
        Scraper("books").page("detail")(another_class)  # type: ignore[type-var]
    with pytest.raises(BadScraper, match=r"@page is put on a function, not on 5"):
        Scraper("books").page(5)  # type: ignore[call-overload]


def test_what_takes_a_page_among_other_things_is_a_handler() -> None:
    def anything(page: object) -> None:
        """Takes a page, too."""

    def untyped(page: Any, *more: Any, **named: Any) -> None:
        """So does this."""

    books = Scraper("books")
    books.page(anything)
    books.page("untyped")(untyped)
    books.page("lambda")(lambda page: page.follow("a"))
    assert list(books.handlers) == [None, "untyped", "lambda"]
