"""No robots.txt of up to 500 KiB takes long to read or to hold a URL against: a fuzzer that looks for cost."""

from __future__ import annotations

import random
from functools import partial

import pytest

from shoal.core.storable import MAX_URL
from shoal.fetch.robots.parser import MAX_BYTES, RobotsFile
from support.cost import KIB, MIB, Pumped, check_time, numbered, peak, pumped, size_of

WORDS = [
    *(
        b"User-agent: *\n",
        b"User-agent: shoal\n",
        b"User-agent:",
        b"user agent ",
        b"Disallow: /",
        b"Allow: /",
        b"Disallow:",
    ),
    *(
        b"Allow",
        b"Disalow /",
        b"Sitemap: ",
        b"Crawl-delay: 1\n",
        b"Crawl-delay:",
        b"http://x.example/s.xml",
        b"\n",
        b"\r\n",
    ),
    *(
        b"\r",
        b"#",
        b":",
        b" ",
        b"\t",
        b"\xc2\xa0",
        b"*",
        b"$",
        b"/",
        b"?",
        b"&",
        b"=",
        b"%",
        b"%41",
        b"%2F",
        b"%2f",
        b"%zz",
    ),
    b"a",
    b"b",
    b"ab",
    b"a*",
    b"*a",
    b"/*",
    b"*$",
    b"\xff",
    b"\xc3\xa9",
    b"\xef\xbb\xbf",
    b"\0",
    b"0",
    b"1e9",
    b"-",
]
BEGINNINGS = (b"", b"User-agent: *\n", b"User-agent: *\nDisallow: /", b"User-agent: shoal\nUser-agent: *\nAllow: /")
PLACES = [b"/", b"a", b"b", b"ab", b"?", b"&", b"=", b"%2F", b"%41", b"%", b"*", b"$", b"\xc3\xa9", b".", b"1", b"a/"]

READ = 0.1 + 3.0 * MAX_BYTES / MIB
"""Seconds of CPU that are allowed for a whole file; an honest one takes a tenth."""
MATCHED = 0.1
"""And for one URL."""
MOST_MEMORY = 100 * MIB


def unlike(chance: random.Random, body: bytes) -> bytes:
    """With lines of which no two are the same: those that are said again are only kept once."""
    end = chance.choice((b"", b"$", b"*"))
    return b"".join(b"%b%x%b\n" % (line, number, end) for number, line in enumerate(body.split(b"\n")))


def read(body: bytes) -> RobotsFile:
    return RobotsFile(body, "shoal")


def ask(target: bytes, rules: RobotsFile) -> bool:
    return rules.allows(target.decode(errors="replace"))


def search(seconds: float | None, most: int, largest: int) -> None:
    slowest = matched = 0.0
    number = 0
    for number, chance in numbered("robots.txt", 0, seconds, most):
        size = size_of(number, largest)
        file, begins, seed = pumped(chance, WORDS), chance.choice(BEGINNINGS), chance.random()
        half, whole = (begins + file.of_size(length - len(begins)) for length in (size // 2, size))
        if chance.random() < 0.5:
            file = Pumped(file.head, tuple(part + b"\n" for part in file.parts), file.tail)
            half, whole = (unlike(random.Random(seed), begins + file.of_size(length)) for length in (size // 2, size))
        what = f"robots.txt {number}"
        slowest = max(slowest, check_time(what, read, half, whole, READ))
        rules, place = read(whole), b"/" + pumped(chance, PLACES).of_size(MAX_URL - 1)
        for target in (place[:100], place):
            asked = f"{what}, {target[:40]!r}"
            matched = max(matched, check_time(asked, partial(ask, rules=rules), b"", target, MATCHED))
        if not number % 10:
            held = peak(read, whole)
            assert held < MOST_MEMORY, f"{what}: {held >> 20} MiB"
    print(
        f"robots.txt: {number + 1} inputs; {slowest * 1000:.0f} ms to read, {matched * 1000:.1f} ms for a URL at most"
    )


def test_no_robots_txt_costs_much() -> None:
    search(None, 40, 64 * KIB)


@pytest.mark.proof
def test_no_robots_txt_of_many_costs_much() -> None:
    search(200, 0, MAX_BYTES)
