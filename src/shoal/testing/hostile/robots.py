"""robots.txt of every kind."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, assert_never

if TYPE_CHECKING:
    from shoal.testing.hostile.call import Call

CRAWL_DELAY = 1
"""Seconds that the kind `crawl-delay` asks for."""
_PRIVATE = b"User-agent: *\nDisallow: /private/\n"
_TEXT = "text/plain; charset=utf-8"


class RobotsKind(StrEnum):
    """How a host treats those who ask for /robots.txt."""

    NONE = "none"
    """404."""
    ALLOW = "allow"
    DISALLOW_ALL = "disallow-all"
    DISALLOW_PRIVATE = "disallow-private"
    CRAWL_DELAY = "crawl-delay"
    ERROR = "500"
    TIMEOUT = "timeout"
    """Never answers."""
    REDIRECT = "redirect"
    """301 to a file that disallows /private/."""
    HUGE = "huge"
    """2 MB that disallow /private/ at the beginning and /late/ at the very end, beyond what RFC 9309 makes one read."""
    BOM = "bom"
    """Disallows /private/, behind a byte order mark."""
    HTML = "html"
    """An HTML page with status 200."""


class RobotsAt(NamedTuple):
    """301 to this URL."""

    url: str


Robots = RobotsKind | RobotsAt | str | bytes | int | Callable[["Call"], Awaitable[None]]
"""A kind, where else it is, the body itself, a bare status, or who answers."""


async def answer_robots(call: Call, robots: Robots) -> None:
    """Answer a request for robots.txt."""
    if callable(robots):
        await robots(call)
    elif isinstance(robots, RobotsKind):
        await _answer_kind(call, robots)
    elif isinstance(robots, RobotsAt):
        await call.answer(b"", ("Location", robots.url), status=301)
    elif isinstance(robots, int):
        await call.answer(b"", status=robots, content_type=_TEXT)
    else:
        await call.answer(robots, content_type=_TEXT)


async def _answer_kind(call: Call, kind: RobotsKind) -> None:
    match kind:
        case RobotsKind.NONE:
            await call.answer("no robots.txt here", status=404)
        case RobotsKind.ALLOW:
            await call.answer("User-agent: *\nDisallow:\n", content_type=_TEXT)
        case RobotsKind.DISALLOW_ALL:
            await call.answer("User-agent: *\nDisallow: /\n", content_type=_TEXT)
        case RobotsKind.DISALLOW_PRIVATE:
            await call.answer(_PRIVATE, content_type=_TEXT)
        case RobotsKind.CRAWL_DELAY:
            await call.answer(f"User-agent: *\nCrawl-delay: {CRAWL_DELAY}\nDisallow:\n", content_type=_TEXT)
        case RobotsKind.ERROR:
            await call.answer("broken", status=500)
        case RobotsKind.TIMEOUT:
            await call.hang()
        case RobotsKind.REDIRECT:
            await call.answer(b"", ("Location", f"/robots-kind/{RobotsKind.DISALLOW_PRIVATE}"), status=301)
        case RobotsKind.HUGE:
            filler = b"# a comment that fills the file and says nothing at all\n" * 40_000
            await call.answer(_PRIVATE + filler + b"Disallow: /late/\n", content_type=_TEXT)
        case RobotsKind.BOM:
            await call.answer(b"\xef\xbb\xbf" + _PRIVATE, content_type=_TEXT)
        case RobotsKind.HTML:
            await call.answer("<!doctype html><html><body><h1>Welcome to our shop</h1></body></html>")
        case _:
            assert_never(kind)


async def show_kind(call: Call, rest: list[str]) -> None:
    """`/robots-kind/{kind}`: what a host of that kind would answer."""
    (kind,) = rest
    await _answer_kind(call, RobotsKind(kind))
