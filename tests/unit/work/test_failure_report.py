"""Which line of whose code an exception came from."""

import json
from typing import Any

import pytest

from shoal import Scraper
from shoal.work.task.failure_report import is_of_a_library, traceback_of, where


def test_where_is_the_innermost_line_of_the_users_code_and_of_the_handler() -> None:
    books = Scraper("books")

    def price(text: Any) -> Any:
        return float(text)

    @books.page
    def listing(page: Any) -> Any:
        return sorted([1], key=lambda _: price(page))

    with pytest.raises(ValueError, match="could not convert") as failed:
        listing("no")
    line, of_def = price.__code__.co_firstlineno + 1, listing.__code__.co_firstlineno + 1
    handler = books.handler(None)
    assert where(failed.value, handler) == (
        f"test_failure_report.py:{line} in price, from test_failure_report.py:{of_def + 1} in listing"
    )
    never_called = ValueError()
    assert where(never_called, handler) == f"test_failure_report.py:{of_def} in listing"
    assert traceback_of(never_called, handler) is None


def test_a_library_is_not_the_place_but_is_in_the_traceback() -> None:
    books = Scraper("books")

    @books.page
    def listing(page: Any) -> Any:
        return json.loads(page)

    with pytest.raises(ValueError, match="Expecting value") as failed:
        listing("no")
    line = listing.__code__.co_firstlineno + 2
    assert where(failed.value, books.handler(None)) == f"test_failure_report.py:{line} in listing"
    shown = traceback_of(failed.value, books.handler(None))
    assert shown is not None
    assert "decoder.py" in shown


@pytest.mark.parametrize(
    ("file", "is_one"),
    [
        (json.__file__, True),
        (pytest.__file__, True),
        ("<frozen importlib>", True),
        ("<string>", False),
        (__file__, False),
    ],
)
def test_what_a_library_is(file: str, is_one: bool) -> None:
    assert is_of_a_library(file) is is_one
