"""Pages that a parser would take very long for are not parsed, and ordinary ones are, however large."""

from __future__ import annotations

import pytest

from shoal.api.page import Page
from shoal.core.html.bounds import check_bounds
from shoal.core.html.content import content_hash
from shoal.errors import PageTooComplex
from shoal.testing.hostile_site import COMPLEX_PAGES

HTML = {"Content-Type": "text/html; charset=utf-8"}

LARGE = {
    "paragraphs": "<p>x" * 30_000,
    "breaks": "x<br>" * 30_000,
    "links": "<a class=x href=y>z</a>" * 20_000,
    "icons": "<li><i class='icon star'></i> <strong class=a>b</strong>" * 5000,
    "table": f"<table>{'<tr><td>x<td>y' * 15_000}</table>",
    "table with fonts": f"<table>{'<tr><td><font size=2>x</font>' * 5000}</table>",
    "selects": "<select><option>x</option><option>y</option></select>" * 10_000,
    "script": f"<p>x<script>{'if (a<b) a = b; ' * 20_000}</script>",
    "data": f"<img src='data:image/png;base64,{'A' * 200_000}'>",
    "prose": "word " * 100_000,
    "misnested": "<b class=x><i class=y>z</b></i>" * 10_000,
}


@pytest.mark.parametrize("kind", COMPLEX_PAGES)
def test_a_page_that_is_quadratic_to_parse_is_refused_before(kind: str) -> None:
    page = Page.from_html(COMPLEX_PAGES[kind]())
    for look in (lambda: page.css("p"), page.links, lambda: page.xpath("//p")):
        with pytest.raises(PageTooComplex, match=r"too complex to be parsed: .*[0-9]"):
            look()


@pytest.mark.parametrize("kind", COMPLEX_PAGES)
def test_spelling_and_charset_do_not_hide_it(kind: str) -> None:
    html = COMPLEX_PAGES[kind]().upper()
    with pytest.raises(PageTooComplex):
        check_bounds(html)
    latin = Page("https://a.test/", b"\xe9" + html.encode(), headers={"Content-Type": "text/html; charset=latin-1"})
    with pytest.raises(PageTooComplex):
        latin.css("p")


@pytest.mark.parametrize("kind", LARGE)
def test_a_large_page_is_parsed(kind: str) -> None:
    check_bounds(LARGE[kind])
    check_bounds(LARGE[kind].encode())


def test_a_small_page_is_parsed_whatever_is_in_it() -> None:
    assert Page.from_html("<div>" * 1500).css_first("div") is not None


def test_what_a_page_says_is_hashed_in_linear_time_however_complex() -> None:
    """80 kB of comments that do not end took seven seconds, 800 kB twelve minutes."""
    open_comments = b"<p>x</p><!-- y --><plaintext>" + b"<!--" * 200_000
    assert content_hash(open_comments, HTML) == content_hash(open_comments.replace(b"<!-- y -->", b""), HTML)
    for kind in COMPLEX_PAGES.values():
        page = kind().encode()
        assert content_hash(page, HTML) != content_hash(page + b"x", HTML)
