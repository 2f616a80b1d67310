"""What `follow` takes besides a selector; where a page leads by itself; options about answers."""

from __future__ import annotations

import re
from typing import Any

import pytest

from shoal import Page, Request, Scraper
from shoal.api.reading.meta_refresh import refresh_url
from shoal.errors import BadScraper

LINKS = '<a href="/a/1">1</a><a href="/b/2?sort=x">2</a><a href="https://y.example/a/3">3</a>'


def page(html: str = LINKS) -> Page:
    return Page.from_html(html, "https://x.example/")


def urls(requests: list[Request]) -> list[str]:
    return [request.url.removeprefix("https://x.example") for request in requests]


@pytest.mark.parametrize(
    ("options", "followed"),
    [
        ({"allow": "x.example"}, ["/a/1", "/b/2?sort=x"]),
        ({"deny": "x.example/b"}, ["/a/1", "https://y.example/a/3"]),
        ({"allow": ["x.example"], "deny": [re.compile("sort=")]}, ["/a/1"]),
        ({"allow": []}, []),
        ({"deny": []}, ["/a/1", "/b/2?sort=x", "https://y.example/a/3"]),
    ],
)
def test_only_some_of_the_links_are_followed(options: Any, followed: list[str]) -> None:
    assert urls(page().follow("a", **options)) == followed
    assert urls(page().follow_url(page().links(), **options)) == followed
    assert page().refused == []


@pytest.mark.parametrize("option", ["allow", "deny"])
@pytest.mark.parametrize("value", [5, [5], ["a b"]])
def test_an_entry_that_cannot_be_used_is_named_with_its_option(option: str, value: Any) -> None:
    options = {option: value}
    with pytest.raises(BadScraper, match=f"^{option} (takes|has) "):
        page().follow("a", **options)
    with pytest.raises(BadScraper, match=f"^{option} (takes|has) "):
        Scraper("x", **options)


def test_all_that_a_request_can_say_is_said_by_follow() -> None:
    said: dict[str, Any] = {
        "data": 1, "group": "g", "priority": 2, "lane": "bulk", "ttl": 3, "dedup": False, "every": 4,
        "headers": {"A": "b"}, "cookies": {"c": "d"}, "timeout": 5, "accept": [404], "redirects": False,
        "method": "PUT", "json": {"e": 1},
    }  # fmt: skip
    [request, *_] = page().follow("a", "detail", **said)
    assert request == Request("https://x.example/a/1", "detail", **said)
    [request] = page().follow_url("/x", form={"a": 1}, body=None)
    assert request == Request("https://x.example/x", form={"a": 1})
    with pytest.raises(TypeError):
        page().follow("a", colour="red")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("content", "leads_to"),
    [
        ("0; url=/next", "https://x.example/next"),
        ("0;URL='/next'", "https://x.example/next"),
        ('5, "/next"junk', "https://x.example/next"),
        ("0 /next", "https://x.example/next"),
        ("1.5; url = /a b", "https://x.example/a%20b"),
        ("0; url=/", None),
        ("0", None),
        ("0; url=", None),
        ("11; url=/next", None),
        ("x; url=/next", None),
        ("0; url=javascript:x", None),
        ("-1; url=/next", None),
    ],
)
def test_where_a_page_sends_its_visitors(content: str, leads_to: str | None) -> None:
    quoted = content.replace('"', "&quot;")
    assert refresh_url(page(f'<meta http-equiv="Refresh" content="{quoted}"><p>x')) == leads_to


def test_what_is_for_those_without_scripts_leads_nowhere() -> None:
    assert refresh_url(page("<noscript><meta http-equiv=refresh content='0; url=/next'></noscript>")) is None


def test_it_is_relative_to_the_base() -> None:
    html = "<base href=/b/><meta http-equiv=refresh content='0; url=next'>"
    assert refresh_url(page(html)) == "https://x.example/b/next"


@pytest.mark.parametrize(
    "options",
    [
        {"accept": [200]},
        {"accept": ["404"]},
        {"accept": [429]},
        {"accept": [True]},
        {"redirects": "no"},
        {"meta_refresh": 1},
    ],
)
def test_options_about_answers_that_cannot_be_used(options: Any) -> None:
    with pytest.raises(BadScraper, match=f"^Scraper 'x': {next(iter(options))} must be "):
        Scraper("x", **options)


def test_a_handler_cannot_accept_what_a_scraper_cannot() -> None:
    with pytest.raises(BadScraper, match="accept must be a list of statuses"):
        Scraper("x").page("detail", accept=[429])
    scraper = Scraper("x", accept=404)  # type: ignore[arg-type]
    assert scraper.accept == (404,)
