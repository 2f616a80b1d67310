"""What a handler yields, sorted: items to be stored, requests to be made.

A handler may give None, an item, a Request, or any nesting of lists, tuples, generators, coroutines and async
generators of these. What is synchronous is walked without a single await.
"""

from __future__ import annotations

import dataclasses
import inspect
import itertools
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator
from contextlib import aclosing
from pathlib import PurePath
from types import GeneratorType
from typing import Any, NamedTuple, TypeGuard

import msgspec

from shoal.api.handler import Handler, paused_at
from shoal.api.page import Page
from shoal.api.request import Request
from shoal.core.storable import MAX_DEPTH, MAX_ITEM, json_problem
from shoal.core.url import without_credentials
from shoal.errors import BadScraper, Signal

_NESTS = (list, tuple, GeneratorType, map, filter, itertools.chain, itertools.islice)
_UNENCODABLE = (TypeError, ValueError, OverflowError, RecursionError, NotImplementedError)


class Collected(NamedTuple):
    """What one page gave: items as encoded JSON objects, and requests, each in the order of the yields."""

    items: list[bytes]
    requests: list[Request]


async def collect(result: object, handler: Handler, url: str) -> Collected:
    """Sort what `handler` gave back for the page at `url`; generators are run to their end here.

    Raises BadScraper, naming scraper, handler, URL and line, for what is neither item nor request and for items that
    JSON cannot hold. What the handler itself raises comes through unchanged.
    """
    collected = Collected([], [])
    await _sort(result, collected, _Source(result, handler, url))
    return collected


def collect_at_once(handler: Handler, page: Page, url: str) -> Collected:
    """Call `handler` and sort what it gives, in a thread without a loop.

    Raises as `collect` does, and for what would have to be awaited.
    """
    result = handler.function(page)
    steps = collect(result, handler, url)
    try:
        steps.send(None)
    except StopIteration as ended:
        collected: Collected = ended.value
        return collected
    steps.close()
    raise _Source(result, handler, url).report("it gave something to be awaited, which cannot be with thread=True")


async def flatten(result: object) -> AsyncIterator[Any]:
    """The leaves of any nesting, one by one as they come: a generator of a million is never held in memory."""
    for leaf in result if _is_nest(result) else (result,):
        if _is_nest(leaf):
            async for below in flatten(leaf):
                yield below
        elif isinstance(leaf, AsyncGenerator):
            async with aclosing(leaf):
                async for part in leaf:
                    async for below in flatten(part):
                        yield below
        elif inspect.isawaitable(leaf):
            async for below in flatten(await leaf):
                yield below
        else:
            yield leaf


def encode_item(item: object) -> bytes:
    """An item as a JSON object. Raises TypeError, naming the key that JSON cannot hold, or why no store can hold it."""
    try:
        encoded = _ENCODER.encode(item)
    except _UNENCODABLE as error:
        raise TypeError(_culprit(item, error)) from error
    if encoded[:1] != b"{":
        raise TypeError("it does not become a JSON object")
    if (problem := json_problem(encoded, MAX_ITEM)) is not None:
        raise TypeError(_too_much(item, problem))
    return encoded


class _Source(NamedTuple):
    """Whose result is being sorted, for reports."""

    result: object
    handler: Handler
    url: str

    def report(self, problem: str) -> BadScraper:
        place = paused_at(self.result, self.handler)
        error = BadScraper(
            f"Scraper {self.handler.scraper!r}, handler {self.handler.title!r} ({place}), "
            f"at {without_credentials(self.url)}: {problem}."
        )
        error.place = place
        return error


async def _sort(result: Any, into: Collected, source: _Source) -> None:
    items, requests = into
    encode = _ENCODER.encode
    for leaf in result if _is_nest(result) else (result,):
        cls = type(leaf)
        if cls is Request:
            requests.append(leaf)
        elif cls is dict:
            try:
                encoded = encode(leaf)
            except _UNENCODABLE as error:
                raise source.report(_culprit(leaf, error)) from error
            if len(encoded) > MAX_DEPTH and (problem := json_problem(encoded, MAX_ITEM)) is not None:
                raise source.report(_too_much(leaf, problem))
            items.append(encoded)
        elif leaf is not None:
            await _sort_other(leaf, into, source)


async def _sort_other(leaf: Any, into: Collected, source: _Source) -> None:
    """What comes less often than dicts and requests."""
    if _is_nest(leaf):
        await _sort(leaf, into, source)
    elif isinstance(leaf, Request):
        into.requests.append(leaf)
    elif _is_item(type(leaf)):
        try:
            into.items.append(encode_item(leaf))
        except TypeError as error:
            raise source.report(str(error)) from error
    elif isinstance(leaf, AsyncGenerator):
        async with aclosing(leaf):
            async for part in leaf:
                await _sort(part, into, source)
    elif inspect.isawaitable(leaf):
        await _sort(await leaf, into, source)
    else:
        raise source.report(_unusable(leaf))


def _is_nest(value: object) -> TypeGuard[Iterable[Any]]:
    return isinstance(value, _NESTS) and not hasattr(value, "_fields")  # a named tuple is one thing, not several


def _is_item(cls: type) -> bool:
    return issubclass(cls, dict | msgspec.Struct) or dataclasses.is_dataclass(cls) or hasattr(cls, "model_dump")


def _foreign(value: object) -> object:
    """What the encoder does not know by itself. TypeError = it cannot be put into JSON."""
    if hasattr(type(value), "model_dump"):
        return value.model_dump(mode="json")  # type: ignore[attr-defined]
    if isinstance(value, str):
        return str(value)
    if isinstance(value, PurePath):
        return str(value)
    raise TypeError(f"a {type(value).__name__} cannot be put into JSON")


_ENCODER = msgspec.json.Encoder(enc_hook=_foreign)


def _culprit(item: object, error: Exception) -> str:
    """Which key of an item cannot be encoded, and what is there."""
    path = ""
    value = item
    while True:
        found = next(((step, part) for step, part in _parts(value) if not _encodes(part)), None)
        if found is None or path.count(".") > 20:
            break
        path += f".{found[0]}" if path else str(found[0])
        value = found[1]
    if not path:
        return f"the item {_shown(item)} cannot be put into JSON ({error})"
    return f"the item's key {path!r} holds {_a(value)} ({_shown(value)}), which JSON cannot hold"


def _too_much(item: object, problem: str) -> str:
    return f"the item {_shown(item)} cannot be stored: {problem}"


def _parts(value: object) -> Iterator[tuple[object, object]]:
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list | tuple):
        yield from enumerate(value)
    elif isinstance(value, msgspec.Struct):
        yield from ((name, getattr(value, name)) for name in value.__struct_fields__)
    elif dataclasses.is_dataclass(value):
        yield from ((field.name, getattr(value, field.name)) for field in dataclasses.fields(value))


def _encodes(value: object) -> bool:
    try:
        _ENCODER.encode(value)
    except _UNENCODABLE:
        return False
    return True


def _unusable(value: object) -> str:
    if isinstance(value, Signal) or (isinstance(value, type) and issubclass(value, Signal)):
        name = value.__name__ if isinstance(value, type) else type(value).__name__
        return f"it yielded {name}, which is to be raised: `raise {name}(…)`"
    wanted = "yield items (dict, dataclass, msgspec.Struct, pydantic model) and Requests, in lists if you like"
    if isinstance(value, str) and "://" in value[:12]:
        wanted = "to have it fetched, yield Request(url) or page.follow_url(url)"
    return f"it yielded {_a(value)} ({_shown(value)}); {wanted}"


def _a(value: object) -> str:
    name = type(value).__name__
    return f"an {name}" if name[0] in "aeiouAEIOU" else f"a {name}"


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a report must not fail because a user's __repr__ does
        text = f"<{type(value).__name__}>"
    return text if len(text) <= 80 else f"{text[:77]}…"
