from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.fetch.charset import decode
from shoal.fetch.http import HttpFetcher
from shoal.fetch.protocol import Fetch
from shoal.testing.hostile_site import CHARSET_TEXTS, HostileSite

TEXT = "Zażółć gęślą jaźń, 鮭と鯖"


def page(meta: str = "", text: str = TEXT) -> str:
    return f"<html><head>{meta}</head><body>{text}</body></html>"


@pytest.mark.parametrize("kind", CHARSET_TEXTS)
async def test_the_pages_of_the_hostile_site_are_read_as_a_reader_would(kind: str) -> None:
    fetcher = HttpFetcher("ShoalTest/1.0")
    async with HostileSite() as site:
        response = await fetcher.fetch(Fetch(site.url(f"/charset/{kind}")), lambda: None)
        await fetcher.close()
    assert f"<h1>{CHARSET_TEXTS[kind]}</h1>" in decode(response.body, response.headers)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_a_byte_order_mark_decides_and_is_no_part_of_the_text(encoding: str) -> None:
    body = ("\ufeff" + page('<meta charset="latin-1">')).encode(encoding)
    assert decode(body, {"Content-Type": "text/html; charset=windows-1251"}) == page('<meta charset="latin-1">')


def test_the_header_goes_before_the_meta() -> None:
    russian = page('<meta charset="utf-8">', "Съешь ещё")
    assert decode(russian.encode("cp1251"), {"Content-Type": 'text/html; charset="windows-1251"'}) == russian


def test_the_meta_goes_before_utf_8() -> None:
    both = page('<meta http-equiv="Content-Type" content="text/html; charset=windows-1251">', "Ð¶")
    assert decode(both.encode(), {}) == both.encode().decode("cp1251")


def test_an_xml_declaration_counts() -> None:
    feed = '<?xml version="1.0" encoding="iso-8859-2"?><title>gęś</title>'
    assert decode(feed.encode("iso-8859-2"), {"Content-Type": "application/xml"}) == feed


def test_without_a_word_utf_8_is_tried_and_then_windows_1252() -> None:
    assert decode(page().encode(), {}) == page()
    assert decode("“Déjà” 5 €".encode("cp1252"), {}) == "“Déjà” 5 €"


def test_a_browser_reads_latin_1_as_windows_1252() -> None:
    assert decode(b"\x93quoted\x94", {"Content-Type": "text/html; charset=iso-8859-1"}) == "“quoted”"


@pytest.mark.parametrize(
    "name", ["klingon", "utf-7", "idna", "punycode", "unicode_escape", "undefined", "hex", "rot13"]
)
def test_a_name_that_no_page_can_have_is_not_believed(name: str) -> None:
    assert decode(page().encode(), {"Content-Type": f"text/html; charset={name}"}) == page()
    named = page(f'<meta charset="{name}">')
    assert decode(named.encode(), {}) == named


def test_utf_16_without_a_mark_in_markup_is_a_mistake_for_utf_8() -> None:
    assert decode(page('<meta charset="utf-16">').encode(), {}) == page('<meta charset="utf-16">')


def test_what_cannot_be_read_is_replaced() -> None:
    assert decode(b"good \xff bad", {"Content-Type": "text/html; charset=utf-8"}) == "good \ufffd bad"


@given(st.binary(max_size=200), st.text(max_size=30), st.sampled_from(["utf-8", "shift_jis", "gb2312", "utf-16", "x"]))
def test_nothing_ever_raises(body: bytes, header: str, meta: str) -> None:
    for content_type in (header, f"text/html; charset={header}", f"text/html; charset={meta}"):
        decode(body, {"Content-Type": content_type})
        decode(f"<meta charset={meta}>".encode() + body, {})
