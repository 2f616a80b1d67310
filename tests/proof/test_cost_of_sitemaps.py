"""No sitemap takes long to read, or memory that grows with it: XML, feeds and lists of lines, packed or not."""

from __future__ import annotations

import gzip
import random
from contextlib import suppress
from functools import partial

import pytest

from shoal.intake.sitemap_file import SitemapReader
from shoal.intake.sitemap_xml import Unreadable
from support.cost import KIB, MIB, Pumped, check_time, numbered, peak, pumped, resident, size_of

XML = [
    *(
        b"<urlset>",
        b"</urlset>",
        b"<url>",
        b"</url>",
        b"<loc>",
        b"</loc>",
        b"<lastmod>",
        b"</lastmod>",
        b"<feed>",
        b"<entry>",
    ),
    *(
        b"</entry>",
        b"<link href='x'/>",
        b"<link href='",
        b"<entry xml:base='y'>",
        b" xml:base='a/'",
        b"<rss><channel>",
        b"<item>",
    ),
    *(
        b"</item>",
        b"<guid>",
        b"</guid>",
        b"<sitemapindex>",
        b"<sitemap>",
        b"</sitemap>",
        b"<image:loc>",
        b"</image:loc>",
        b"<a>",
    ),
    *(
        b"</a>",
        b"<a",
        b"<b/>",
        b">",
        b"/>",
        b"<",
        b"</",
        b"='",
        b"'",
        b'"',
        b" a='>",
        b"<!--",
        b"-->",
        b"<!-- > -->",
        b"<![CDATA[",
    ),
    *(
        b"]]>",
        b"]]",
        b"<?xml",
        b"<?xml encoding=",
        b"<?p x?>",
        b"?>",
        b"<!DOCTYPE a [",
        b"<!ENTITY a 'b'>",
        b"&",
        b"&amp;",
        b"&a;",
    ),
    *(
        b"&#65;",
        b"a",
        b"../",
        b"a/",
        b"http://x.example/",
        b" ",
        b"\n",
        b"\r\n",
        b"\t",
        b"\xff",
        b"\xc3\xa9",
        b"\0",
        b"\xef\xbb\xbf",
    ),
]
LINES = [
    b"https://x.example/",
    b"http://",
    b"a",
    b"/",
    b"\n",
    b"\r\n",
    b"\r",
    b" ",
    b"#",
    b"prose",
    b"\xff",
    b"\0",
    b"\xc2\xa0",
]
BEGINNINGS = (
    *(
        b"",
        b"<urlset>",
        b"<urlset><url><loc>",
        b"<feed xml:base='http://x.example/",
        b"<feed xml:base='",
        b"<?xml version='1.0'?>",
    ),
    *(
        b"<feed>",
        b"<rss><channel><item>",
        b"<sitemapindex><sitemap>",
        b"<urlset><!--",
        b"<urlset><url a='",
        b"<urlset><![CDATA[",
    ),
    b"https://x.example/1\n",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\xfe\xff",
    b"<?xml",
    b"<!--",
)
SECONDS_PER_MIB = 4.0
"""Of CPU, for unpacked bytes; an honest sitemap takes a tenth."""
MOST_MEMORY, MOST_RESIDENT = 8 * MIB, 24 * MIB


def read(body: bytes, step: int) -> int:
    """Read it all, in pieces; answers by how much the process had grown meanwhile."""
    reader, before, most = SitemapReader(), resident(), 0
    with suppress(Unreadable):
        for at in range(0, len(body), step):
            for _ in reader.feed(body[at : at + step]):
                pass
            most = max(most, resident() - before)
        for _ in reader.close():
            pass
    return most


def packed(chance: random.Random, body: bytes) -> bytes:
    match chance.randrange(8):
        case 0:
            return gzip.compress(body, 1, mtime=0)
        case 1:
            return gzip.compress(gzip.compress(body, 1, mtime=0), 1, mtime=0)
        case 2:
            return b"".join(gzip.compress(body[at : at + 4 * KIB], 1, mtime=0) for at in range(0, len(body), 4 * KIB))
        case _:
            return body


def any_sitemap(chance: random.Random) -> Pumped:
    made = pumped(chance, XML if chance.random() < 0.8 else LINES)
    long = chance.choice((b"", b"", b"a/" * 5_000, b"a" * 10_000))
    return Pumped(chance.choice(BEGINNINGS) + long + made.head, made.parts, made.tail)


def search(seconds: float | None, most: int, largest: int) -> None:
    slowest = 0.0
    grown = held = number = 0
    for number, chance in numbered("sitemap", 0, seconds, most):
        size = size_of(number, largest)
        file, seed, step = any_sitemap(chance), chance.random(), chance.choice((1460, 16 * KIB, 64 * KIB))
        half, whole = (packed(random.Random(seed), file.of_size(length)) for length in (size // 2, size))
        what, do = f"sitemap {number}", partial(read, step=step)
        slowest = max(slowest, check_time(what, do, half, whole, 0.1 + SECONDS_PER_MIB * size / MIB))
        grown = max(grown, do(whole))
        assert grown < MOST_RESIDENT, f"{what}: the process has grown by {grown >> 20} MiB"
        if not number % 10:
            held = max(held, peak(do, whole))
            assert held < MOST_MEMORY, f"{what}: {held >> 20} MiB"
    print(
        f"sitemaps: {number + 1} inputs; {slowest * 1000:.0f} ms, {held >> 10} KiB, grown by {grown >> 10} KiB at most"
    )


def test_no_sitemap_costs_much() -> None:
    search(None, 150, 128 * KIB)


@pytest.mark.proof
def test_no_sitemap_of_many_costs_much() -> None:
    search(200, 0, 2 * MIB)
