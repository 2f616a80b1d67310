"""Whatever a handler gives back comes out as items and requests, or as a report that says where to look."""

import asyncio
import datetime as dt
import decimal
import itertools
import json
import uuid
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from shoal import Drop, Page, Request, Retry, Scraper
from shoal.api.yields import collect, flatten
from shoal.errors import BadScraper

URL = "https://me:secret@x.example/p"
ONE, TWO = Request("https://x.example/1"), Request("https://x.example/2")


@dataclass
class Book:
    title: Any


class Shelf(msgspec.Struct):
    books: list[Any]


class Pair(NamedTuple):
    a: int
    b: int


class Row(msgspec.Struct, array_like=True):
    cell: int


class Model(BaseModel):
    title: str
    when: dt.date


def handler(function: Any = lambda page: None, label: Any = "detail") -> Any:
    books = Scraper("books")
    books.page(label)(function)
    return books.handler(label)


async def sorted_out(result: Any) -> Any:
    collected = await collect(result, handler(), URL)
    return [json.loads(item) for item in collected.items], collected.requests


async def report(function: Any) -> Any:
    with pytest.raises(BadScraper) as wrong:
        await collect(function(None), handler(function), URL)
    return str(wrong.value)


async def agen(*things: Any) -> Any:
    for thing in things:
        await asyncio.sleep(0)
        yield thing


async def coro(thing: Any) -> Any:
    await asyncio.sleep(0)
    return thing


@pytest.mark.parametrize(
    "result",
    [
        lambda: [{"a": 1}, ONE, {"b": 2}, TWO],
        lambda: ({"a": 1}, ONE, None, {"b": 2}, TWO),
        lambda: (x for x in [{"a": 1}, ONE, {"b": 2}, TWO]),
        lambda: agen({"a": 1}, ONE, {"b": 2}, TWO),
        lambda: coro([{"a": 1}, ONE, {"b": 2}, TWO]),
        lambda: [[], [[{"a": 1}], (ONE,)], (x for x in ({"b": 2}, [TWO]))],
        lambda: agen([{"a": 1}, agen(ONE)], coro(coro([{"b": 2}])), None, map(dict.get, [{"x": TWO}], ["x"])),
        lambda: itertools.chain([{"a": 1}, ONE], itertools.islice([{"b": 2}, TWO], 2)),
    ],
)
async def test_any_nesting_comes_out_flat_and_in_order(result: Any) -> None:
    assert await sorted_out(result()) == ([{"a": 1}, {"b": 2}], [ONE, TWO])
    assert [leaf async for leaf in flatten(result()) if leaf is not None] == [{"a": 1}, ONE, {"b": 2}, TWO]


@pytest.mark.parametrize("result", [None, [], [None, [None]], itertools.chain(), {}])
async def test_nothing_is_nothing_and_an_empty_item_is_an_item(result: Any) -> None:
    assert await sorted_out(result) == (([{}] if result == {} else []), [])


MAKERS: dict[str, Any] = {
    "list": list,
    "tuple": tuple,
    "generator": lambda parts: (part for part in parts),
    "async generator": lambda parts: agen(*parts),
    "coroutine": lambda parts: coro(list(parts)),
}
PLANS = st.recursive(
    st.integers(0, 99).map(lambda n: {"n": n}) | st.none() | st.sampled_from([ONE, TWO]),
    lambda inner: st.tuples(st.sampled_from(sorted(MAKERS)), st.lists(inner, max_size=4)),
    max_leaves=20,
)


def made(plan: Any) -> Any:
    return MAKERS[plan[0]](map(made, plan[1])) if isinstance(plan, tuple) else plan


def leaves_of(plan: Any) -> Any:
    return [leaf for part in plan[1] for leaf in leaves_of(part)] if isinstance(plan, tuple) else [plan]


@given(PLANS)
def test_nothing_is_lost_or_reordered_however_deep_it_lies(plan: Any) -> None:
    leaves = leaves_of(plan)
    items, requests = asyncio.run(sorted_out(made(plan)))
    assert items == [leaf for leaf in leaves if isinstance(leaf, dict)]
    assert requests == [leaf for leaf in leaves if isinstance(leaf, Request)]

    async def flat() -> Any:
        return [leaf async for leaf in flatten(made(plan))]

    assert asyncio.run(flat()) == leaves


async def test_kinds_of_dicts_and_of_requests_count_as_what_they_are() -> None:
    class Search(Request, frozen=True):
        pass

    search = Search("https://x.example/")
    assert await sorted_out([OrderedDict(a=1), search]) == ([{"a": 1}], [search])


async def test_items_of_every_kind_become_objects() -> None:
    today = dt.date(2026, 1, 2)
    items, _ = await sorted_out(
        [Book("x"), Shelf([Book("y")]), Model(title="z", when=today), {"m": Model(title="n", when=today)}]
    )
    assert items == [
        {"title": "x"},
        {"books": [{"title": "y"}]},
        {"title": "z", "when": "2026-01-02"},
        {"m": {"title": "n", "when": "2026-01-02"}},
    ]


async def test_values_that_json_has_no_word_for_become_what_one_expects() -> None:
    moment = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
    link = Page.from_html("").follow_url("/a")[0].url
    item = {
        "at": moment,
        "cost": decimal.Decimal("1.10"),
        "id": uuid.UUID(int=1),
        "tags": {"a"},
        "file": Path("a/b"),
        3: link,
    }
    items, _ = await sorted_out(item)
    assert items == [
        {
            "at": "2026-01-02T03:04:05Z",
            "cost": "1.10",
            "id": "00000000-0000-0000-0000-000000000001",
            "tags": ["a"],
            "file": "a/b",
            "3": "https://example.test/a",
        }
    ]


async def test_synchronous_results_are_sorted_without_giving_up_control() -> None:
    coming = collect([({"a": 1} for _ in range(3)), [ONE]], handler(), URL)
    with pytest.raises(StopIteration) as done:
        coming.send(None)
    assert (len(done.value.value.items), len(done.value.value.requests)) == (3, 1)


@pytest.mark.parametrize(
    ("thing", "said"),
    [
        (
            "title",
            "it yielded a str ('title'); yield items (dict, dataclass, msgspec.Struct, pydantic model) and Requests",
        ),
        ("https://x.example/", "it yielded a str ('https://x.example/'); to have it fetched, yield Request(url)"),
        (5, "it yielded an int (5)"),
        (b"x", "it yielded a bytes (b'x')"),
        ({1}, "it yielded a set ({1})"),
        (Pair(1, 2), "it yielded a Pair (Pair(a=1, b=2))"),
        (Page.from_html("<p>x").css_first("p"), "it yielded a LexborNode"),
        (Book, "it yielded a type"),
        (Retry("x"), "it yielded Retry, which is to be raised: `raise Retry(…)`"),
        (Drop, "it yielded Drop, which is to be raised"),
        ({"a": {"b": [1, object]}}, "the item's key 'a.b.1' holds a type (<class 'object'>), which JSON cannot hold"),
        ({"node": Page.from_html("<p>x").css_first("p")}, "the item's key 'node' holds a LexborNode"),
        ({"s": "\ud800"}, "the item's key 's' holds a str"),
        (Book({"x": len}), "the item's key 'title.x' holds a builtin_function_or_method"),
        (Shelf([1, len]), "the item's key 'books.1' holds"),
        ({(1, 2): 3}, "cannot be put into JSON"),
        (Row(1), "it does not become a JSON object"),
    ],
)
async def test_what_cannot_be_used_is_reported_with_scraper_handler_line_and_address(thing: Any, said: Any) -> None:
    def gives(page: Any) -> Any:
        yield ONE
        yield [thing]

    line = gives.__code__.co_firstlineno + 2
    told = await report(gives)
    assert told.startswith(
        f"Scraper 'books', handler 'detail' (test_yields.py:{line} in gives), at https://x.example/p: "
    )
    assert said in told
    assert "secret" not in told


async def test_the_line_is_known_for_every_kind_of_handler() -> None:
    async def streams(page: Any) -> Any:
        yield ONE
        yield 5

    async def returns(page: Any) -> Any:
        return 5

    def plain(page: Any) -> Any:
        return 5

    first = streams.__code__.co_firstlineno
    assert f"(test_yields.py:{first + 2} in streams)" in await report(streams)
    assert f"(test_yields.py:{returns.__code__.co_firstlineno} in returns)" in await report(returns)
    assert f"(test_yields.py:{plain.__code__.co_firstlineno} in plain)" in await report(plain)


async def test_an_item_that_holds_itself_is_reported() -> None:
    item: dict[str, Any] = {}
    item["self"] = item
    assert "cannot" in await report(lambda page: item)


async def test_what_a_handler_raises_comes_through_and_its_generators_are_closed() -> None:
    closed = []

    def inner() -> Any:
        try:
            yield ONE
            raise Retry("later", after=5)
        finally:
            closed.append("inner")

    with pytest.raises(Retry, match="later"):
        await collect(inner(), handler(), URL)

    async def outer() -> Any:
        try:
            yield 5
        finally:
            closed.append("outer")

    with pytest.raises(BadScraper):
        await collect(outer(), handler(), URL)
    assert closed == ["inner", "outer"]
