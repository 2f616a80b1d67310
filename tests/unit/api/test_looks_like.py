"""Which texts are selectors and which are URLs, and what is said where one is given to the method of the other."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal import Page
from shoal.api.reading.looks_like import LONGEST, why_no_selector, why_no_url
from shoal.errors import BadScraper

SELECTORS = [
    "li.next a", "article h3 a", "a[href]", "a[href^='/x/']", 'a[href*="?page="]', "#next > a", ".next", "a.next",
    "a:nth-child(2)", "a:not([href^='#'])", "a:hover", "data:first-child", "ul>li+li~li", "a, img", "LI A", "a\n b",
    "li:has(> a)", ":is(h1, h2) a", 'a:lexbor-contains("x/y")', 'a[data-x="1/2"]', "[href]", "a.b.c",
    "img[src$='.png']",    "td:nth-of-type(2) > a.link", r".w-1\/2", "nav a.deals", "div.card", "* a",
]  # fmt: skip
URLS = [
    "page-2.html", "index.php", "index.html#top", "/a/b", "https://x.example/", "HTTP://x.example", "//cdn.example/x",
    "//localhost/x", "./x", "../x", "..", ".", "?page=2", "x?y=1", "about", "books", "page-2", "product-card.html",
    "my-shop.com", "www.example.com", "shop.example", "mailto:me@x.example", "javascript:void(0)", "2.html", "2024",
    "a%20b", "a=1&b=2", "p/1", "map.html", "video.mp4", "main.js", "search.do", "my page.html", "/html/body/a",
    "page.php?x=a[b]", "a/b[1]", "book.title", "data.json",
]  # fmt: skip
XPATHS = ["//a/@href", "//a", "//li/a[1]", ".//a", "(//a)[1]", "//*[@id='x']", "//a[text()='x']", "/html/body//a/@href"]
EITHER = ["a", "li", "search", "video", "a.pdf", "img.png", "#top", "about-us", "amp-img", "product-card.featured", "*"]
"""Each method takes them for what it takes."""


@pytest.mark.parametrize("text", SELECTORS)
def test_a_selector_is_one_and_no_url(text: str) -> None:
    page = Page.from_html("")
    assert [*page.follow(text), *page.download(text), *page.links(text)] == []
    for method in ("follow", "download"):
        with pytest.raises(BadScraper) as wrong:
            getattr(page, f"{method}_url")(text)
        assert str(wrong.value).startswith(
            f"page.{method}_url takes URLs, and {text!r} looks like a CSS selector; use page.{method}({text!r}), "
        )


@pytest.mark.parametrize("text", URLS)
def test_a_url_is_one_and_no_selector(text: str) -> None:
    page = Page.from_html("")
    leads = 0 if text.startswith(("mailto:", "javascript:")) else 1
    assert len(page.follow_url(text)) == len(page.download_url(text)) == leads
    for method in ("follow", "download"):
        with pytest.raises(BadScraper) as wrong:
            getattr(page, method)(text)
        assert str(wrong.value) == (
            f"page.{method} takes a CSS selector or nodes, and {text!r} looks like a URL; "
            f"use page.{method}_url({text!r}), or page.{method}(page.css(…)) if it is a selector."
        )
    with pytest.raises(BadScraper, match=r"page\.links takes a CSS selector, and "):
        page.links(text)


@pytest.mark.parametrize("method", ["follow", "download", "follow_url", "download_url", "links"])
@pytest.mark.parametrize("text", XPATHS)
def test_xpath_is_neither(method: str, text: str) -> None:
    with pytest.raises(BadScraper) as wrong:
        getattr(Page.from_html(""), method)(text)
    assert str(wrong.value).startswith(f"page.{method} was given {text!r}, which looks like XPath; use page.")


@pytest.mark.parametrize("text", EITHER)
def test_what_may_be_either_is_what_the_method_takes(text: str) -> None:
    page = Page.from_html("")
    assert page.follow(text) == []
    assert len(page.follow_url(text)) == (0 if text[0] == "#" else 1)


def test_a_page_that_has_the_element_is_followed_by_nodes_whatever_its_name() -> None:
    page = Page.from_html("<books href='/x'>")
    assert [request.url for request in page.follow(page.css("books"))] == ["https://example.test/x"]


@pytest.mark.parametrize("method", ["follow", "download"])
def test_texts_in_a_list_are_urls_and_nodes_are_none(method: str) -> None:
    page = Page.from_html("<a href=x>")
    with pytest.raises(BadScraper, match=f"a list with the text 'li a' is for page.{method}_url, which takes URLs"):
        getattr(page, method)(["li a"])
    assert [r.url for r in getattr(page, f"{method}_url")(["li.next a"])] == ["https://example.test/li.next%20a"]
    nodes: list[Any] = [page.css("a")[0], page.css("a"), page.xpath("//a"), page.xpath("//a/@href")[0]]
    for given_as in nodes:
        with pytest.raises(
            BadScraper, match=rf"page.{method}_url takes URLs; for a node there is page.{method}\(node\)"
        ):
            getattr(page, f"{method}_url")(given_as)


@given(st.text(st.sampled_from("a/.-[]()'\"@:?#1 >*\\"), max_size=LONGEST + 5))
def test_no_text_is_too_hard_and_none_is_the_other_kind_for_both(text: str) -> None:
    answers = (why_no_selector(text), why_no_url(text))
    assert answers in {(None, None), ("a URL", None), (None, "a CSS selector"), ("XPath", "XPath")}
