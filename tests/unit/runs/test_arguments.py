"""`-a name=value`: an input, word by word."""

from __future__ import annotations

import json

import pytest
from pydantic import BaseModel

from shoal.api.scraper import Scraper
from shoal.errors import BadScraper, UsageError
from shoal.runs.arguments import input_with


class Cart(BaseModel):
    items: list[str]
    zipcode: str
    most: int = 1
    extra: list[int] | None = None


def test_values_become_what_the_model_wants() -> None:
    scraper = Scraper("cart", input=Cart)
    raw = input_with(None, ["items=milk", "zipcode=01067", "most=3", "extra=[1, 2]"], Cart)
    assert scraper.parse_input(raw) == Cart(items=["milk"], zipcode="01067", most=3, extra=[1, 2])


def test_a_name_given_twice_is_a_list_and_goes_over_the_input() -> None:
    raw = input_with(b'{"items": ["x"], "zipcode": "1"}', ["items=milk", "items=[bread"], Cart)
    assert raw is not None
    assert json.loads(raw) == {"items": ["milk", "[bread"], "zipcode": "1"}


def test_without_arguments_the_input_stays_as_it_is() -> None:
    assert input_with(None, [], Cart) is None
    assert input_with(b"what ever", [], None) == b"what ever"


@pytest.mark.parametrize("argument", ["milk", "=milk", " =x"])
def test_what_is_no_argument_is_one_sentence(argument: str) -> None:
    with pytest.raises(UsageError, match="is no argument; write it as -a name=value"):
        input_with(None, [argument], None)


def test_an_input_that_is_no_object_cannot_have_arguments() -> None:
    with pytest.raises(UsageError, match="With -a, the input must be a JSON object"):
        input_with(b"[1]", ["a=1"], None)


def test_a_scraper_without_input_says_so() -> None:
    with pytest.raises(BadScraper, match="takes no input"):
        Scraper("books").parse_input(input_with(None, ["a=1"], None))
