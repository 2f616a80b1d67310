"""What every store can hold: limits and cleaning, as values."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.storable import (
    MAX_DEPTH,
    MAX_HEADERS,
    MAX_HOST,
    MAX_NAME,
    MAX_TEXT,
    cleaned,
    findable,
    has_nul,
    headers_problem,
    host_problem,
    is_method,
    is_storable,
    json_problem,
    text_problem,
)
from shoal.core.url import Resolver, normalise
from shoal.errors import BadURL

TEXT = st.text(st.characters(exclude_categories=()))
"""Any text at all, with NUL and halves of characters."""

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(TEXT)
def test_what_is_storable_can_be_sent_to_every_store(text: str) -> None:
    if is_storable(text):
        assert "\0" not in text.encode().decode()
        assert findable(text) == text
    else:
        assert findable(text) == ""
        assert text_problem(text) is not None


@given(TEXT)
def test_what_was_cleaned_is_storable_and_what_needed_no_cleaning_is_as_it_was(text: str) -> None:
    assert is_storable(cleaned(text))
    assert cleaned(cleaned(text)) == cleaned(text)
    if is_storable(text) and len(text) <= MAX_TEXT:
        assert cleaned(text) == text


def test_a_text_that_cannot_be_shown_is_told_as_one() -> None:
    class Rude:
        def __str__(self) -> str:
            raise ValueError

    assert cleaned(Rude()) == "<Rude that cannot be shown>"
    assert len(cleaned("x" * 5000)) == MAX_TEXT + 1


def test_a_name_has_a_length() -> None:
    assert text_problem("x" * MAX_NAME) is None
    assert text_problem("x" * (MAX_NAME + 1)) == "it is 513 characters long and 512 is the limit"


@given(JSON)
def test_a_nul_is_found_wherever_it_is_and_nowhere_else(value: Any) -> None:
    assert has_nul(msgspec.json.encode(value)) == ("\0" in _texts(value))


def _texts(value: Any) -> str:
    if isinstance(value, dict):
        return "".join(map(_texts, [*value, *value.values()]))
    return "".join(map(_texts, value)) if isinstance(value, list) else value if isinstance(value, str) else ""


def test_a_backslash_before_u0000_is_no_nul() -> None:
    assert not has_nul(msgspec.json.encode(["\\u0000", "\\\\u0000"]))
    assert has_nul(msgspec.json.encode(["\\\0"]))


def test_depth_is_counted_outside_of_texts() -> None:
    def nested(levels: int) -> bytes:
        return b"[" * levels + b'"[[{{\\"[["' + b"]" * levels

    assert json_problem(nested(MAX_DEPTH), 10_000) is None
    assert json_problem(nested(MAX_DEPTH + 1), 10_000) == "it is nested deeper than 100 levels"
    assert json_problem(b"[" + b"[]," * 500 + b"[]]", 10_000) is None, "long is not deep"
    assert json_problem(b'"' + b"x" * 99 + b'"', 100) == "it has 101 bytes as JSON and 100 is the limit"


@pytest.mark.parametrize(
    ("headers", "fine"),
    [
        ({"X-Token": "a\tb é"}, True),
        ({"X-Token": "a\r\nCookie: b"}, False),
        ({"X-Token": "\0"}, False),
        ({"X-Token": "\ud800"}, False),
        ({"X Token": "a"}, False),
        ({"": "a"}, False),
        ({"A": "x" * MAX_HEADERS}, False),
    ],
)
def test_headers(headers: dict[str, str], fine: bool) -> None:
    assert (headers_problem(headers) is None) is fine


def test_a_method_is_one_word() -> None:
    assert is_method("PATCH")
    assert not is_method("GET / HTTP/1.1\r\n")


def test_a_host_has_room_in_the_name_service() -> None:
    longest = ".".join(["a" * 61] * 4) + ".abcd"
    assert len(longest) == MAX_HOST - 1
    assert host_problem(longest) is None
    assert host_problem(f"{longest}ef") == "its host is 254 characters long and 253 is the limit"
    assert host_problem("a" * 64 + ".example") == "a part of its host is longer than 63 characters"


@pytest.mark.parametrize("host", ["a." * 2300 + "example", "a" * 64 + ".example"])
def test_no_url_has_another_host(host: str) -> None:
    for spelled in (f"http://{host}/", f"https://user:secret@{host}:8443/x"):
        with pytest.raises(BadURL, match="host"):
            normalise(spelled)
        with pytest.raises(BadURL, match="host"):
            Resolver("http://shop.example/").join(spelled)
