"""Credentials of a scraper: to which origins they go, and that they are not shown."""

from __future__ import annotations

from typing import Any

import pytest

from shoal import BasicAuth, DigestAuth, Request, Scraper
from shoal.errors import BadScraper

ME = BasicAuth("me", "secret")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"auth": None}, {}),
        ({"auth": ("me", "secret"), "start": "http://x.example:8080/a"}, {"http://x.example:8080": ME}),
        ({"auth": ME, "start": ["https://x.example/a", "https://x.example/b"]}, {"https://x.example": ME}),
        ({"auth": ["me", "secret"], "start": [Request("https://y.example/")]}, {"https://y.example": ME}),
        ({"auth": {"x.example": ("me", "secret")}}, {"https://x.example": ME}),
        (
            {"auth": {"http://x.example": ME, "Y.example:8443": DigestAuth("me", "secret")}},
            {"http://x.example": ME, "https://y.example:8443": DigestAuth("me", "secret")},
        ),
    ],
)
def test_where_they_go(options: dict[str, Any], expected: dict[str, Any]) -> None:
    assert Scraper("x", **options).auth == expected


@pytest.mark.parametrize(
    "options",
    [
        {"auth": "me:secret"},
        {"auth": ("me", "secret", "x"), "start": "https://x.example/"},
        {"auth": ("me", "secret")},
        {"auth": {"": ("me", "secret")}},
        {"auth": {"x.example": "secret"}},
        {"auth": {5: ("me", "secret")}},
        {"auth": ("m:e", "secret"), "start": "https://x.example/"},
        {"auth": ("me", 5), "start": "https://x.example/"},
    ],
)
def test_what_cannot_be_used_is_said_without_the_password(options: dict[str, Any]) -> None:
    with pytest.raises(BadScraper, match="Scraper 'x': auth must be a ") as wrong:
        Scraper("x", **options)
    assert "secret" not in str(wrong.value)


def test_passwords_are_not_shown() -> None:
    assert "secret" not in repr([ME, DigestAuth("me", "secret"), Scraper("x", auth={"x.example": ME})])
