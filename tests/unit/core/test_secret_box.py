"""What is sealed opens with its key, for its purpose, and in no other way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.secrets.box import NoKeys, SecretBox, is_sealed, is_secret_header
from shoal.errors import CannotUnseal


def box(*keys: str) -> SecretBox:
    return SecretBox(lambda: keys)


OURS = box("a key that is long enough to be one")
TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(TEXT, st.sampled_from(["header cookie", "exit"]))
def test_what_is_sealed_opens(text: str, purpose: str) -> None:
    sealed = OURS.seal(text, purpose)
    assert is_sealed(sealed)
    assert sealed.isascii()
    assert OURS.open(sealed, purpose) == (OURS.open(text, purpose) if is_sealed(text) else text)
    assert OURS.seal(sealed, purpose) == sealed, "not twice"
    assert OURS.seal(text, purpose) == sealed, "what is sealed can be compared"


def test_another_purpose_another_key_a_changed_text() -> None:
    sealed = OURS.seal("sid=1", "header cookie")
    changed = sealed[:-3] + ("A" if sealed[-3] != "A" else "B") + sealed[-2:]
    for who, text, purpose in ((OURS, sealed, "exit"), (OURS, changed, "header cookie"), (OURS, sealed[:-8], "exit")):
        with pytest.raises(CannotUnseal, match=r"changed|another use"):
            who.open(text, purpose)
    for other in (box("another key that is long enough too"), NoKeys()):
        with pytest.raises(CannotUnseal, match="SHOAL_SECRET_KEY") as told:
            other.open(sealed, "header cookie")
        assert told.value.key in sealed


def test_a_key_is_changed_while_both_are_known() -> None:
    old, new = box("k" * 32), box("n" * 32)
    both = box("n" * 32, "k" * 32)
    sealed = old.seal("sid=1", "header cookie")
    assert both.open(sealed, "header cookie") == "sid=1"
    assert both.seal("sid=1", "header cookie") == new.seal("sid=1", "header cookie")
    assert new.open(both.reseal(sealed, "header cookie"), "header cookie") == "sid=1"


def test_secret_headers_are_sealed_and_others_left_as_they_are() -> None:
    plain = {"Accept": "text/html", "Accept-Language": "de", "Content-Type": "a/b", "webhook-id": "1", "shoal-key": "k"}
    assert OURS.seal_headers(plain) is plain
    assert OURS.open_headers(plain) is plain
    secret = {"AUTHORIZATION": "Bearer x", "Cookie": "a=1", "X-Api-Key": "k", "X-CSRF-Token": "t", "X-Auth": "u"}
    sealed = OURS.seal_headers(plain | secret)
    assert all(is_sealed(sealed[name]) for name in secret)
    assert {name: sealed[name] for name in plain} == plain
    assert OURS.seal_headers(sealed) is sealed
    assert OURS.open_headers(sealed) == plain | secret
    assert NoKeys().seal_headers(secret) == secret


def test_names_of_secret_headers() -> None:
    assert is_secret_header("Proxy-Authorization")
    assert not is_secret_header("Author")


def test_nothing_is_looked_for_before_it_is_needed() -> None:
    asked: list[int] = []

    def keys() -> tuple[str, ...]:
        asked.append(1)
        return ("k" * 32,)

    lazy = SecretBox(keys)
    lazy.open("plain", "exit")
    lazy.seal_headers({"Accept": "x"})
    assert asked == []
    lazy.seal("x", "exit")
    lazy.seal("y", "exit")
    assert asked == [1]
