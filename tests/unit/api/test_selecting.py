"""Selecting from a page and from its elements."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parsel import Selector
from selectolax.lexbor import LexborNode

from shoal import Element, Page
from shoal.errors import BadScraper

SHOP = """<!doctype html><base href="/shop/"><h1>The <b>big</b> shop</h1>
<article id=1><h3>Milk</h3><p class=price> £3.50 </p><a href="milk?a=1&b=2" title="">more</a><i data-n="1">one</i>
</article>
<article id=2><h3>Bread</h3><p class=price>£4</p><a href="/bread">more</a></article>
<script id=state type="application/json">{"cart": {"lines": [{"sku": "a"}, {"sku": "b"}, {}]}}</script>
"""


def shop() -> Page:
    return Page.from_html(SHOP, "https://x.example/dir/page")


class TestPseudoElements:
    def test_text_is_what_stands_directly_in_each_match_and_with_a_space_before_it_all_that_is_in_it(self) -> None:
        assert shop().css("h1::text") == ["The ", " shop"]
        assert shop().css("h1 ::text") == ["The ", "big", " shop"]
        assert shop().css("h3::text") == ["Milk", "Bread"]
        assert shop().css_first("h3::text") == "Milk"
        assert shop().css_first("h4::text") is None

    def test_attributes_of_those_that_have_them(self) -> None:
        assert shop().css("a::attr(href)") == ["milk?a=1&b=2", "/bread"]
        assert shop().css("a::attr( title )") == [""]
        assert shop().css("article ::attr(data-n)") == ["1"]

    def test_alternatives_that_want_the_same(self) -> None:
        assert shop().css("b::text, h3::text") == ["big", "Milk", "Bread"]
        assert shop().css('a[href="/bread"]::text, :is(b, i)::text') == ["big", "one", "more"]

    @pytest.mark.parametrize("selector", ["h1::text, a::attr(href)", "h1, h3::text", "a::attr(x), a::attr(y)"])
    def test_alternatives_that_want_different_things_are_refused_in_a_sentence(self, selector: str) -> None:
        with pytest.raises(BadScraper, match="ask for each on its own"):
            shop().css(selector)

    @pytest.mark.parametrize("selector", ["h1::text b", "h1::first-line", "h1::attr", "h1::attr()", "::"])
    def test_others_and_elsewhere_are_no_selectors(self, selector: str) -> None:
        with pytest.raises(BadScraper, match="not a valid CSS selector"):
            shop().css(selector)

    def test_colons_inside_of_quotes_are_no_pseudo_elements(self) -> None:
        page = Page.from_html('<a title="x::text">1</a>')
        assert [node.text() for node in page.css('a[title="x::text"]')] == ["1"]

    def test_text_texts_and_follow_take_them(self) -> None:
        assert shop().text("h1::text") == "The"
        assert shop().texts(".price::text") == ["£3.50", "£4"]
        assert [request.url for request in shop().follow("a::attr(href)")] == [
            "https://x.example/shop/milk?a=1&b=2",
            "https://x.example/bread",
        ]

    @given(
        st.recursive(
            st.sampled_from(["one", " two ", "<br>", "&amp;"]),
            lambda inner: st.builds(
                "<{0}>{1}</{0}>".format,
                st.sampled_from(["div", "b", "span"]),
                st.lists(inner, max_size=4).map("".join),
            ),
            max_leaves=12,
        ),
        st.sampled_from(["div::text", "b::text", "div ::text", "div::text, b::text", "span b::text"]),
    )
    @settings(max_examples=60, deadline=None)
    def test_they_mean_what_they_mean_in_parsel(self, html: str, selector: str) -> None:
        html = f"<!doctype html><html><body>{html}</body></html>"
        assert sorted(Page.from_html(html).css(selector)) == sorted(Selector(html).css(selector).getall())


class TestLists:
    def test_texts_are_those_of_all_matches_stripped(self) -> None:
        assert shop().texts("h1, .price, script") == ["The big shop", "£3.50", "£4", shop().text("script")]
        assert Page.from_html("<p></p><p>x").texts("p") == ["", "x"]
        assert shop().texts(".none") == []

    def test_attrs_are_those_of_all_matches_that_have_it(self) -> None:
        assert shop().attrs("article", "id") == ["1", "2"]
        assert shop().attrs("a", "title") == [""]

    def test_re_gives_groups_or_the_whole_match(self) -> None:
        assert shop().css(".price::text").re(r"£([\d.]+)") == ["3.50", "4"]
        assert shop().css(".price").re(r"£[\d.]+") == ["£3.50", "£4"]
        assert shop().texts(".price").re(r"(\d)(?:\.(\d+))?") == ["3", "50", "4", ""]
        assert shop().attrs("a", "href").re_first(re.compile("B", re.IGNORECASE)) == "b"
        assert shop().css("a").re_first("none") is None

    @pytest.mark.parametrize("pattern", ["(", 5])
    def test_what_is_no_pattern_is_said_in_a_sentence(self, pattern: Any) -> None:
        with pytest.raises(BadScraper, match="is not a valid regular expression"):
            shop().css("a").re(pattern)

    def test_a_pattern_is_held_against_a_bounded_text_and_gives_a_bounded_list(self) -> None:
        page = Page.from_html(f"<p>{'a' * 1_000_000}b</p>")
        assert page.css("p::text").re("b") == []
        assert len(page.css("p::text").re("a")) == 100_000


class TestElements:
    def test_they_are_asked_like_a_page_and_find_what_is_inside(self) -> None:
        [milk, bread] = shop().select("article")
        assert (milk.text("h3"), bread.text("h3"), bread.text("i")) == ("Milk", "Bread", None)
        assert (milk.attr("a", "href"), milk.texts("p"), milk.attrs("i", "data-n")) == (
            "milk?a=1&b=2",
            ["£3.50"],
            ["1"],
        )
        assert milk.css(".price::text").re_first(r"\d+") == "3"
        assert [inner.text() for inner in milk.select("h3, a")] == ["Milk", "more"]
        assert milk.select_first("h3") is not None
        assert milk.select_first("h4") is None

    def test_they_do_not_find_themselves(self) -> None:
        [outer, inner] = Page.from_html("<div id=a>x<div id=b>y</div></div>").select("div")
        assert [node.id for node in outer.css("div")] == ["b"]
        assert inner.css_first("div") is None

    def test_what_they_are_themselves(self) -> None:
        element = shop().select_first("i")
        assert isinstance(element, Element)
        assert (element.text(), element.attributes, element.html) == ("one", {"data-n": "1"}, '<i data-n="1">one</i>')
        assert (element.css("::text"), element.css("::attr(data-n)")) == (["one"], ["1"])
        assert isinstance(element.node, LexborNode)
        assert repr(element) == "<Element i of https://x.example/dir/page>"

    def test_they_can_be_followed(self) -> None:
        page = shop()
        [milk, bread] = page.select("article > a")
        assert [r.url for r in page.follow(milk)] == ["https://x.example/shop/milk?a=1&b=2"]
        assert [r.url for r in page.follow([milk, bread.node])][1] == "https://x.example/bread"


class TestJsonByPath:
    def test_a_path_leads_into_the_body(self) -> None:
        page = Page("https://x.example/", b'{"a": {"b": [{"c": 1}, {"c": 2}, {}]}, "odd key": 3}')
        assert page.json("a.b[*].c") == [1, 2]
        assert page.json("a.b[0].c") == 1
        assert page.json('"odd key"') == 3
        assert page.json("a.none.c") is None
        assert page.json()["a"]["b"][0] == {"c": 1}

    def test_and_into_the_text_of_an_element(self) -> None:
        script = shop().select_first("#state")
        assert script is not None
        assert script.json("cart.lines[*].sku") == ["a", "b"]
        assert script.json() == {"cart": {"lines": [{"sku": "a"}, {"sku": "b"}, {}]}}
        heading = shop().select_first("h1")
        assert heading is not None
        with pytest.raises(ValueError, match=r"<h1> of https://x\.example/dir/page is not JSON"):
            heading.json()

    @pytest.mark.parametrize("path", ["$.a", "a..b", "a[", 5])
    def test_what_is_no_path_is_said_in_a_sentence(self, path: Any) -> None:
        with pytest.raises(BadScraper, match="is not a path into JSON"):
            Page("https://x.example/", b"{}").json(path)

    def test_a_function_that_cannot_do_with_what_is_there(self) -> None:
        with pytest.raises(ValueError, match="is not such that"):
            Page("https://x.example/", b'{"a": 1}').json("length(a)")

    def test_a_body_that_is_nested_without_end_is_an_error_of_one_sentence(self) -> None:
        with pytest.raises(ValueError, match="nested too deeply"):
            Page("https://x.example/", b"[" * 100_000 + b"]" * 100_000).json()


def test_url_for_makes_references_absolute() -> None:
    page = shop()
    assert page.url_for("a b?c#d") == "https://x.example/shop/a%20b?c"
    assert page.url_for(page.attr("a", "href")) == "https://x.example/shop/milk?a=1&b=2"
    assert [page.url_for(nothing) for nothing in (None, "mailto:a@b.c", "http://[")] == [None, None, None]
    assert page.refused == []
