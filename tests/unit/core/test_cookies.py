"""Cookies: which are kept, which are sent, and what a hostile site can do with them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.cookies.cookie import LONGEST_LIFE, MOST_BYTES, Cookie, default_path, parse_cookie, path_matches
from shoal.core.cookies.date import cookie_date
from shoal.core.cookies.jar import MOST_IN_JAR, MOST_OF_OWNER, CookieJar

NOW = 1_800_000_000_000
PAGE = "https://www.shop.example/cart/add"


def sent(set_cookie: str | list[str], to: str, *, by: str = PAGE, after: int = 0) -> str:
    """What a request for `to` says, when an answer of `by` has set this, `after` so many milliseconds."""
    jar = CookieJar()
    jar.take([set_cookie] if isinstance(set_cookie, str) else set_cookie, by, NOW)
    return jar.header(to, NOW + after)


@pytest.mark.parametrize(
    ("set_cookie", "to", "says"),
    [
        ("a=1", PAGE, "a=1"),
        ("a=1", "https://www.shop.example/cart", "a=1"),
        ("a=1", "https://www.shop.example/cartoon", ""),
        ("a=1", "https://www.shop.example/", ""),
        ("a=1; Path=/", "https://www.shop.example/", "a=1"),
        ("a=1; path=cart", "https://www.shop.example/cart/x", "a=1"),
        ("a=1; Path=/", "https://shop.example/", ""),
        ("a=1; Path=/", "https://m.www.shop.example/", ""),
        ("a=1; Path=/; Domain=shop.example", "https://shop.example/", "a=1"),
        ("a=1; Path=/; Domain=.SHOP.example", "https://m.shop.example/", "a=1"),
        ("a=1; Path=/; Domain=op.example", "https://op.example/", ""),
        ("a=1; Path=/; Domain=example", "https://www.shop.example/", ""),
        ("a=1; Path=/; Domain=evil.example", "https://evil.example/", ""),
        ("a=1; Path=/; Domain=", "https://www.shop.example/", "a=1"),
        ("a=1; Path=/; Secure", "http://www.shop.example/", ""),
        ("a=1; Path=/", "http://www.shop.example/", "a=1"),
        ("a=1; Path=/", "https://www.shop.example:8443/", "a=1"),
        (" a = 1 ; Path=/", PAGE, "a=1"),
        ("a=b=c; Path=/", PAGE, "a=b=c"),
        ('a="b c"; Path=/', PAGE, 'a="b c"'),
        ("=v; Path=/", PAGE, "v"),
        ("v; Path=/", PAGE, "v"),
        ("=", PAGE, ""),
        ("", PAGE, ""),
        ("=__Secure-x=1", PAGE, ""),
        ("__Secure-a=1; Path=/", PAGE, ""),
        ("__Secure-a=1; Path=/; Secure", PAGE, "__Secure-a=1"),
        ("__Host-a=1; Path=/; Secure", PAGE, "__Host-a=1"),
        ("__host-a=1; Path=/cart; Secure", PAGE, ""),
        ("__Host-a=1; Path=/; Secure; Domain=www.shop.example", PAGE, ""),
        ("a=1\x00", PAGE, ""),
        ("a=1\ud800", PAGE, ""),
        ("a=" + "v" * MOST_BYTES, PAGE, ""),
        ("a=1; Path=/" + "p" * 2000, PAGE, "a=1"),
    ],
)  # fmt: skip
def test_who_is_sent_what(set_cookie: str, to: str, says: str) -> None:
    assert sent(set_cookie, to) == says


@pytest.mark.parametrize(
    ("by", "domain", "to", "says"),
    [
        ("https://shop.co.uk/", "co.uk", "https://other.co.uk/", ""),
        ("https://one.github.io/", "github.io", "https://two.github.io/", ""),
        ("https://github.io/", "github.io", "https://github.io/", "a=1"),
        ("https://github.io/", "github.io", "https://two.github.io/", ""),
        ("https://127.0.0.1/", "0.0.1", "https://127.0.0.1/", ""),
        ("https://127.0.0.1/", "127.0.0.1", "https://127.0.0.1/", "a=1"),
        ("http://localhost/", "localhost", "http://localhost/", "a=1"),
        ("https://[::1]/", "", "https://[::1]/", "a=1"),
    ],
)
def test_nobody_sets_a_cookie_for_others(by: str, domain: str, to: str, says: str) -> None:
    assert sent(f"a=1; Path=/; Domain={domain}", to, by=by) == says


@pytest.mark.parametrize(
    ("life", "after", "says"),
    [
        ("Max-Age=10", 9_999, "a=1"),
        ("Max-Age=10", 10_000, ""),
        ("Max-Age=0", 0, ""),
        ("Max-Age=-1", 0, ""),
        ("Max-Age=soon", 10_000, "a=1"),
        ("Max-Age=" + "9" * 100, LONGEST_LIFE - 1, "a=1"),
        ("Max-Age=" + "9" * 100, LONGEST_LIFE, ""),
        ("Expires=Thu, 01 Jan 1970 00:00:00 GMT", 0, ""),
        ("Expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=10", 0, "a=1"),
        ("Expires=Fri, 31 Dec 9999 23:59:59 GMT", LONGEST_LIFE, ""),
        ("Expires=never", 10**12, "a=1"),
    ],
)
def test_how_long_a_cookie_lives(life: str, after: int, says: str) -> None:
    assert sent(f"a=1; Path=/; {life}", PAGE, after=after) == says


def test_longer_paths_come_first_then_what_was_set_first() -> None:
    jar = CookieJar()
    for number, each in enumerate(("b=1; Path=/", "a=2; Path=/", "c=3; Path=/cart")):
        jar.take([each], PAGE, NOW + number)
    jar.take(["b=4; Path=/"], PAGE, NOW + 9)
    assert jar.header(PAGE, NOW) == "c=3; b=4; a=2", "one that is set again keeps its place"
    assert jar.header(PAGE, NOW, frozenset({"b"})) == "c=3; a=2"


def test_what_has_changed_is_told_and_makes_the_same_jar_elsewhere() -> None:
    here, there = CookieJar(), CookieJar()
    for header in ("a=1; Path=/", "b=2; Path=/", "a=1; Path=/", "b=x; Max-Age=0; Path=/", "c=; Max-Age=0"):
        there.merge(here.take([header], PAGE, NOW), NOW)
    assert here.take(["a=1; Path=/"], PAGE, NOW + 5) == []
    assert there.header(PAGE, NOW) == here.header(PAGE, NOW) == "a=1"
    assert len(here) == len(there) == len(list(there)) == 1


def test_plain_http_does_not_touch_a_secure_cookie() -> None:
    jar = CookieJar()
    jar.take(["a=1; Path=/; Secure; Domain=shop.example"], PAGE, NOW)
    assert jar.take(["a=2; Path=/"], "http://www.shop.example/", NOW) == []
    assert jar.take(["a=2; Path=/; Max-Age=0; Domain=shop.example"], "http://www.shop.example/", NOW) == []
    assert jar.header(PAGE, NOW) == "a=1"


def test_a_site_cannot_fill_a_jar() -> None:
    jar = CookieJar()
    jar.take(["keep=1; Path=/"], "https://other.example/", NOW)
    jar.take([f"c{number}={number}; Path=/" for number in range(MOST_OF_OWNER * 2)], PAGE, NOW)
    assert len(jar) == MOST_OF_OWNER + 1
    assert jar.header("https://other.example/", NOW) == "keep=1"
    jar.take(["sub=1; Path=/"], "https://m.shop.example/", NOW + 1)
    assert len(jar) == MOST_OF_OWNER + 1, "another host of theirs does not give them more"
    for number in range(MOST_IN_JAR):
        jar.take(["a=1"], f"https://host.site{number}.example/", NOW)
    assert len(jar) == len(list(jar)) == MOST_IN_JAR


def test_a_value_is_not_shown() -> None:
    assert "secret" not in repr([parse_cookie("a=secret", PAGE, NOW)])


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("Wed, 09 Jun 2027 10:18:14 GMT", datetime(2027, 6, 9, 10, 18, 14, tzinfo=UTC)),
        ("Wednesday, 09-Jun-27 10:18:14 GMT", datetime(2027, 6, 9, 10, 18, 14, tzinfo=UTC)),
        ("Wed Jun  9 10:18:14 2027", datetime(2027, 6, 9, 10, 18, 14, tzinfo=UTC)),
        ("10:18:14 9 june 1994", datetime(1994, 6, 9, 10, 18, 14, tzinfo=UTC)),
        ("09-Jun-70 1:2:3", datetime(1970, 6, 9, 1, 2, 3, tzinfo=UTC)),
        ("30 Feb 2027 00:00:00", None),
        ("9 Jun 1600 00:00:00", None),
        ("9 Jun 2027 24:00:00", None),
        ("9 Jun 2027", None),
        ("", None),
        ("x" * 10_000, None),
    ],
)
def test_dates_in_all_spellings(text: str, date: datetime | None) -> None:
    assert cookie_date(text) == (None if date is None else int(date.timestamp() * 1000))


@pytest.mark.parametrize(
    ("path", "folder"), [("", "/"), ("/", "/"), ("/a", "/"), ("/a/", "/a"), ("/a/b", "/a"), ("x", "/")]
)
def test_the_folder_of_a_page(path: str, folder: str) -> None:
    assert default_path(path) == folder
    assert path_matches("/a/b", "/a")
    assert not path_matches("/ab", "/a")


words = st.text(max_size=20) | st.sampled_from(["Path=/", "Domain=shop.example", "Secure", "Max-Age=0", "Expires=1"])


@given(st.lists(st.lists(words, max_size=6).map("; ".join), max_size=8), st.booleans())
def test_whatever_is_set_can_be_sent_to_the_same_page_alone(headers: list[str], tls: bool) -> None:
    page = PAGE if tls else PAGE.replace("https", "http")
    jar = CookieJar()
    changed = jar.take(headers, page, NOW)
    assert all(isinstance(cookie, Cookie) for cookie in changed)
    line = jar.header(page, NOW)
    assert not set(line) & {"\r", "\n", "\x00"}
    line.encode()
    assert jar.header("https://elsewhere.test/", NOW) == ""
    assert len(jar) == len(list(jar))
