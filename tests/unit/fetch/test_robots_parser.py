"""RFC 9309, sentence by sentence: what a robots.txt says to one crawler."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from protego import Protego

from shoal.fetch.robots.parser import MAX_BYTES, RobotsFile, comparable, product_token

EVERYONE = "User-agent: *\n"


def refused(text: str | bytes, *targets: str) -> list[str]:
    """Those of the targets that may not be fetched."""
    body = text.encode() if isinstance(text, str) else text
    file = RobotsFile(body, "shoal")
    return [target for target in targets if not file.allows(target)]


# 2.2.1: whom a group is for


@pytest.mark.parametrize(
    ("agent", "token"),
    [
        ("Shoal/0.1 (+https://shoal.example/bot)", "shoal"),
        ("Shoal", "shoal"),
        ("my-crawler_x 2", "my-crawler_x"),
        ("Mozilla/5.0 (compatible; Somebot/1.0; +https://some.example)", "somebot"),
        ("Mozilla/5.0 (X11; Linux x86_64) Gecko", "mozilla"),
        ("(nobody)", ""),
    ],
)
def test_a_crawler_is_called_by_its_product_token(agent: str, token: str) -> None:
    assert product_token(agent) == token


@pytest.mark.parametrize("line", ["shoal", "SHOAL", "Shoal", "shoal/2.0", "shoal *", "Shoal # us"])
def test_a_group_is_found_whatever_the_case(line: str) -> None:
    assert refused(f"User-agent: {line}\nDisallow: /x\nUser-agent: *\nDisallow: /y\n", "/x", "/y") == ["/x"]


@pytest.mark.parametrize("line", ["sho", "shoals", "s", "shoal-news", "otherbot", "oal", "", "bot"])
def test_a_group_for_another_is_not_ours(line: str) -> None:
    """Neither a beginning of our token nor a word elsewhere in our User-Agent means us."""
    assert refused(f"User-agent: {line}\nDisallow: /x\n\nUser-agent: *\nDisallow: /y\n", "/x", "/y") == ["/y"]


def test_all_groups_that_name_us_are_one() -> None:
    text = """User-agent: shoal
Disallow: /a
User-agent: other
Disallow: /b
User-agent: Shoal
Disallow: /c
User-agent: *
Disallow: /d
"""
    assert refused(text, "/a", "/b", "/c", "/d") == ["/a", "/c"]


def test_all_groups_for_everyone_are_one_and_count_only_if_none_names_us() -> None:
    text = "User-agent: *\nDisallow: /a\nUser-agent: x\nDisallow: /b\nUser-agent: *\nDisallow: /c\n"
    assert refused(text, "/a", "/b", "/c") == ["/a", "/c"]
    assert refused(text + "User-agent: shoal\nDisallow:\n", "/a", "/b", "/c") == []


def test_several_lines_name_those_that_a_group_is_for() -> None:
    text = "User-agent: x\nUser-agent: shoal\n\n# both\nUser-agent: y\nDisallow: /a\nUser-agent: z\nDisallow: /b\n"
    assert refused(text, "/a", "/b") == ["/a"]


def test_without_a_group_for_us_there_are_no_rules() -> None:
    assert refused("Disallow: /\nUser-agent: x\nDisallow: /\n", "/", "/a") == []


# 2.2.2: which rule counts


def test_the_longest_match_counts_wherever_it_stands() -> None:
    text = EVERYONE + "Allow: /a/page\nDisallow: /a\nAllow: /b\nDisallow: /b/secret\nDisallow: /\n"
    assert refused(text, "/a/page.html", "/a/x", "/b/1", "/b/secret/2", "/c") == ["/a/x", "/b/secret/2", "/c"]


def test_of_two_that_are_as_long_the_one_that_allows_counts() -> None:
    assert (
        refused(EVERYONE + "Disallow: /page\nAllow: /page\nDisallow: /p*ge2\nAllow: /pa*e2\n", "/page", "/page2") == []
    )


def test_a_path_begins_at_its_first_octet_and_case_matters() -> None:
    assert refused(
        EVERYONE + "Disallow: /fish\n", "/fish", "/fish.html", "/fishheads/", "/Fish", "/a/fish", "/?id=/fish"
    ) == [
        "/fish",
        "/fish.html",
        "/fishheads/",
    ]


def test_nothing_follows_from_an_empty_rule() -> None:
    assert refused(EVERYONE + "Disallow:\nAllow:\nDisallow: #all\n", "/", "/x") == []


def test_allowing_a_page_does_not_allow_the_folder() -> None:
    assert refused(EVERYONE + "Disallow: /\nAllow: /index.html\n", "/", "/index.html") == ["/"]


def test_robots_txt_itself_may_always_be_fetched() -> None:
    text = EVERYONE + "Disallow: /\n"
    assert refused(text, "/robots.txt", "/robots.txt?x", "/a/robots.txt", "/Robots.txt") == [
        "/a/robots.txt",
        "/Robots.txt",
    ]


# 2.2.3: special characters


@pytest.mark.parametrize(
    ("pattern", "matched", "not_matched"),
    [
        ("/*.php", ["/index.php", "/a/b.php?x", "/.php/"], ["/", "/index.PHP"]),
        ("/*.php$", ["/a.php", "/a/b.php.php"], ["/a.php?x", "/a.php/", "/a.php5"]),
        ("/fish*.php", ["/fish.php", "/fishheads/catfish.php?id=1"], ["/Fish.PHP", "/fi.php"]),
        ("/a$", ["/a"], ["/a$", "/ab", "/a/"]),
        ("/a$b", ["/a$b", "/a%24bc"], ["/a", "/ab"]),
        ("/a%24", ["/a$", "/a%24"], ["/a"]),
        ("/a%2A", ["/a*b", "/a%2Ab", "/a%2ab"], ["/ab"]),
        ("/**a**b", ["/xaxb", "/ab"], ["/b", "/a"]),
        ("*", ["/", "/x"], []),
        ("*/x$", ["/x", "/a/x"], ["/x/y"]),
        ("/a*a$", ["/aa", "/aba"], ["/a"]),
        ("/$", ["/"], ["/a"]),
        ("/*$", ["/", "/a"], []),
    ],
)
def test_stars_and_ends(pattern: str, matched: list[str], not_matched: list[str]) -> None:
    assert refused(f"{EVERYONE}Disallow: {pattern}\n", *matched, *not_matched) == matched


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("/foo/bar?baz=quz", "/foo/bar?baz=quz"),
        ("/foo/bar?baz=http://foo.bar", "/foo/bar?baz=http%3A%2F%2Ffoo.bar"),
        ("/foo/bar?baz=http%3A%2F%2Ffoo.bar", "/foo/bar?baz=http://foo.bar"),
        ("/foo/bar/ツ", "/foo/bar/%E3%83%84"),
        ("/foo/bar/%e3%83%84", "/foo/bar/%E3%83%84"),
        ("/foo/bar/%62%61%7A", "/foo/bar/baz"),
        ("/foo/bar/baz", "/foo/bar/%62%61%7a"),
        ("/a b", "/a%20b"),
        ("/a:b", "/a%3Ab"),
        ("/100%", "/100%25"),
        ("/%ff", "/%FF"),
    ],
)
def test_octets_are_compared_however_they_are_spelled(written: str, asked: str) -> None:
    assert refused(f"{EVERYONE}Disallow: {written}\n", asked, "/foo/bar/other") == [asked]


def test_octets_that_are_no_utf_8_are_compared_too() -> None:
    assert refused(b"User-agent: *\nDisallow: /caf\xe9\n", "/caf%E9", "/caf%C3%A9", "/caf%EF%BF%BD") == ["/caf%E9"]


def test_an_escaped_slash_does_not_divide_a_path() -> None:
    assert refused(f"{EVERYONE}Disallow: /a/b\n", "/a/b", "/a%2Fb") == ["/a/b"]
    assert refused(f"{EVERYONE}Disallow: /a%2fb\n", "/a/b", "/a%2Fb") == ["/a%2Fb"]
    assert refused(f"{EVERYONE}Disallow: /a%3Fb\n", "/a?b", "/a%3fb") == ["/a%3fb"]


# 2.2.4: other records


@pytest.mark.parametrize(
    "record", ["Sitemap: https://a/x", "Foo: bar", "Crawl-delay: 3", "Host: a", "nonsense", "Noindex: /"]
)
def test_a_record_that_is_not_of_the_protocol_ends_no_group(record: str) -> None:
    text = f"User-agent: shoal\n{record}\nUser-agent: x\n{record}\nDisallow: /a\n{record}\nDisallow: /b\n"
    assert refused(text, "/a", "/b") == ["/a", "/b"]


def test_sitemaps_belong_to_no_group() -> None:
    text = "Sitemap: https://a/1.xml\nUser-agent: x\nDisallow: /\nSITEMAP:https://a/2.xml # two\nSitemap:\n"
    assert RobotsFile(text.encode(), "shoal").sitemaps == ("https://a/1.xml", "https://a/2.xml")
    assert RobotsFile(b"Sitemap: https://a/\xff\n", "shoal").sitemaps == ("https://a/\ufffd",)


@pytest.mark.parametrize(
    ("text", "delay"),
    [
        ("User-agent: *\nCrawl-delay: 2.5\n", 2.5),
        ("User-agent: *\nCrawl-delay: 2\nUser-agent: shoal\nDisallow: /\n", None),
        ("User-agent: shoal\nDisallow: /x\nCrawl-delay: 7\n", 7),
        ("User-agent: shoal\nCrawl-delay: 7\nUser-agent: shoal\nCrawl-delay: 3\n", 7),
        ("User-agent: bing\nCrawl-delay: 10\n\nUser-agent: *\nDisallow: /x\n", None),
        ("User-agent: bing\nUser-agent: shoal\nCrawl-delay: 10\n", 10),
        ("User-agent: shoal\nCrawl-delay: 2\nUser-agent: bing\nCrawl-delay: 10\n", 2),
        (
            "User-agent: *\nCrawl-delay: x\nCrawl-delay: -1\nCrawl-delay: 0\nCrawl-delay: inf\nCrawl-delay: 1e400\n",
            None,
        ),
    ],
)
def test_a_crawl_delay_is_for_those_named_before_it(text: str, delay: float | None) -> None:
    assert RobotsFile(text.encode(), "shoal").crawl_delay == delay


# 2.3.1.5, 2.5 and the form of lines


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n", "\n\n", " \t\r\n"])
def test_lines_end_as_they_like(end: str) -> None:
    text = end.join(["User-agent: x", "Disallow: /", "User-agent: *", "Disallow: /a", "# end", "Disallow: /b"])
    assert refused(text, "/a", "/b", "/c") == ["/a", "/b"]


@pytest.mark.parametrize("inside", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028"])
def test_nothing_else_ends_a_line(inside: str) -> None:
    assert refused(f"{EVERYONE}Disallow: /a{inside}Disallow: /b\n", "/a", "/b") == []


@pytest.mark.parametrize(
    "line",
    [
        "Disallow:/a",
        "disallow : /a",
        "DISALLOW:\t/a",
        "Disallow: /a # why",
        "Disallow: /a#why",
        "Disallow /a",
        "Dissallow: /a",
    ],
)
def test_lines_are_read_as_they_are_meant(line: str) -> None:
    assert refused(f"useragent:*\n{line}\n", "/a", "/b") == ["/a"]


def test_a_byte_order_mark_is_no_part_of_the_first_line() -> None:
    assert refused(b"\xef\xbb\xbfUser-agent: *\nDisallow: /a\n", "/a") == ["/a"]


def test_what_can_be_read_holds_although_the_rest_cannot() -> None:
    text = (
        b"<html>\x00\xff:\n:::\nUser-agent: *\n\xff\xfe\nDisallow\nDisallow: /a\n"
        + bytes(range(256))
        + b"\nDisallow: /b\n"
    )
    assert refused(text, "/a", "/b", "/c") == ["/a", "/b"]


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_the_first_500_kib_are_read_and_no_half_line(end: bytes) -> None:
    start = b"User-agent: *" + end + b"Disallow: /first" + end
    last = b"Disallow: /in" + end
    filler = b"#" * (MAX_BYTES - len(start) - len(last) - len(end) - 14) + end
    body = start + filler + last + b"Disallow: /some/longer/path" + end + b"Disallow: /last" + end
    assert body[MAX_BYTES - 14 :].startswith(b"Disallow: /some"[:14])
    assert refused(body, "/first", "/in", "/some", "/so", "/some/longer/path", "/last") == ["/first", "/in"]


@pytest.mark.timeout(60)
def test_no_file_takes_long_to_hold_against() -> None:
    """Patterns that make regular expressions go back and forth for ever."""
    rules = "".join(f"Disallow: /*a*a*a*a*a*a*a*a*a*a*{number}$\n" for number in range(200))
    file = RobotsFile((EVERYONE + rules + "Disallow: /" + "*a" * 100_000 + "\n").encode(), "shoal")
    for _ in range(100):
        assert file.allows("/" + "a" * 2000 + "b")


@pytest.mark.parametrize("target", ["/a?x=%2Fsecret", "/a?x=%2fsecret", "/a?x=/secret", "/a/%2Fsecret"])
def test_an_escaped_slash_is_found_in_a_query_too(target: str) -> None:
    assert refused(f"{EVERYONE}Disallow: /*%2Fsecret\n", target) == [target]


def test_a_slash_of_a_rule_is_not_an_escaped_one_of_a_path() -> None:
    assert refused(f"{EVERYONE}Disallow: /*/secret\n", "/a%2Fsecret", "/a?x=/secret") == ["/a?x=/secret"]


def test_blanks_of_web_pages_and_tabs_for_colons() -> None:
    body = "User-agent\t*\nDisallow\t/a\nDisallow:\xa0/b\xa0\nSitemap:\xa0https://a.example/s.xml\n"
    assert refused(body, "/a", "/b", "/c") == ["/a", "/b"]
    assert RobotsFile(body.encode(), "shoal").sitemaps == ("https://a.example/s.xml",)


# The same as others say, where they follow the RFC

_SEGMENT = st.text("ab*", min_size=0, max_size=4)
_PATTERN = st.builds(lambda parts, end: "/" + "/".join(parts) + end, st.lists(_SEGMENT, max_size=3), st.just(""))
_RULES = st.lists(st.tuples(st.sampled_from(["Allow", "Disallow"]), _PATTERN), max_size=6)
_TARGET = st.text("ab/?", max_size=8).map(lambda rest: f"/{rest}")


@given(_RULES, _TARGET)
def test_plain_rules_are_read_as_protego_reads_them(rules: list[tuple[str, str]], target: str) -> None:
    text = EVERYONE + "".join(f"{name}: {pattern}\n" for name, pattern in rules)
    expected = Protego.parse(text).can_fetch(f"https://a.example{target}", "shoal")
    assert (refused(text, target) == []) == expected


@given(st.text(max_size=30))
def test_one_spelling_stays_as_it_is(text: str) -> None:
    target = "/" + text.encode("utf-8", "replace").decode()
    for once in comparable(target.replace("%", "%25")):
        assert once in comparable(once)


@given(st.binary(max_size=300), st.text(max_size=20))
def test_any_bytes_are_a_robots_txt(body: bytes, target: str) -> None:
    file = RobotsFile(b"User-agent: *\n" + body, "shoal")
    file.allows("/" + target.encode("utf-8", "replace").decode())
