"""The index over the rules of a robots.txt: as right as trying them all, and never slow."""

from __future__ import annotations

import re
import time
import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.storable import MAX_URL
from shoal.fetch.robots import matching
from shoal.fetch.robots.matching import NOTHING, RuleIndex
from shoal.fetch.robots.parser import MAX_BYTES, RobotsFile

EVERYONE = "User-agent: *\n"


def tried_one_by_one(rules: list[tuple[str, bool]], place: str) -> int:
    """The plain reading of RFC 9309, by regular expressions."""
    best = NOTHING
    for pattern, allow in rules:
        body = ".*".join(map(re.escape, pattern.removesuffix("$").split("*")))
        if pattern and re.match(body + (r"\Z" if pattern.endswith("$") else ""), place, re.DOTALL):
            best = max(best, len(pattern) * 2 + allow)
    return best


PATTERN = st.builds(
    lambda parts, end: "/" + "*".join(parts) + end,
    st.lists(st.text("ab/", max_size=6), min_size=1, max_size=4),
    st.sampled_from(["", "", "$"]),
)


@given(st.lists(st.tuples(PATTERN, st.booleans()), max_size=12), st.text("ab/", max_size=16))
def test_it_finds_what_trying_them_all_finds(rules: list[tuple[str, bool]], rest: str) -> None:
    place = "/" + rest
    assert RuleIndex(rules).find(place) == tried_one_by_one(rules, place)


def test_where_it_would_take_too_long_nothing_is_fetched() -> None:
    """All of these have the same pieces as the URL, so none can be passed over unseen."""
    rules = [(f"/*aaaa*{number:03x}", False) for number in range(matching.MOST_TRIED + 1)]
    assert RuleIndex(rules[:-1]).find("/aaaa") == NOTHING
    assert RuleIndex(rules).find("/aaaa") & 1 == 0


# Cost: files of 500 KiB that mean harm, beside an honest one of that size


def repeated(line: Callable[[int], str], head: str = EVERYONE) -> bytes:
    lines, size, number = [head], len(head), 0
    while size < MAX_BYTES:
        lines.append(line(number) + "\n")
        size += len(lines[-1])
        number += 1
    return "".join(lines).encode()[:MAX_BYTES]


HONEST = repeated(lambda number: f"Disallow: /shop/{number}/cart")
HARMFUL = {
    "the same agent again and again": (
        EVERYONE * 17_000 + "".join(f"Disallow: /{number}\n" for number in range(15_000))
    ).encode(),
    "stars and a number": repeated(lambda number: f"Disallow: /*{number}"),
    "stars, all alike": repeated(lambda number: f"Disallow: /*aaaa*b{number}"),
    "many parts": repeated(lambda number: f"Disallow: /*a*a*a*a*a*a*{number}$"),
    "one rule of nothing but stars": repeated(lambda _: "*a" * 100_000, EVERYONE + "Disallow: /"),
    "short rules": repeated(lambda number: f"Allow:{chr(33 + number % 90)}*{chr(33 + number // 90 % 90)}"),
    "prefixes of all lengths": repeated(lambda number: "Disallow: /" + "a" * number),
    "prefixes, short": repeated(lambda number: f"Allow:/{number:x}"),
    "sitemaps": repeated(lambda number: f"Sitemap: http://a.example/{number}"),
    "crawl delays": repeated(lambda number: f"Crawl-delay: {number}"),
    "escapes": repeated(lambda _: "Disallow: /" + "%41%2f%zz" * 200),
    "no rules at all": repeated(lambda number: f"{number}"),
    "blanks": repeated(lambda _: " \t" * 1000),
    "one line": b"Disallow: " + b"/a*" * (MAX_BYTES // 3),
}
TARGETS = [
    "/",
    "/shop/1/cart",
    "/" + "a" * (MAX_URL - 1),
    "/?" + "/%2f?" * 1500,
    "/" + "ab" * 4000 + "?x=" + "é" * 50,
]


def cost_of(do: Callable[[], object]) -> float:
    """The least CPU time of three tries."""
    spans = []
    for _ in range(3):
        began = time.thread_time()
        do()
        spans.append(time.thread_time() - began)
    return min(spans)


@pytest.mark.parametrize("name", HARMFUL)
def test_no_file_costs_much_more_than_an_honest_one(name: str) -> None:
    """To read: by an honest file of the same size. For one URL: by reading that file once, of which it is a part."""
    honest = cost_of(lambda: RobotsFile(HONEST, "shoal"))
    reading = cost_of(lambda: RobotsFile(HARMFUL[name], "shoal"))
    file = RobotsFile(HARMFUL[name], "shoal")
    slowest = max((cost_of(lambda url=url: file.allows(url)), url[:40]) for url in TARGETS)  # type: ignore[misc]
    tracemalloc.start()
    try:
        RobotsFile(HARMFUL[name], "shoal")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    print(f"{name}: read {reading * 1000:.0f} ms, match {slowest[0] * 1000:.2f} ms, {peak >> 20} MiB")
    assert reading < 10 * honest
    assert slowest[0] < honest
    assert peak < 100 << 20
