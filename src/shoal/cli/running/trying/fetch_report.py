"""What `shoal fetch` tells of a page: each request with its headers and its phases, robots.txt, what caches may do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from shoal.cli.output.text import plain, size
from shoal.cli.running.trying.trial import Tried, is_robots
from shoal.config.settings import MASK, mask_url

if TYPE_CHECKING:
    from shoal.fetch.observing.observed_fetcher import ObservedRequest

SECRET = frozenset({"authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key"})
_CACHING = ("ETag", "Last-Modified", "Cache-Control", "Expires", "Age", "Vary")


def report(tried: Tried, agent: str, *, obeyed: bool) -> dict[str, Any]:
    """All of it, as JSON has it. Secrets are masked, in headers and URLs."""
    answer = tried.answer
    return {
        "url": _shown(tried.request.url),
        "final_url": None if answer is None else _shown(answer.url),
        "status": None if answer is None else answer.status,
        "error": tried.reason,
        "robots": _verdict(tried, obeyed=obeyed),
        "requests": [_request(made, agent) for made in tried.requests],
        "cache": {} if answer is None else {name: answer.headers[name] for name in _CACHING if name in answer.headers},
    }


def lines(told: Mapping[str, Any]) -> Iterator[str]:
    """The same for people."""
    for number, made in enumerate(told["requests"], 1):
        yield f"{number}  {made['method']} {plain(made['url'])}"
        yield f"   {_outcome(made)}"
        for sign, headers in ((">", made["sent"]), ("<", made["headers"])):
            yield from (f"   {sign} {name}: {plain(value)}" for name, value in headers)
    yield f"robots.txt  {told['robots']}"
    if told["cache"]:
        yield "cache       " + "; ".join(f"{name}: {plain(value)}" for name, value in told["cache"].items())


def _outcome(made: Mapping[str, Any]) -> str:
    if made["error"] is not None:
        return f"no answer: {made['error']}"
    phases = [f"{name} {made[key]:g} ms" for name, key in _PHASES if made[key] is not None]
    packed = f" ({size(made['received'])} received)" if made["received"] != made["bytes"] else ""
    return f"HTTP {made['status']}, {size(made['bytes'])}{packed}: {', '.join(phases)}"


_PHASES = (("connect", "connect_ms"), ("first byte", "first_byte_ms"), ("all", "total_ms"))


def _request(made: ObservedRequest, agent: str) -> dict[str, Any]:
    response, fetch = made.response, made.fetch
    return {
        "method": fetch.method,
        "url": _shown(fetch.url),
        "exit": fetch.exit,
        "robots_file": is_robots(made),
        "status": None if response is None else response.status,
        "error": None if made.error is None else made.error.text,
        "sent": _masked({"User-Agent": agent, **fetch.headers}.items()),
        "headers": [] if response is None else _masked(response.headers.items()),
        "bytes": 0 if response is None else len(response.body),
        "received": 0 if response is None else response.received,
        "connect_ms": _rounded(made.connected),
        "first_byte_ms": _rounded(made.first_byte),
        "total_ms": _rounded(made.took),
    }


def _verdict(tried: Tried, *, obeyed: bool) -> str:
    if not obeyed:
        return "not asked (obey_robots=False)"
    if tried.disallowed:
        return "disallowed"
    return "allowed" if tried.hops else "not known"


def _masked(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(str(name), MASK if name.lower() in SECRET else mask_url(value)) for name, value in headers]


def _shown(url: str) -> str:
    return mask_url(url)


def _rounded(millis: float | None) -> float | None:
    return None if millis is None else round(millis, 1)
