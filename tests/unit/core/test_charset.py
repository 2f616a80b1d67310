from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.charsets.decoding import decode
from shoal.core.charsets.labels import CODECS, USER_DEFINED
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


# The labels of the WHATWG Encoding Standard

SAMPLES = {
    "utf-8": "é→漢", "cp866": "Привет", "iso8859_2": "Łódź", "iso8859_3": "Ħaż", "iso8859_4": "Ŋāž",
    "iso8859_5": "Привет",
    "iso8859_6": "سلام", "iso8859_7": "Γειά", "iso8859_8": "שלום", "iso8859_10": "Þórđŋ", "iso8859_13": "Žąsų",
    "iso8859_14": "Ŵyḃ", "iso8859_15": "€Œž", "iso8859_16": "Țării", "koi8_r": "Привет", "koi8_u": "Їжак",
    "mac_roman": "é†∞", "cp874": "สวัสดี", "cp1250": "Łódź", "cp1251": "Привіт", "cp1252": "é€™", "cp1253": "Γειά",
    "cp1254": "Şişe", "cp1255": "שלום", "cp1256": "سلام", "cp1257": "Žąsų", "cp1258": "Đơn", "mac_cyrillic": "Привет",
    "gb18030": "你好€", "big5hkscs": "你好嘅", "euc_jp": "こんにちは", "iso2022_jp_ext": "こんにちは",
    "cp932": "①髙こん",
    "cp949": "안녕똠", "utf-16-be": "é漢", "utf-16-le": "é漢", "hz": "你好", "iso2022_kr": "안녕",
}  # fmt: skip


@pytest.mark.parametrize("label", [label for label, codec in CODECS.items() if codec != USER_DEFINED])
def test_every_label_of_the_standard_is_read_as_it_says(label: str) -> None:
    text = SAMPLES[CODECS[label]]
    body = text.encode(CODECS[label])
    for written in (label, label.upper(), f'"{label}"'):
        assert decode(body, {"Content-Type": f"text/html; charset={written}"}) == text


@pytest.mark.parametrize("label", [label for label, codec in CODECS.items() if not codec.startswith(("utf", "x-"))])
def test_every_label_is_read_in_a_meta_too(label: str) -> None:
    text = SAMPLES[CODECS[label]]
    body = f"<meta charset={label}><p>{text}</p>".encode(CODECS[label])
    assert decode(body, {}).endswith(f"<p>{text}</p>")


def test_there_are_as_many_labels_as_the_standard_has() -> None:
    """228, of which three (ISO-2022-CN, its extension, and "replacement") nothing here can read."""
    assert len(CODECS) == 225


def test_bytes_above_ascii_can_be_for_private_use() -> None:
    assert decode(b"a\x80\xff", {"Content-Type": "text/plain; charset=x-user-defined"}) == "a\uf780\uf7ff"


@pytest.mark.parametrize(
    "head",
    [
        b"<meta charset=bogus><meta charset=windows-1251>",
        b"<meta http-equiv=Content-Type content='text/html; charset=none'><meta charset=windows-1251>",
        b"<!-- <meta charset=koi8-r> --><meta charset=windows-1251>",
        b"<?xml version='1.0' encoding='what'?><meta charset='windows-1251'>",
    ],
)
def test_the_first_label_that_there_is_counts(head: bytes) -> None:
    assert decode(head + "Привет".encode("cp1251"), {}).endswith("Привет")


@pytest.mark.parametrize("label", ["utf-7", "idna", "punycode", "unicode_escape", "rot13", "hex", "\0", "x" * 500, "ü"])
def test_what_is_no_encoding_of_the_web_counts_as_not_there(label: str) -> None:
    assert decode("é".encode(), {"Content-Type": f"text/html; charset={label}"}) == "é"
