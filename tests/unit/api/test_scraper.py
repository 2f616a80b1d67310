"""A scraper as its user writes it: what it takes, what it refuses, and in which words."""

import re
from typing import Any

import pytest
from pydantic import BaseModel

from shoal import Page, Request, Scraper, Sitemap
from shoal.core.duration import wanted
from shoal.core.task import LanePolicy, Policy
from shoal.errors import BadScraper


class Cart(BaseModel):
    items: list[str]
    zipcode: str


def wrong(name: Any = "books", /, **options: Any) -> Any:
    with pytest.raises(BadScraper) as refused:
        Scraper(name, **options)
    return str(refused.value)


async def begun(scraper: Any, given: Any = None) -> Any:
    return [request async for request in scraper.requests_at_start(given)]


# Options


def test_the_defaults_are_polite() -> None:
    books = Scraper("books")
    assert books.policy() == Policy(
        delay=1000, site_delay=0, concurrency=1, pool="default", lease=300_000, hard_timeout=40_000
    )
    assert (books.attempts, books.timeout, books.mode, books.browser, books.obey_robots) == (
        3,
        30.0,
        "single",
        False,
        True,
    )
    assert (books.cache, books.lane, books.max_depth, books.max_bytes) == (None, None, None, 32 * 1024 * 1024)
    assert (books.start_urls, books.sitemaps, books.headers, books.input) == ((), (), {}, None)


def test_the_policy_says_in_milliseconds_what_the_scraper_says_in_seconds() -> None:
    books = Scraper(
        "books", delay=0.2, site_delay=0.05, concurrency=4, timeout=200, exits="tor", results_ttl=3600,
        lanes={"priority": {"ttl": 60, "ack": "auto"}, "news": {}},
    )  # fmt: skip
    assert books.policy() == Policy(
        delay=200, site_delay=50, concurrency=4, pool="tor", lease=420_000, hard_timeout=210_000, results_ttl=3_600_000,
        lanes={"priority": LanePolicy(ttl=60_000, auto_ack=True), "news": LanePolicy()},
    )  # fmt: skip


@pytest.mark.parametrize("name", ["Books", "1books", "", "books shop", "bücher", "-x", None, "books\n"])
def test_a_name_that_cannot_stand_in_a_url_is_refused(name: Any) -> None:
    assert wrong(name).startswith(f"A scraper cannot be named {name!r}: use small letters")


@pytest.mark.parametrize(
    ("option", "value", "needed"),
    [
        ("delay", -1, wanted()),
        ("delay", "1x", wanted()),
        ("delay", float("nan"), wanted()),
        ("delay", True, wanted()),
        ("delay", 1e20, wanted()),
        ("timeout", 10**400, wanted(positive=True)),
        ("every", 400 * 86400, wanted(positive=True)),
        ("cache", 1e20, wanted(positive=True)),
        ("results_ttl", 1e20, wanted(positive=True)),
        ("site_delay", -0.1, wanted()),
        ("concurrency", 0, "a whole number, 1 or more"),
        ("concurrency", 1.5, "a whole number, 1 or more"),
        ("attempts", 0, "a whole number, 1 or more"),
        ("timeout", 0, wanted(positive=True)),
        ("mode", "fast", "one of single, distributed"),
        ("browser", "yes", "True or False"),
        ("obey_robots", 0, "True or False"),
        ("exits", " ", "a name"),
        ("cache", -5, wanted(positive=True)),
        ("lane", "fast", "one of priority, bulk, browser, files"),
        ("max_depth", -1, "a whole number, 0 or more"),
        ("results_ttl", 0, wanted(positive=True)),
        ("max_bytes", 0, "a whole number, 1 or more"),
        ("start", 5, "a list of URLs"),
        ("input", dict, "a pydantic model class"),
        ("lanes", ["x"], 'a mapping such as {"priority": {"ttl": 60, "ack": "auto"}}'),
        ("headers", "X: y", "a mapping of names to values"),
    ],
)
def test_a_wrong_value_gets_one_sentence(option: Any, value: Any, needed: Any) -> None:
    assert wrong(**{option: value}) == f"Scraper 'books': {option} must be {needed}, not {value!r}."


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"start": ["https://a.example/", 5]}, "start must be a list of URLs, not 5."),
        ({"sitemaps": [Request("https://a.example/")]}, "sitemaps must be a list of URLs"),
        ({"lanes": {"bulk": {"tll": 5}}}, 'lanes[\'bulk\'] must be options among "ttl" and "ack"'),
        ({"lanes": {"bulk": {"ttl": -1}}}, "lanes['bulk'][\"ttl\"] must be a number of seconds, or a text such as"),
        ({"lanes": {"bulk": {"ack": "no"}}}, "lanes['bulk'][\"ack\"] must be one of manual, auto, not 'no'."),
        ({"headers": {"X": "a\nb"}}, "headers['X'] must be one line of text"),
        ({"allow": ["exa mple.org"]}, "allow has 'exa mple.org', which is no host name"),
        ({"allow": [5]}, "allow takes host names, host/path prefixes and compiled patterns, not 5."),
    ],
)
def test_a_wrong_part_of_a_value_is_named(options: Any, part: Any) -> None:
    assert part in wrong(**options)


def test_an_unknown_option_is_an_error() -> None:
    with pytest.raises(TypeError, match="dealy"):
        Scraper("books", dealy=1)  # type: ignore[call-arg]


def test_one_url_needs_no_list_and_true_is_a_minute_of_cache() -> None:
    books = Scraper("books", start="https://a.example/", sitemaps="https://a.example/s.xml", cache=True)
    assert (books.start_urls, books.sitemaps) == (("https://a.example/",), (Sitemap("https://a.example/s.xml"),))
    assert books.cache == 60.0
    assert Scraper("books", cache=False).cache is None
    assert Scraper("books", cache=5).cache == 5.0


def test_pages_wait_in_the_lane_that_fits() -> None:
    assert Scraper("x").page_lane == "bulk"
    assert Scraper("x", browser=True).page_lane == "browser"
    assert Scraper("x", browser=True, lane="priority").page_lane == "priority"
    assert Scraper("x", lane="news", lanes={"news": {"ttl": 5}}).page_lane == "news"


# Where it may go


@pytest.mark.parametrize(
    ("entry", "inside", "outside"),
    [
        ("books.example", "https://books.example/a", "https://notbooks.example/"),
        ("books.example", "http://www.books.example:8080/a", "https://books.example.org/"),
        ("Books.Example", "https://books.example/a", "https://example/"),
        ("https://books.example/", "http://books.example/a", "https://other.example/"),
        ("books.example/fiction", "https://books.example/fiction/1", "https://books.example/science"),
        ("127.0.0.1:8080", "http://127.0.0.1:8080/a", "http://127.0.0.1:8081/a"),
        ("bücher.example", "https://xn--bcher-kva.example/", "https://buecher.example/"),
        (re.compile(r"/p\d+$"), "https://any.example/p12", "https://any.example/p12x"),
    ],
)
def test_allow_is_hosts_prefixes_and_patterns(entry: Any, inside: Any, outside: Any) -> None:
    for allow in ([entry], entry, ["nowhere.example", entry]):
        books = Scraper("books", allow=allow)
        assert books.allowed(inside)
        assert not books.allowed(outside)


def test_without_allow_everything_is_allowed_and_with_none_of_it_nothing() -> None:
    assert Scraper("books").allowed("https://any.example/")
    assert not Scraper("books", allow=[]).allowed("https://any.example/")


# Handlers


def test_handlers_are_kept_by_label_and_functions_stay_what_they_are() -> None:
    books, other = Scraper("books"), Scraper("other")

    def listing(page: Any) -> Any:
        return page.url

    async def detail(page: Page) -> Any:
        yield page.url

    assert books.page(listing) is listing
    assert books.page("detail")(detail) is detail
    assert books.page("again")(listing) is listing
    assert books.handler(None).function is listing
    assert books.handler("detail").function is detail
    assert (books.handler("detail").scraper, books.handler("detail").label) == ("books", "detail")
    assert other.handlers == {}


def test_the_default_handler_may_be_written_with_brackets() -> None:
    books = Scraper("books")

    @books.page()
    def listing(page: Any) -> Any: ...

    assert books.handler(None).function is listing


def test_a_second_handler_for_a_label_is_refused_with_both_places() -> None:
    books = Scraper("books")

    @books.page("detail")
    def first(page: Any) -> Any: ...

    with pytest.raises(BadScraper) as refused:
        books.page("detail")(lambda page: None)
    place = first.__code__.co_firstlineno + 1  # below its decorator
    assert str(refused.value).startswith(
        f"Scraper 'books' has the handler 'detail' twice: at test_scraper.py:{place} and"
    )
    assert books.handler("detail").function is first


@pytest.mark.parametrize("function", [lambda: None, lambda page, more: None])
def test_a_handler_takes_one_argument(function: Any) -> None:
    with pytest.raises(BadScraper, match="must take one argument, the page"):
        Scraper("books").page(function)


def test_a_handler_may_have_defaults_and_be_a_method() -> None:
    class Reader:
        def read(self, page: Any, limit: Any = 5) -> Any: ...

    books = Scraper("books")
    books.page(Reader().read)
    books.page("open")(lambda *pages: None)


@pytest.mark.parametrize("thing", [5, ["x"]])
def test_what_is_no_function_is_no_handler(thing: Any) -> None:
    with pytest.raises(BadScraper, match="is put on a function"):
        Scraper("books").page(thing)
    with pytest.raises(BadScraper, match="is put on a function"):
        Scraper("books").page("x")(thing)
    with pytest.raises(BadScraper, match="is put on a function"):
        Scraper("books").start(thing)
    with pytest.raises(BadScraper, match="a label is a word"):
        Scraper("books").page("")(lambda page: None)


def test_an_unknown_label_is_answered_with_the_nearest() -> None:
    books = Scraper("books")
    with pytest.raises(BadScraper, match=r"has no handler 'detail'; it has no labelled ones\."):
        books.handler("detail")
    with pytest.raises(BadScraper, match=r"has no default handler; put @books.page on a function\."):
        books.handler(None)
    books.page("detail")(lambda page: None)
    with pytest.raises(BadScraper, match=r"has no handler 'detial'; did you mean 'detail'\?"):
        books.handler("detial")
    with pytest.raises(BadScraper, match=r"has no handler 'zzz'; it has 'detail'\."):
        books.handler("zzz")


# The start


async def test_a_run_begins_with_the_start_urls_and_then_what_start_yields() -> None:
    books = Scraper("books", start=["https://a.example/", Request("https://b.example/", to="detail")])

    @books.start
    def more() -> Any:
        yield "https://c.example/"
        yield [Request("https://d.example/"), None, ("https://e.example/",)]

    requests = await begun(books)
    assert [request.url[8] for request in requests] == ["a", "b", "c", "d", "e"]
    assert requests[1].to == "detail"


async def test_start_may_be_of_any_kind_of_function() -> None:
    async def numbers() -> Any:
        yield Request("https://a.example/")
        yield [Request("https://b.example/")]

    async def later() -> Any:
        return [Request("https://a.example/"), numbers()]

    for function, count in ((numbers, 2), (later, 3), (lambda: None, 0), (lambda: "https://a.example/", 1)):
        books = Scraper("books")
        assert books.start(function) is function
        assert len(await begun(books)) == count


async def test_start_is_read_as_it_comes_and_not_held() -> None:
    books = Scraper("books")
    made = []

    @books.start
    def endless() -> Any:
        while True:
            made.append(1)
            yield "https://a.example/"

    coming = books.requests_at_start()
    for _ in range(3):
        await anext(coming)
    assert len(made) == 3


async def test_start_is_given_the_input_if_it_asks_for_it() -> None:
    cart = Scraper("cart", input=Cart)

    @cart.start
    def searches(cart: Cart) -> Any:
        for item in cart.items:
            yield Request(f"https://shop.example/?q={item}&zip={cart.zipcode}", group=item)

    given = cart.parse_input(b'{"items": ["milk", "eggs"], "zipcode": "10115"}')
    requests = await begun(cart, given)
    assert [(request.url, request.group) for request in requests] == [
        ("https://shop.example/?q=milk&zip=10115", "milk"),
        ("https://shop.example/?q=eggs&zip=10115", "eggs"),
    ]
    with pytest.raises(BadScraper, match="needs an input with items, zipcode"):
        await begun(cart)
    without = Scraper("cart", input=Cart)
    without.start(lambda: "https://a.example/")
    assert len(await begun(without, given)) == 1


async def test_start_yields_no_items() -> None:
    books = Scraper("books")
    books.start(lambda: {"title": "x"})
    with pytest.raises(BadScraper, match=r"@start <lambda> \(test_scraper.py:\d+\) yielded a dict; it yields Requests"):
        await begun(books)


async def test_a_scraper_needs_no_start_function() -> None:
    assert await begun(Scraper("books", start="https://a.example/")) == [Request("https://a.example/")]
    assert await begun(Scraper("books")) == []


async def test_start_may_have_defaults() -> None:
    books = Scraper("books")
    books.start(lambda url="https://a.example/": url)
    assert await begun(books) == [Request("https://a.example/")]


def test_start_takes_what_it_can_be_given_and_is_there_once() -> None:
    with pytest.raises(BadScraper, match="takes no argument, as there is no input="):
        Scraper("books").start(lambda given: None)
    with pytest.raises(BadScraper, match="takes at most one argument, its input"):
        Scraper("books", input=Cart).start(lambda given, more: None)
    books = Scraper("books")
    books.start(lambda: None)
    with pytest.raises(BadScraper, match=r"has two @start functions: test_scraper.py:\d+ is the first"):
        books.start(lambda: None)


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        (b"{", "The input of 'cart' is wrong: it: Invalid JSON"),
        ({"items": []}, "The input of 'cart' is wrong: the field 'zipcode': Field required."),
        ({"items": [1], "zipcode": "x"}, "The input of 'cart' is wrong: the field 'items.0': Input should be a valid"),
        ({}, "The input of 'cart' is wrong: the field 'items': Field required (and 1 more)."),
        (None, "Scraper 'cart' needs an input with items, zipcode."),
    ],
)
def test_a_wrong_input_is_one_sentence_with_field_and_problem(raw: Any, sentence: Any) -> None:
    with pytest.raises(BadScraper) as refused:
        Scraper("cart", input=Cart).parse_input(raw)
    assert str(refused.value).startswith(sentence)
    assert "\n" not in str(refused.value)


def test_a_scraper_without_a_model_takes_no_input() -> None:
    assert Scraper("books").parse_input(None) is None
    with pytest.raises(BadScraper, match="Scraper 'books' takes no input"):
        Scraper("books").parse_input({"a": 1})
    parsed = Scraper("cart", input=Cart).parse_input({"items": ["a"], "zipcode": "1"})
    assert parsed == Cart(items=["a"], zipcode="1")
