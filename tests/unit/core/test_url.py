"""One spelling for each address, and nothing but BadURL for what is none."""

import hashlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

import ada_url
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shoal.core.storable import MAX_URL
from shoal.core.url import (
    NormalURL,
    Resolver,
    dedup_key,
    host_of,
    join,
    normalise,
    same_site,
    scheme_of,
    site_of,
    without_credentials,
)
from shoal.errors import BadURL

PIECES = st.sampled_from(
    ["/", "//", ".", "..", "/.", "/..", "a", "B", "é", "%", "%41", "%2f", "%2F", "%e9", "%zz", "?", "&", "=", "#", ":",
     "@", " ", "\t", "\n", "\\", "[", "]", "::1", "x=1", "http:", "https://", "ftp:", "javascript:", "127.0.0.1", "~",
     "-", "_", ";", ",", "+", "'", '"', "<", "|", "^", "example.org", "EXAMPLE.org", ":80", ":8080", "\x00", "\ud800"]
)  # fmt: skip
REFERENCES = st.lists(PIECES, max_size=8).map("".join) | st.text(max_size=40)
URLS = st.builds(
    "{}://{}{}".format,
    st.sampled_from(["http", "https", "HTTP"]),
    st.sampled_from(["example.org", "EXAMPLE.org:80", "u:p@host:8080", "[::1]:99", "bücher.example", "127.1", "a..b"]),
    st.lists(PIECES, max_size=8).map(lambda pieces: "/" + "".join(pieces)),
)


@pytest.mark.parametrize(
    ("url", "normal"),
    [
        ("HTTP://Example.ORG", "http://example.org/"),
        ("https://example.org:443/a", "https://example.org/a"),
        ("http://example.org:443/a", "http://example.org:443/a"),
        ("http://example.org/a/./b/../c", "http://example.org/a/c"),
        ("http://example.org/%7euser/%41%2fb", "http://example.org/~user/A%2Fb"),
        ("http://example.org/?b=2&a=1#part", "http://example.org/?b=2&a=1"),
        ("http://example.org/?q=%c3%a9", "http://example.org/?q=%C3%A9"),
        ("http://example.org/?q=é", "http://example.org/?q=%C3%A9"),
        ("http://bücher.example/", "http://xn--bcher-kva.example/"),
        ("http://127.1/", "http://127.0.0.1/"),
        ("http://example.org/100%", "http://example.org/100%"),
        ("http://example.org/%%34%31", "http://example.org/%%34%31"),
        ("  http://example.org/ \n", "http://example.org/"),
        ("http://me:secret@example.org/", "http://me:secret@example.org/"),
    ],
)
def test_each_address_has_one_spelling(url: Any, normal: Any) -> None:
    assert normalise(url) == normal


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("htp://example.org/", "its scheme 'htp' is not http or https"),
        ("javascript:alert(1)", "its scheme 'javascript' is not http or https"),
        ("mailto:a@example.org", "its scheme 'mailto' is not http or https"),
        ("data:text/html,x", "its scheme 'data' is not http or https"),
        ("ftp://example.org/", "its scheme 'ftp' is not http or https"),
        ("example.org/a", "it does not begin with http:// or https://"),
        ("localhost:8080/a", "it does not begin with http:// or https://"),
        ("//example.org/a", "it does not begin with http:// or https://"),
        ("", "it is empty"),
        ("http://", "it has no host"),
        ("https:///a", "it has no host"),
        ("http:a", "it has no host"),
        ("http://exa mple.org/", "it contains a space"),
        ("http://example.org/a b", "it contains a space"),
        ("http://example.org/a\x00b", "it contains a control character"),
        ("http://example.org/a\nb", "it contains a control character"),
        ("http://example.org:99999/", "its host or port is not valid"),
        ("http://[::1/", "its host or port is not valid"),
        ("http://example.org/\ud800", "it contains half a character (a lone surrogate)"),
        ("http://example.org/" + "a" * 10_000, "it is 10019 characters long and 8192 is the limit"),
    ],
)
def test_what_is_no_address_is_refused_with_the_reason(url: Any, reason: Any) -> None:
    with pytest.raises(BadURL) as refused:
        normalise(url)
    assert refused.value.reason == reason
    assert refused.value.url == url


def test_an_address_that_grows_too_long_by_escaping_is_refused() -> None:
    with pytest.raises(BadURL, match="characters long"):
        normalise("http://example.org/" + "é" * 4000)


@given(REFERENCES | URLS)
@example("http://a/%%34%31")
@example("http://a/%2e%2e/b")
@example("http://a/.%2e/b")
@example("http://a?")
@example("http://a/b #c")
def test_normalising_is_idempotent_and_raises_nothing_but_bad_url(text: Any) -> None:
    try:
        once = normalise(text)
    except BadURL:
        return
    assert normalise(once) == once
    assert once.startswith(("http://", "https://"))
    assert "#" not in once
    assert len(once) <= MAX_URL
    assert not any(char <= " " for char in once)


def ada_says(base: Any, href: Any) -> Any:
    """The slow and certain way: the standard's parser, then what Shoal adds to it."""
    try:
        joined = ada_url.join_url(base, href)
    except ValueError:
        return None
    if not joined.startswith(("http://", "https://")):
        return None
    try:
        return normalise(joined)
    except BadURL:
        return None


@given(URLS, REFERENCES)
@example("http://a/b/c?d=/e/f", "g")
@example("http://a/b/c", "//b/c")
@example("http://a/b/c", "/./x")
@example("http://a/b/c", "/x/..")
@example("http://a/b/c", "x/.")
@example("http://a/b/c", "?")
@example("http://a/b/c", "a:b")
@example("http://a/b/c", "http://a/b/../d")
@example("http://u:p@a/b/c", "http://a/x")
@example("http://a/b/c", "http://a//x")
@example("http://a/b/c", "a" * 9000)
def test_joining_agrees_with_the_parser_of_the_standard(base: Any, href: Any) -> None:
    try:
        base = normalise(base)
    except BadURL:
        return
    expected = ada_says(base, href)
    try:
        found = join(base, href)
    except BadURL:
        found = None
    assert found == expected
    if found is not None:
        assert normalise(found) == found


@pytest.mark.parametrize(
    ("href", "url"),
    [
        ("/x", "https://a.example/x"),
        ("x?y=1", "https://a.example/b/x?y=1"),
        ("../x", "https://a.example/x"),
        ("?page=2", "https://a.example/b/c?page=2"),
        ("//other.example/x", "https://other.example/x"),
        ("https://a.example/y", "https://a.example/y"),
        ("my file.pdf", "https://a.example/b/my%20file.pdf"),
        ("/a\nb", "https://a.example/ab"),
        ("", "https://a.example/b/c?q=1"),
    ],
)
def test_a_link_means_what_a_browser_takes_it_for(href: Any, url: Any) -> None:
    assert join("https://a.example/b/c?q=1", href) == url


def test_joining_to_what_is_no_address_is_refused() -> None:
    with pytest.raises(BadURL):
        join("nonsense", "/x")


def test_many_links_come_once_in_order_and_the_broken_ones_apart() -> None:
    hrefs = ["/b", "/a", " /b ", "#top", "", "  ", "javascript:void(0)", "MAILTO:x@y.z", "tel:1", "htp://x", "/a#part"]
    found, broken = Resolver("https://a.example/").join_all(hrefs)
    assert found == ["https://a.example/b", "https://a.example/a"]
    assert broken == [("htp://x", "its scheme 'htp' is not http or https")]


def test_plain_links_do_not_go_through_the_parser() -> None:
    resolver = Resolver("https://a.example/b/c?q=1")
    with calls_of("join_url") as parsed:
        resolver.join("x/../y")
    assert parsed == ["join_url"], "this one has to"
    plain = ["/x/y.html", "x?page=2", "https://a.example/z"]
    expected = ["https://a.example/x/y.html", "https://a.example/b/x?page=2", "https://a.example/z"]
    with calls_of("join_url") as parsed:
        assert [resolver.join(href) for href in plain] == expected
        assert resolver.join_all(plain) == (expected, [])
    assert not parsed


@contextmanager
def calls_of(function: str) -> Iterator[list[str]]:
    """The calls of functions of this name that are made meanwhile."""
    calls: list[str] = []

    def look(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_name == function:
            calls.append(function)

    sys.setprofile(look)
    try:
        yield calls
    finally:
        sys.setprofile(None)


@given(URLS, st.lists(REFERENCES, max_size=5))
@example("http://a/b/c", ["/./x", "/x/../y", "a" * 9000, "/" + "a" * 9000])
def test_joining_many_is_joining_each(base: Any, hrefs: Any) -> None:
    try:
        resolver = Resolver(base)
    except BadURL:
        return
    expected: dict[str, None] = {}
    for href in hrefs:
        if href.strip() and not href.strip().startswith("#"):
            with suppress(BadURL):
                expected[resolver.join(href.strip())] = None
    found, _ = resolver.join_all(hrefs)
    assert found == list(expected)


@pytest.mark.parametrize(
    ("url", "site", "host"),
    [
        ("https://example.org/a:b@c", "example.org", "example.org"),
        ("http://example.org:8080/", "example.org:8080", "example.org"),
        ("http://me:secret@example.org:8080/", "example.org:8080", "example.org"),
        ("https://[::1]/", "[::1]", "[::1]"),
        ("https://[::1]:81/", "[::1]:81", "[::1]"),
    ],
)
def test_site_and_host_are_read_off_the_address(url: Any, site: Any, host: Any) -> None:
    assert site_of(url) == site
    assert host_of(url) == host


@given(URLS)
def test_the_site_is_what_the_parser_calls_host(url: Any) -> None:
    try:
        url = normalise(url)
    except BadURL:
        return
    parsed = ada_url.parse_url(url)
    assert site_of(url) == parsed["host"]
    assert host_of(url) == parsed["hostname"]
    bare = ada_url.parse_url(without_credentials(url))
    assert (bare["username"], bare["password"]) == ("", "")
    assert bare["host"] + bare["pathname"] + bare["search"] == parsed["host"] + parsed["pathname"] + parsed["search"]


def test_sites_are_compared_by_host_and_port_and_not_by_scheme() -> None:
    assert same_site("http://example.org/a", "https://example.org/b")
    assert not same_site("http://example.org/a", "http://example.org:8080/a")
    assert not same_site("http://example.org/a", "http://www.example.org/a")


@pytest.mark.parametrize(
    ("url", "site"),
    [
        ("https://example.org./a", "example.org"),
        ("https://example.org.:8080/a", "example.org:8080"),
        ("https://me:p.:x@example.org./a.", "example.org"),
        ("https://example.org/a.", "example.org"),
        ("http://[::1]:81/", "[::1]:81"),
    ],
)
def test_a_dot_at_the_end_of_a_host_makes_no_other_site(url: str, site: str) -> None:
    assert site_of(normalise(url)) == site


def test_keys_tell_requests_apart_by_address_credentials_method_and_body() -> None:
    url = "https://example.org/search"
    assert dedup_key(url) == hashlib.sha256(url.encode()).digest()
    keys = [
        dedup_key(url),
        dedup_key(url + "?q=1"),
        dedup_key("https://me:secret@example.org/search"),
        dedup_key("https://me:other@example.org/search"),
        dedup_key(url, "POST"),
        dedup_key(url, "POST", b"q=1"),
        dedup_key(url, "POST", b"q=2"),
        dedup_key(url, "GET", b""),
    ]
    assert len(set(keys)) == len(keys)
    assert {len(key) for key in keys} == {32}


def test_the_scheme_of_a_reference() -> None:
    assert scheme_of(" MailTo:x") == "mailto"
    assert scheme_of("/a:b") is None


def test_a_normal_url_is_a_string_and_remembers_nothing_more() -> None:
    assert NormalURL("http://a/") == "http://a/"
    assert type(NormalURL("http://a/") + "x") is str
