"""The part of the hostile site that behaves: linked pages with items, and plain pages of every kind."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shoal.testing.hostile.call import Call, Handler

BROKEN_TITLE = "Broken & readable"
"""The text of the h1 of `/html/broken`."""
_MOST_KILOBYTES = 256 * 1024
_FANOUT = 10


@dataclass(frozen=True, slots=True)
class SiteItem:
    """The product on a page of `/site/{n}/`."""

    title: str
    price: str


def site_item(index: int) -> SiteItem:
    """The product on page `index`: `h1` and `.price` of that page."""
    return SiteItem(f"Product {index}", f"{index * 37 % 9900 / 100 + 1:.2f}")


def site_path(size: int, index: int) -> str:
    """The path of page `index` of the site of `size` pages; page 0 is the root."""
    return f"/site/{size}/p/{index}" if index else f"/site/{size}/"


def site_links(size: int, index: int) -> list[int]:
    """The pages that a page links to: a tree that reaches all, the way back, and some that were surely seen."""
    children = range(index * _FANOUT + 1, min(index * _FANOUT + 1 + _FANOUT, size))
    elsewhere = {(index - 1) // _FANOUT if index else 0, (index + 1) % size, index * 7919 % size}
    return [*children, *sorted(elsewhere - set(children))]


@lru_cache(maxsize=16_384)
def linked_page(prefix: str, size: int, index: int) -> bytes:
    """The HTML of a page of a linked site below `prefix`, whose pages are `prefix/` and `prefix/p/{index}`."""
    item = site_item(index)
    links = "\n".join(
        f'<li><a class="page" href="{prefix}/{f"p/{other}" if other else ""}">Product {other}</a></li>'
        for other in site_links(size, index)
    )
    return (
        f"<!doctype html><html><head><title>{item.title}</title></head><body><article>"
        f'<h1>{item.title}</h1><p class="price">{item.price}</p></article><ul>{links}</ul></body></html>'
    ).encode()


async def answer_linked(call: Call, prefix: str, size: int, rest: list[str]) -> None:
    """Answer with the page of a linked site that `rest` names; 404 if it has no such page."""
    match rest:
        case [] | [""]:
            index = 0
        case ["p", number] if number.isascii() and number.isdigit():
            index = int(number)
        case _:
            index = size
    if index < size:
        await call.answer(linked_page(prefix, size, index))
    else:
        await call.answer("no such page", status=404)


async def _site(call: Call, rest: list[str]) -> None:
    size = int(rest[0])
    await answer_linked(call, f"/site/{size}", size, rest[1:])


async def _delay(call: Call, rest: list[str]) -> None:
    match rest:
        case [ms]:
            slow = True
        case ["first", times, ms, name]:
            slow = call.memory.count(f"delay:{name}") <= int(times)
        case _:
            raise ValueError("{ms} or first/{times}/{ms}/{name}")
    if slow:
        await call.pause(int(ms) / 1000)
    await call.answer(f"<h1>after {ms} ms</h1>")


async def _status(call: Call, rest: list[str]) -> None:
    code = int(rest[0])
    if not 200 <= code <= 999:
        raise ValueError(f"{code} cannot be the status of a final answer")
    await call.answer(f"<h1>status {code}</h1>", status=code)


async def _echo(call: Call, _rest: list[str]) -> None:
    seen = {
        "method": call.method,
        "path": call.target,
        "headers": dict(call.headers),
        "body": call.body.decode("utf-8", "replace"),
    }
    await call.answer(json.dumps(seen), content_type="application/json")


async def _json(call: Call, _rest: list[str]) -> None:
    await call.answer('{"title": "Product", "price": 1.5, "tags": ["a", "é"]}', content_type="application/json")


async def _empty(call: Call, _rest: list[str]) -> None:
    await call.answer(b"")


async def _html(call: Call, rest: list[str]) -> None:
    if rest != ["broken"]:
        raise ValueError("only /html/broken")
    await call.answer(
        "<html><body><div><p>never closed <b>or in <i>order</b></i><table><tr><td>cell"
        "<h1>Broken &amp readable</h1><a href=/json>unquoted</a><a href='/empty>never ends</a><a>no target"
        "\x00<![CDATA[ what ]]><!-- open for ever <a href=/echo>"
    )


async def _big(call: Call, rest: list[str]) -> None:
    kilobytes = int(rest[0])
    if not 0 <= kilobytes <= _MOST_KILOBYTES:
        raise ValueError(f"at most {_MOST_KILOBYTES} kB")
    await call.answer(b"<p>0123456789 shoal big page of text</p>\n".ljust(64, b"-") * (kilobytes * 16))


async def _cookies(call: Call, rest: list[str]) -> None:
    if rest == ["set"]:
        wanted = call.query or {"flavour": "vanilla"}
        await call.answer("set", *(("Set-Cookie", f"{name}={value}; Path=/") for name, value in wanted.items()))
    elif rest == ["echo"]:
        await call.answer(json.dumps(call.cookies), content_type="application/json")
    else:
        raise ValueError("only set and echo")


async def _private(call: Call, _rest: list[str]) -> None:
    await call.answer("<h1>private</h1>")


async def _home(call: Call, _rest: list[str]) -> None:
    await call.answer('<h1>A hostile site</h1><a href="/site/100/">an ordinary part</a>')


ROUTES: dict[str, Handler] = {
    "": _home,
    "site": _site,
    "delay": _delay,
    "status": _status,
    "echo": _echo,
    "json": _json,
    "empty": _empty,
    "html": _html,
    "big": _big,
    "cookies": _cookies,
    "private": _private,
}
