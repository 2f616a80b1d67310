"""What a handler can ask of a page."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from multidict import CIMultiDict
from selectolax.lexbor import LexborNode

from shoal import Page, Request
from shoal.core.charsets.decoding import decode
from shoal.core.task import Kind
from shoal.core.url import NormalURL
from shoal.errors import BadScraper

SHOP = """<!doctype html><title>Shop</title>
<h1> The <b>shop</b>
</h1><p class=price>£3</p><p class=price>£4</p><input disabled alt="">
<ul><li><a href="/a">A</a><li><a href="b?x=1#f">B</a><li><a href="/a#again">A</a>
<li><a href="#top">up</a><li><a href="javascript:x()">x</a><li><a href="mailto:m@x.y">m</a><li><a href="">e</a></ul>
<img src="/i.png"><img src="data:image/gif;base64,R0" data-src="/lazy.png"><img data-src="/late.png">
"""


def shop(**options: Any) -> Any:
    return Page.from_html(SHOP, "https://shop.example/dir/", **options)


def urls(requests: Any) -> Any:
    return [request.url for request in requests]


def answer(body: Any, content_type: Any = None, url: Any = "https://x.example/") -> Any:
    return Page(url, body, headers=CIMultiDict({} if content_type is None else {"Content-Type": content_type}))


def test_a_page_is_what_came_and_what_was_asked() -> None:
    request = Request("https://shop.example/", to="detail", data={"n": 1}, group="milk")
    page = Page("https://shop.example/new", b"hi", status=404, headers={"A": "b"}, request=request, depth=3)
    assert (page.url, page.body, page.status, page.headers["A"]) == ("https://shop.example/new", b"hi", 404, "b")
    assert (page.request, page.data, page.group, page.depth) == (request, {"n": 1}, "milk", 3)
    assert page.unchanged is False
    assert repr(page) == "<Page 404 https://shop.example/new (2 bytes)>"


def test_a_page_by_hand_for_unit_tests() -> None:
    page = Page.from_html("<h1>é</h1>", data=1, group="g")
    assert (page.url, page.status, page.text("h1"), page.data, page.group) == (
        "https://example.test/",
        200,
        "é",
        1,
        "g",
    )
    assert page.request.url == page.url
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert Page.from_html("<h1>é</h1>".encode("latin-1")).text("h1") == "é"


def test_text_is_that_of_the_first_match_stripped_at_its_ends_only() -> None:
    assert shop().text("h1") == "The shop"
    assert shop().text(".price") == "£3"
    assert shop().text(".none") is None
    assert shop().html == SHOP


def test_attributes_that_are_missing_and_that_are_empty_are_told_apart() -> None:
    assert shop().attr("li a", "href") == "/a"
    assert shop().attr("input", "disabled") == ""
    assert shop().attr("input", "alt") == ""
    assert shop().attr("input", "href") is None
    assert shop().attr(".none", "href") is None


def test_css_gives_nodes_as_they_are() -> None:
    page = shop()
    assert [node.text() for node in page.css(".price")] == ["£3", "£4"]
    assert isinstance(page.css_first(".price"), LexborNode)
    assert page.css_first(".none") is None
    assert page.css(".none") == []


def test_xpath_finds_what_css_cannot_say() -> None:
    page = shop()
    assert page.xpath("//p[contains(., '4')]/text()").get() == "£4"
    assert answer(b"<a><B>x</B></a>", "application/xml").xpath("//B/text()").get() == "x"
    assert answer(b"<a><B>x</B></a>", "application/xhtml+xml").xpath("//b/text()").get() == "x"
    assert answer(b"<a><B>x</B></a>", "text/html").xpath("//b/text()").get() == "x"
    assert answer(b"<a><B>x</B></a>").xpath("//b/text()").get() == "x"
    assert answer("<p>é</p>".encode("latin-1"), "text/html; charset=latin-1").xpath("//p/text()").get() == "é"


@pytest.mark.parametrize("ask", [Page.css, Page.css_first, Page.text, Page.follow, Page.download, Page.links])
@pytest.mark.parametrize("selector", ["a[", "a >", "div:bogus", "h1, ", "\ud800"])
def test_a_selector_that_is_no_css_is_named(ask: Any, selector: Any) -> None:
    with pytest.raises(BadScraper) as wrong:
        ask(shop(), selector)
    assert str(wrong.value) == f"{selector!r} is not a valid CSS selector."


@pytest.mark.parametrize(
    ("selector", "hint"),
    [
        (
            "h1::text b",
            "::text and ::attr(name) stand at its end, and css, css_first, text, texts and follow take them.",
        ),
        ("//h1", "For XPath, ask page.xpath(…)."),
        (5, "5 is not a valid CSS selector."),
    ],
)
def test_a_selector_of_another_language_is_answered_with_what_to_ask_instead(selector: Any, hint: Any) -> None:
    with pytest.raises(BadScraper) as wrong:
        shop().css(selector)
    assert str(wrong.value).endswith(hint)


def test_an_xpath_that_is_none_is_named() -> None:
    with pytest.raises(BadScraper, match=r"'//\[' is not valid XPath"):
        shop().xpath("//[")


def test_json_is_read_and_what_is_none_is_shown() -> None:
    assert answer(b'{"a": [1, "\xc3\xa9"]}', "application/json").json() == {"a": [1, "é"]}
    assert answer(b'\xef\xbb\xbf{"a": 1}').json() == {"a": 1}
    assert answer('{"a": "é"}'.encode("utf-16"), "application/json").json() == {"a": "é"}
    assert answer(b'{"a": NaN}').json()["a"] != 0
    with pytest.raises(ValueError, match=r"https://x.example/ is not JSON .* it begins with '<html>no'"):
        answer(b"  \n<html>no").json()
    with pytest.raises(ValueError, match=r"\(nothing\)"):
        answer(b"").json()


def test_follow_gives_each_address_once_and_passes_over_what_leads_nowhere() -> None:
    page = shop()
    requests = page.follow("li a", to="detail")
    assert urls(requests) == ["https://shop.example/a", "https://shop.example/dir/b?x=1"]
    assert {request.to for request in requests} == {"detail"}
    assert {type(request.url) for request in requests} == {NormalURL}
    assert page.refused == []


def test_follow_hands_on_all_that_a_request_can_say() -> None:
    by_selector = shop().follow("li a", "detail", data=[1], group="g", priority=5, lane="bulk", ttl="9s", dedup=False)
    assert by_selector[0] == Request(
        "https://shop.example/a", "detail", [1], "g", 5, "bulk", "9s", "GET", None, None, dedup=False
    )
    told = shop().follow_url("/z", "detail", data=[1], group="g", priority=5, lane="priority", ttl=9.0, dedup=False)
    assert told == [
        Request("https://shop.example/z", "detail", [1], "g", 5, "priority", 9.0, "GET", None, None, dedup=False)
    ]


def test_broken_links_are_noted_with_the_reason() -> None:
    page = Page.from_html("<a href='htp://x'></a><a href='http://a:b/'></a><a>no</a><a href='/fine'></a>")
    assert urls(page.follow("a")) == ["https://example.test/fine"]
    assert sorted(page.refused) == [
        ("<a>", "it has no href or src"),
        ("htp://x", "its scheme 'htp' is not http or https"),
        ("http://a:b/", "its host or port is not valid"),
    ]


@pytest.mark.parametrize(
    ("target", "url"),
    [
        ("https://other.example/x", "https://other.example/x"),
        ("//other.example/x", "https://other.example/x"),
        ("/x", "https://shop.example/x"),
        ("?page=2", "https://shop.example/dir/?page=2"),
        ("./x", "https://shop.example/dir/x"),
        ("../x", "https://shop.example/x"),
        (["x", "https://shop.example/dir/x"], "https://shop.example/dir/x"),
    ],
)
def test_follow_url_takes_urls(target: Any, url: Any) -> None:
    assert urls(shop().follow_url(target)) == [url]
    assert urls(shop().download_url(target)) == [url]
    assert {request.kind for request in shop().download_url(target)} == {Kind.FILE}


def test_follow_takes_nodes_of_either_parser_and_iterables_of_them() -> None:
    page = shop()
    a, b = page.css("li a")[:2]
    assert urls(page.follow(a)) == ["https://shop.example/a"]
    assert urls(page.follow(node for node in (b, a))) == ["https://shop.example/dir/b?x=1", "https://shop.example/a"]
    assert urls(page.follow(page.xpath("//li/a")))[:1] == ["https://shop.example/a"]
    assert urls(page.follow(page.xpath("//li/a/@href")))[:1] == ["https://shop.example/a"]
    assert urls(page.follow(page.xpath("//li/a")[0])) == ["https://shop.example/a"]
    assert urls(page.follow([a, page.xpath("//a")[1]])) == [
        "https://shop.example/a",
        "https://shop.example/dir/b?x=1",
    ]


@pytest.mark.parametrize("target", [5, [5], None])
def test_follow_says_what_it_takes(target: Any) -> None:
    with pytest.raises(BadScraper, match=r"page.follow takes a CSS selector, a node or an iterable of nodes, not a"):
        shop().follow(target)
    with pytest.raises(BadScraper, match=r"page.follow_url takes a URL or an iterable of URLs, not a"):
        shop().follow_url(target)


@pytest.mark.parametrize(
    ("declared", "url"),
    [
        ("/other/", "https://example.test/other/x"),
        ("https://cdn.example/k/", "https://cdn.example/k/x"),
        ("htp://broken", "https://example.test/x"),
        ("", "https://example.test/x"),
    ],
)
def test_links_are_relative_to_the_base_that_a_page_declares(declared: Any, url: Any) -> None:
    page = Page.from_html(f"<head><base href='{declared}'></head><a href='x'>")
    assert page.links() == [url]


def test_after_a_redirect_links_are_relative_to_where_it_led() -> None:
    page = Page("https://x.example/new/", b"<a href=x>", request=Request(NormalURL("https://x.example/old/")))
    assert page.links() == ["https://x.example/new/x"]
    assert Page("https://x.example/", b"<a href=x>", request=page.request).links() == ["https://x.example/x"]


def test_a_page_that_is_no_html_declares_no_base() -> None:
    page = answer(b'{"html": "<base href=/other/>"}', "application/json")
    assert urls(page.follow_url(["x"])) == ["https://x.example/x"]


def test_links_are_plain_strings() -> None:
    links = shop().links()
    assert links == ["https://shop.example/a", "https://shop.example/dir/b?x=1"]
    assert {type(link) for link in links} == {str}
    assert shop().links("li:nth-child(2) a") == ["https://shop.example/dir/b?x=1"]


def test_downloads_are_files_in_their_own_lane_and_placeholders_are_looked_through() -> None:
    requests = shop().download("img")
    assert urls(requests) == [f"https://shop.example/{name}" for name in ("i.png", "lazy.png", "late.png")]
    assert {(request.kind, request.lane, request.data) for request in requests} == {(Kind.FILE, "files", None)}
    named = shop().download("li a", name="a.pdf", group="g")
    assert (named[0].url, named[0].data, named[0].group) == ("https://shop.example/a", {"name": "a.pdf"}, "g")
    only_placeholder = Page.from_html("<img src='data:x'>")
    assert only_placeholder.download("img") == []
    assert only_placeholder.refused == []


KINDS = st.sampled_from(
    [None, "text/html", "text/html; charset=utf-8", "text/html; charset=UTF-8", "text/html; charset=latin-1",
     "text/html; charset=nonsense", "text/html;charset=utf-16"]
)  # fmt: skip
HEADS = st.sampled_from(
    [b"", b"<meta charset=utf-8>", b"<meta charset='windows-1251'>", b'<META http-equiv=x content="a; charset=koi8-r">',
     b"<?xml version='1.0' encoding='iso-8859-1'?>", b"<?xml version='1.0'?>", b"\xef\xbb\xbf", b"\xff\xfe",
     b"<p>charset=koi8-r</p>"]
)  # fmt: skip
TAILS = st.binary(max_size=12) | st.text(max_size=8).map(lambda text: text.encode("utf-8", "replace"))


@given(KINDS, HEADS, TAILS)
@example("text/html; charset=utf-8", b"<meta charset='windows-1251'>", b"\xe9")
@example(None, b"<META CHARSET=KOI8-R>", "é".encode())
@example("TEXT/HTML; CHARSET=KOI8-R", b"", "é".encode())
def test_the_fast_way_to_text_agrees_with_the_careful_one(kind: Any, head: Any, tail: Any) -> None:
    page = answer(head + tail, kind)
    assert page.html == decode(page.body, page.headers)


def test_what_is_parsed_is_what_is_read() -> None:
    in_russian = "<meta charset='windows-1251'><p>Привет</p>".encode("windows-1251")
    assert answer(in_russian).text("p") == "Привет"
    assert answer(b"\xef\xbb\xbf<p>x</p>").css_first("body").text() == "x"
    assert answer("<p>é</p>".encode()).text("p") == "é"
    assert answer(b"<p>\xe9</p>", "text/html; charset=utf-8").text("p") is not None
