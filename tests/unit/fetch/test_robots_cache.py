from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

import pytest

from shoal.core.clock import Millis, Moment
from shoal.core.notes import Entry
from shoal.fetch.robots.cache import KEPT, KEPT_WITHOUT_ANSWER, RobotsCache, RobotsRules, origin_of, robots_url
from shoal.fetch.robots.parser import MAX_BYTES
from shoal.testing.jump_clock import JumpClock

ORIGIN = "https://shop.example"
AGENT = "Shoal/0.1 (+https://shoal.example/bot)"
MINUTE = 60_000
MOST = 300_000


class OneShelf:
    """A cache in a dict, on the same clock, which counts how often it was asked."""

    def __init__(self, clock: JumpClock) -> None:
        self._clock = clock
        self.kept: dict[str, tuple[bytes, Moment]] = {}
        self.asked = 0

    async def get(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        self.asked += 1
        now = self._clock.now()
        return {key: self.kept[key][0] for key in keys if key in self.kept and self.kept[key][1] > now}

    async def put(self, entries: Sequence[Entry]) -> None:
        self.kept.update({entry.key: (entry.value, self._clock.now() + entry.ttl) for entry in entries})

    async def hold(self, entries: Sequence[Entry]) -> Set[str]:
        raise NotImplementedError


@pytest.fixture
def clock() -> JumpClock:
    return JumpClock()


@pytest.fixture
def cache(clock: JumpClock) -> OneShelf:
    return OneShelf(clock)


@pytest.fixture
def book(cache: OneShelf, clock: JumpClock) -> RobotsCache:
    return RobotsCache(cache, AGENT, clock=clock)


def allows(rules: RobotsRules | None, path: str) -> bool:
    assert rules is not None
    return rules.allowed(ORIGIN + path)


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://shop.example/a/b?c#d", "https://shop.example"),
        ("http://shop.example", "http://shop.example"),
        ("https://shop.example?q=/x", "https://shop.example"),
        ("http://shop.example:8080/", "http://shop.example:8080"),
        ("HTTPS://Me:pw@SHOP.example:443/", "https://shop.example"),
        ("https://bücher.example/", "https://xn--bcher-kva.example"),
        ("http://[::1]:81/x", "http://[::1]:81"),
    ],
)
def test_an_origin_is_scheme_host_and_port(url: str, origin: str) -> None:
    assert origin_of(url) == origin
    assert robots_url(origin) == f"{origin}/robots.txt"


def test_what_is_not_a_url_has_no_origin() -> None:
    with pytest.raises(ValueError, match="Invalid"):
        origin_of("shop.example/a")


async def test_nothing_is_known_before_it_is_learned(book: RobotsCache) -> None:
    assert book.remembered(ORIGIN) is None
    assert await book.known(ORIGIN) is None


async def test_rules_are_those_for_this_agent(book: RobotsCache) -> None:
    text = b"""User-agent: other
Disallow: /

User-agent: shoal
Crawl-delay: 2.5
Disallow: /private
Allow: /private/open
Disallow: /*.pdf$

Sitemap: https://shop.example/map.xml
Sitemap: https://shop.example/more.xml
"""
    rules = await book.learn(ORIGIN, 200, text)
    allowed = [path for path in ("/", "/private/x", "/private/open", "/a.pdf", "/a.pdf?x") if allows(rules, path)]
    assert allowed == ["/", "/private/open", "/a.pdf?x"]
    assert rules.crawl_delay == 2500
    assert rules.sitemaps == ("https://shop.example/map.xml", "https://shop.example/more.xml")


async def test_all_agents_are_meant_when_none_is_named(book: RobotsCache) -> None:
    rules = await book.learn(ORIGIN, 200, b"\xef\xbb\xbfUser-agent: *\nDisallow: /private\n")
    assert (allows(rules, "/"), allows(rules, "/private"), rules.crawl_delay) == (True, False, None)


@pytest.mark.parametrize(("asked", "delay"), [("0", None), ("-1", None), ("nan", None), ("x", None), ("1e300", MOST)])
async def test_a_crawl_delay_is_sensible_or_not_there(book: RobotsCache, asked: str, delay: Millis | None) -> None:
    assert (await book.learn(ORIGIN, 200, f"User-agent: *\nCrawl-delay: {asked}\n".encode())).crawl_delay == delay


@pytest.mark.parametrize(
    ("status", "allowed", "kept"),
    [
        (200, False, KEPT),
        (204, False, KEPT),
        (302, True, KEPT),
        (401, True, KEPT),
        (404, True, KEPT),
        (499, True, KEPT),
        (500, False, KEPT_WITHOUT_ANSWER),
        (503, False, KEPT_WITHOUT_ANSWER),
        (None, False, KEPT_WITHOUT_ANSWER),
    ],
)
async def test_what_a_status_means(
    book: RobotsCache, clock: JumpClock, status: int | None, allowed: bool, kept: Millis
) -> None:
    rules = await book.learn(ORIGIN, status, b"User-agent: *\nDisallow: /page\n")
    assert (allows(rules, "/page"), allows(rules, "/robots.txt")) == (allowed, True)
    clock.advance(kept - 1)
    assert allows(await book.known(ORIGIN), "/page") is allowed
    clock.advance(1)
    assert (book.remembered(ORIGIN), await book.known(ORIGIN)) == (None, None)


async def test_without_an_answer_nothing_at_all_is_allowed(book: RobotsCache) -> None:
    rules = await book.learn(ORIGIN, None, b"")
    assert [path for path in ("/", "/x", "/robots.txt", "/robots.txt?x", "/a/robots.txt") if allows(rules, path)] == [
        "/robots.txt",
        "/robots.txt?x",
    ]


async def test_only_the_beginning_of_a_huge_file_is_read_and_no_half_line(book: RobotsCache) -> None:
    start = b"User-agent: *\nDisallow: /first\n"
    filler = b"#" * (MAX_BYTES - len(start) - 14) + b"\n"
    rules = await book.learn(ORIGIN, 200, start + filler + b"Disallow: /some/longer/path\nDisallow: /last\n")
    assert [path for path in ("/first", "/some", "/so", "/last") if not allows(rules, path)] == ["/first"]


async def test_bytes_that_are_no_text_do_no_harm(book: RobotsCache) -> None:
    assert allows(await book.learn(ORIGIN, 200, bytes(range(256)) * 20), "/")


async def test_what_one_worker_learned_all_know(book: RobotsCache, cache: OneShelf, clock: JumpClock) -> None:
    await book.learn(ORIGIN, 200, b"User-agent: *\nDisallow: /private\nCrawl-delay: 3")
    other = RobotsCache(cache, AGENT, clock=clock)
    assert other.remembered(ORIGIN) is None
    clock.advance(KEPT - MINUTE)
    rules = await other.known(ORIGIN)
    assert rules is not None
    assert (allows(rules, "/private"), rules.crawl_delay, other.remembered(ORIGIN)) == (False, 3000, rules)
    clock.advance(MINUTE)
    assert other.remembered(ORIGIN) is None, "a second book must not prolong what the first one learned"
    assert list(cache.kept) == [f"robots:{ORIGIN}"]


async def test_a_cache_that_is_late_to_forget_is_not_believed(cache: OneShelf, clock: JumpClock) -> None:
    await RobotsCache(cache, AGENT, clock=clock).learn(ORIGIN, None, b"")
    value, until = cache.kept[f"robots:{ORIGIN}"]
    cache.kept[f"robots:{ORIGIN}"] = (value, until + MINUTE)
    clock.advance(until - clock.now())
    assert await RobotsCache(cache, AGENT, clock=clock).known(ORIGIN) is None


async def test_known_rules_cost_no_look_into_the_cache(book: RobotsCache, cache: OneShelf) -> None:
    rules = await book.learn(ORIGIN, 404, b"")
    assert (book.remembered(ORIGIN), await book.known(ORIGIN), cache.asked) == (rules, rules, 0)


async def test_a_new_answer_replaces_the_old(book: RobotsCache) -> None:
    await book.learn(ORIGIN, None, b"")
    await book.learn(ORIGIN, 404, b"")
    assert allows(await book.known(ORIGIN), "/x")


async def test_what_another_version_stored_is_as_good_as_none(book: RobotsCache, cache: OneShelf) -> None:
    await cache.put([Entry(f"robots:{ORIGIN}", b"\xc1 not ours", KEPT)])
    assert await book.known(ORIGIN) is None


async def test_the_rules_used_least_recently_are_let_go(cache: OneShelf, clock: JumpClock) -> None:
    book = RobotsCache(cache, AGENT, clock=clock, capacity=2)
    for number in (1, 2):
        await book.learn(f"https://{number}.example", 404, b"")
    book.remembered("https://1.example")
    await book.learn("https://3.example", 404, b"")
    held = [number for number in (1, 2, 3) if book.remembered(f"https://{number}.example")]
    assert held == [1, 3]
    assert await book.known("https://2.example") is not None
