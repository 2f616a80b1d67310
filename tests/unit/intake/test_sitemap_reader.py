"""Sitemaps as values: bytes in, entries out, whatever the bytes are."""

from __future__ import annotations

import contextlib
import gzip
import tracemalloc
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.intake.lastmod import latest
from shoal.intake.sitemap_file import SitemapReader
from shoal.intake.sitemap_xml import LONGEST_TAG, MOST_NESTED, MOST_TROUBLES, Listed, SitemapEntry, Unreadable
from shoal.testing.hostile.encodings import bomb
from shoal.testing.hostile.sitemaps import big_sitemap

GOOD = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
    b"<url><loc>https://x.example/1</loc><lastmod>2024-05-01</lastmod></url>\n"
    b"<url>\n  <loc>\n https://x.example/?a=1&amp;b=2 </loc></url>\n"
    b"<url><loc><![CDATA[https://x.example/?a=1&b=3]]></loc></url>\n</urlset>"
)


def zipped(data: bytes) -> bytes:
    """The same bytes whenever it is asked for."""
    return gzip.compress(data, mtime=0)


def read(data: bytes, step: int = 7, **limits: Any) -> tuple[list[SitemapEntry], list[str]]:
    reader = SitemapReader(**limits)
    found: list[SitemapEntry] = []
    for begin in range(0, len(data), step):
        found += reader.feed(data[begin : begin + step])
    found += reader.close()
    return found, reader.troubles


def urls(data: bytes, step: int = 7) -> list[str]:
    return [entry.url for entry in read(data, step)[0]]


def numbers(data: bytes) -> tuple[str, list[str]]:
    """The last characters of the addresses, and the troubles."""
    found, troubles = read(data)
    return "".join(entry.url[-1] for entry in found), troubles


@pytest.mark.parametrize("step", [1, 7, 100_000])
def test_a_good_sitemap_however_it_is_cut_into_pieces(step: int) -> None:
    found, troubles = read(GOOD, step)
    assert [(entry.url, entry.lastmod) for entry in found] == [
        ("https://x.example/1", "2024-05-01"),
        ("https://x.example/?a=1&b=2", None),
        ("https://x.example/?a=1&b=3", None),
    ]
    assert not troubles


def test_gzip_is_known_by_its_content_and_may_be_doubled_or_in_parts() -> None:
    cut = GOOD.index(b"<url>\n")
    assert urls(zipped(GOOD)) == urls(zipped(zipped(GOOD))) == urls(GOOD)
    assert urls(zipped(GOOD[:cut]) + zipped(GOOD[cut:]) + b"rubbish") == urls(GOOD)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"<sitemapindex><sitemap><loc>https://x.example/s</loc><lastmod>2024</lastmod></sitemap></sitemapindex>",
         [SitemapEntry("https://x.example/s", "2024", Listed.SITEMAP)]),
        (b"\xef\xbb\xbfhttps://x.example/1\r\n\r\n# no\nhttps://x.example/2",
         [SitemapEntry("https://x.example/1"), SitemapEntry("https://x.example/2")]),
        (b"<rss><channel><link>https://x.example/</link><item><link>https://x.example/1</link>"
         b"<pubDate>Wed, 01 May 2024 00:00:00 GMT</pubDate></item><item><guid>https://x.example/2</guid></item>"
         b'<item><guid isPermaLink="false">77</guid></item></channel></rss>',
         [SitemapEntry("https://x.example/1", "Wed, 01 May 2024 00:00:00 GMT"), SitemapEntry("https://x.example/2")]),
        (b'<rdf:RDF xmlns:rdf="r"><item rdf:about="https://x.example/1"><dc:date>2024</dc:date></item></rdf:RDF>',
         [SitemapEntry("https://x.example/1", "2024")]),
        (b'<feed xmlns="a"><link href="/"/><entry><link rel="self" href="/s"/><link href="/1"/><updated>2024</updated>'
         b'<content><div><link href="/no"/></div></content></entry></feed>',
         [SitemapEntry("/1", "2024")]),
        (b"<urlset><url><loc>https://x.example/1</loc><image:image><image:loc>/i.png</image:loc></image:image>"
         b"<video:video><video:content_loc>/v.mp4</video:content_loc></video:video></url></urlset>",
         [SitemapEntry("https://x.example/1", media=["/i.png", "/v.mp4"])]),
        (b"<urlset><url><loc>https://x.example/1</loc><news:news><news:publication_date>2024</news:publication_date>"
         b"</news:news></url></urlset>", [SitemapEntry("https://x.example/1", "2024")]),
        (b'<s:urlset xmlns:s="s"><s:url><s:loc>https://x.example/1</s:loc></s:url></s:urlset>',
         [SitemapEntry("https://x.example/1")]),
        ('<?xml version="1.0" encoding="utf-16"?><urlset><url><loc>/é</loc></url></urlset>'.encode("utf-16"),
         [SitemapEntry("/é")]),
        ('<?xml version="1.0" encoding="ISO-8859-1"?><urlset><url><loc>/é</loc></url></urlset>'.encode("latin-1"),
         [SitemapEntry("/é")]),
    ],
)  # fmt: skip
def test_every_form_of_sitemap(data: bytes, expected: list[SitemapEntry]) -> None:
    for step in (1, 64, 100_000):
        assert read(data, step) == (expected, [])


@pytest.mark.parametrize(
    ("data", "found", "trouble"),
    [
        (b"<urlset>\n<url><loc>1</loc></url>\n<url><loc>2</url>\n<url><loc>3</loc></url></urlset>", "13",
         "line 3: mismatched tag"),
        (b"<urlset><url><loc>1</loc></url>\n<url <<loc>2</loc></url>\n\n<url><loc>3</loc></url></urlset>", "13",
         "line 2: not well-formed (invalid token)"),
        (b"<urlset><url><loc>1</loc></url>\n<url><loc>2</lo", "1", "line 2: the file is cut short"),
        (b"<urlset><url><loc>1</loc></url></urlset>\n<br>Warning: x<url><loc>2</loc></url>", "12",
         "line 2: junk after document element"),
        (b"<urlset><url><loc>\x01</loc></url><url><loc>2</loc></url></urlset>", "2",
         "line 1: not well-formed (invalid token)"),
        (b"<rss><channel><item><link>1</item>\n<item><link>2</link></item></channel></rss>", "2",
         "line 1: mismatched tag"),
        (zipped(GOOD)[:-8], "123", "the gzip data is cut short"),
    ],
)  # fmt: skip
def test_what_is_broken_is_passed_over_and_the_place_named(data: bytes, found: str, trouble: str) -> None:
    good, troubles = numbers(data)
    assert good == found
    assert trouble in troubles


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbf\n<?xml version='1.0' encoding='utf-8'?>\n<urlset><url><loc>1</loc></url></urlset>",
        "\ufeff\r\n \t<?xml version='1.0'?><urlset><url><loc>1</loc></url></urlset>".encode("utf-16-le"),
        "\ufeff\n<urlset><url><loc>1</loc></url></urlset>".encode("utf-16-be"),
        b"<!-- made by\n<a plugin> --><?xml version='1.0'?><urlset><url><loc>1</loc></url></urlset>",
        b"<!-- " + b"x" * 5000 + b" --><?xml version='1.0'?><urlset><url><loc>1</loc></url></urlset>",
        b"\r\n" * 3000 + b"<?xml version='1.0'?><urlset><url><loc>1</loc></url></urlset>",
        b"\xef\xbb\xbf" + b" " * 3000 + b"https://x.example/1",
        b"Our pages, made by hand:\nhttps://x.example/1\nand no more\n",
        b"www.x.example/0\nhttps://x.example/1\nhttps://x.example/ is our home\n/3\n",
    ],
)
def test_what_stands_around_it_does_not_hide_a_sitemap(data: bytes) -> None:
    for step in (1, 7, 100_000):
        assert [entry.url[-1] for entry in read(data, step)[0]] == ["1"]


def test_lines_of_prose_are_named_and_nothing_but_prose_is_no_list() -> None:
    assert read(b"Hello\n\nhttps://x.example/1\nbye bye")[1] == ["line 1: no URL", "line 4: no URL"]
    with pytest.raises(Unreadable, match="neither XML nor a list of URLs"):
        read(b"Hello\nworld\n")
    with pytest.raises(Unreadable, match="neither XML nor a list of URLs"):
        read(b"Hello\n" * 200 + b"https://x.example/1\n")


def test_addresses_of_a_feed_are_relative_to_its_base() -> None:
    data = (
        b"<feed xml:base='https://x.example/a/'><entry><link href='1'/></entry>"
        b"<entry xml:base='b/'><link href='2'/></entry><entry><lin</entry><entry><link href='/3'/></entry></feed>"
    )
    assert urls(data) == ["https://x.example/a/1", "https://x.example/a/b/2", "https://x.example/3"]


HARMFUL: dict[str, tuple[bytes, Callable[[int], bytes]]] = {
    "one page with children of all names": (b"<urlset><url><loc>/1</loc>", lambda n: b"<c%d>x</c%d>" % (n, n)),
    "one page with the same child again": (b"<urlset><url><loc>/1</loc>", lambda _: b"<c>xxxxxxxxxxxxxxxx</c>"),
    "pages with attributes of all names": (b"<urlset>", lambda n: b"<url a%d=''></url>" % n),
    "media without end": (b"<urlset><url><loc>/1</loc>", lambda n: b"<image><loc>/i%d</loc></image>" % n),
    "text without end": (b"<urlset><url><loc>", lambda _: b"x" * 30 + b"<b/>"),
    "declarations without end": (b"<urlset>", lambda n: b"<?p%d x?><!-- %d -->" % (n, n)),
    "bases without end": (b"<feed>", lambda n: b"<entry xml:base='/%d/'><link href='x'/></entry>" % n),
    "lines of prose": (b"https://x.example/1\n", lambda n: b"line %d\n" % n),
    "blanks": (b"", lambda _: b" \r\n\t"),
}


@pytest.mark.parametrize("name", HARMFUL)
def test_memory_stays_flat_whatever_is_in_the_file(name: str) -> None:
    head, part = HARMFUL[name]
    reader = SitemapReader()
    tracemalloc.start()
    try:
        with contextlib.suppress(Unreadable):
            for begin in range(0, 60_000, 1000):
                piece = b"".join(part(number) for number in range(begin, begin + 1000))
                for _ in reader.feed(head + piece if begin == 0 else piece):
                    pass
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    print(f"{name}: {most} bytes at most")
    assert most < 2_000_000


@pytest.mark.parametrize("begin", [b"<!-- ", b"<url a='", b"<?p ", b"<url a='" + b"'><b c='" * 9], ids=repr)
def test_what_has_no_end_is_given_up_although_it_has_the_ends_of_tags_inside(begin: bytes) -> None:
    """The parser would hold all of it, and read it anew with each piece."""
    reader = SitemapReader()
    pieces = iter([b"<urlset>" + begin, *[b"> " * 8_192] * 128])
    with pytest.raises(Unreadable, match="more than 1 MB without the end of a tag"):
        deque(entry for piece in pieces for entry in reader.feed(piece))
    assert next(pieces), "long before the end"


def test_the_commonest_mistakes_cost_nothing() -> None:
    assert urls(b"\n <?xml version='1.0'?><urlset><url><loc>/?a=1&b=2&nbsp;c</loc></url></urlset>") == [
        "/?a=1&b=2&nbsp;c"
    ]
    assert urls(b"<urlset><url><loc>/\xff</loc></url><url><loc>/2</loc></url></urlset>") == ["/\ufffd", "/2"]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "it is empty"),
        (b" \n", "it is empty"),
        (zipped(b""), "it is empty"),
        (b"x", "it is neither XML nor a list of URLs"),
        (b"\x89PNG\r\n" + bytes(100), "it is neither XML nor a list of URLs"),
        (b"y" * 100_000, "it is neither XML nor a list of URLs"),
        (b"<!DOCTYPE html><html><p>Not found", "it is not a sitemap but an HTML page"),
        (b"<?xml version='1.0'?><html/>", "it is not a sitemap but an HTML page"),
        (b"<svg/>", "it is not a sitemap but XML of another kind (<svg>)"),
        (b"<urlset", "it is not XML"),
        (b"<urlset <>", "broken XML at line 1: not well-formed (invalid token)"),
        (b'<!DOCTYPE x [<!ENTITY a "b">]><urlset/>', "it declares entities"),
        (b'<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><urlset/>', "it declares entities"),
        (b'<!DOCTYPE x [<!ENTITY % a SYSTEM "http://127.0.0.1:1/"> %a;]><urlset/>', "it declares entities"),
        ('<!DOCTYPE x [<!ENTITY a "b">]><urlset/>'.encode("utf-16"), "it declares entities"),
        (b"<urlset>" + b"<a>" * (MOST_NESTED + 1), f"tags nested more than {MOST_NESTED} deep"),
        (b"<urlset><url a='" + b"x" * (LONGEST_TAG + 10), "more than 1 MB without the end of a tag"),
        (b"<urlset>" + b"<url><loc>1</url>" * (MOST_TROUBLES + 1), f"broken XML in {MOST_TROUBLES} places"),
        (zipped(GOOD)[:30] + b"\xff" * 50, "the gzip data is damaged"),
        (zipped(zipped(zipped(zipped(GOOD)))), "packed into gzip more than 3 times"),
    ],
)  # fmt: skip
def test_what_is_no_sitemap_is_refused_with_one_clear_reason(data: bytes, reason: str) -> None:
    for step in (5000, 100_000_000):
        with pytest.raises(Unreadable) as wrong:
            read(data, step)
        assert reason in str(wrong.value)


def test_a_bomb_goes_off_nowhere() -> None:
    with pytest.raises(Unreadable, match=r"it is larger than 5 MB, unpacked"):
        read(zipped(GOOD[:-9] + b"<!-- -->" * 700_000), 4096, most_bytes=5 * 2**20)
    with pytest.raises(Unreadable, match=r"neither XML nor a list"):
        read(bomb("gzip"), 4096)
    with pytest.raises(Unreadable, match=r"it is larger than 1 MB"):
        read(b"https://x.example/1\n" * 60_000, 4096, most_bytes=2**20)


def test_no_more_is_taken_of_one_file_than_allowed() -> None:
    reader = SitemapReader(most_urls=2)
    assert [entry.url[-1] for entry in [*reader.feed(GOOD), *reader.close()]] == ["1", "2"]
    assert (reader.taken, reader.full) == (2, True)
    exact = SitemapReader(most_urls=3)
    assert len([*exact.feed(GOOD), *exact.close()]) == 3
    assert not exact.full


def test_memory_stays_flat_however_large_the_file() -> None:
    def peak(size: int) -> tuple[int, int]:
        reader = SitemapReader()
        tracemalloc.start()
        count = sum(1 for piece in big_sitemap("http://127.0.0.1", size) for _ in reader.feed(piece))
        count += sum(1 for _ in reader.close())
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return count, most

    (few, small), (many, large) = peak(5 * 10**5), peak(3 * 10**6)
    print(f"{few} entries: {small} bytes at most; {many} entries: {large} bytes at most")
    assert many > 5 * few
    assert large < small + 500_000


@given(
    st.lists(st.tuples(st.integers(0, len(GOOD)), st.binary(max_size=4), st.integers(0, 20)), max_size=6),
    st.sampled_from([1, 13, 4096]),
    st.booleans(),
)
@settings(max_examples=300, deadline=None)
def test_broken_input_gives_entries_or_the_clear_error_and_nothing_else(
    wounds: list[tuple[int, bytes, int]], step: int, packed: bool
) -> None:
    data = GOOD
    for place, put, taken in wounds:
        data = data[:place] + put + data[place + taken :]
    try:
        found, _ = read(zipped(data) if packed else data, step)
    except Unreadable:
        return
    assert all(entry.url for entry in found)


@given(st.binary(max_size=300))
@settings(max_examples=200, deadline=None)
def test_any_bytes_give_entries_or_the_clear_error(data: bytes) -> None:
    for whole in (data, b"<urlset>" + data, b"\x1f\x8b" + data, b"http://x/\n" + data):
        with suppress(Unreadable):
            read(whole)


DAY = 86_400_000


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("1970-01-01", DAY - 1),
        ("1970-01-02T00:00:00Z", DAY + 999),
        ("1970-01-02T00:00Z", DAY + 59_999),
        ("1970-01-02T02:00:00.123+02:00", DAY + 999),
        ("1970-01-01T22:00:00-0200", DAY + 999),
        ("1970-01", 31 * DAY - 1),
        ("1970", 365 * DAY - 1),
        ("Fri, 02 Jan 1970 00:00:00 GMT", DAY),
        ("Fri, 02 Jan 1970 02:00:00 +0200", DAY),
        ("yesterday", None),
        ("1970-13-45", None),
        ("", None),
    ],
)
def test_a_date_is_read_as_the_last_moment_that_it_can_mean(text: str, moment: int | None) -> None:
    assert latest(text) == moment


@given(st.text(max_size=40))
def test_any_text_is_a_date_or_none(text: str) -> None:
    assert latest(text) is None or isinstance(latest(text), int)
