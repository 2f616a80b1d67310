"""Answers that ask the client to come back: rate limits, passing failures, redirects."""

from __future__ import annotations

import math
import time
from email.utils import formatdate
from typing import TYPE_CHECKING

from shoal.testing.hostile.ordinary import answer_linked

if TYPE_CHECKING:
    from shoal.testing.hostile.call import Call, Handler

LIMITED_PAGES = 20
"""How many linked pages there are below each `/limited/{per_second}/`."""


def _retry_after(form: str, seconds: str) -> tuple[str, str]:
    if form == "date":
        return "Retry-After", formatdate(math.ceil(time.time() + int(seconds)), usegmt=True)
    return "Retry-After", str(int(seconds))


async def _refuse(call: Call, status: int, rest: list[str]) -> None:
    match rest:
        case ["bare"]:
            await call.answer("<h1>too much</h1>", status=status)
        case [("seconds" | "date") as form, seconds]:
            await call.answer("<h1>too much</h1>", _retry_after(form, seconds), status=status)
        case ["first", times, seconds, name]:
            if call.memory.count(f"{status}:{name}") <= int(times):
                await call.answer("<h1>too much</h1>", _retry_after("seconds", seconds), status=status)
            else:
                await call.answer("<h1>at last</h1>")
        case _:
            raise ValueError("bare, seconds/{s}, date/{s} or first/{times}/{s}/{name}")


async def _too_many(call: Call, rest: list[str]) -> None:
    await _refuse(call, 429, rest)


async def _unavailable(call: Call, rest: list[str]) -> None:
    await _refuse(call, 503, rest)


async def _flaky(call: Call, rest: list[str]) -> None:
    failures, name = int(rest[0]), rest[1]
    if call.memory.count(f"flaky:{name}") <= failures:
        await call.answer("<h1>not yet</h1>", status=500)
    else:
        await call.answer("<h1>at last</h1>")


async def _limited(call: Call, rest: list[str]) -> None:
    rate = float(rest[0])
    if not 0 < rate < math.inf:
        raise ValueError("a rate above zero")
    capacity = max(1.0, rate)
    now, name = time.monotonic(), (call.host, call.peer, rate)
    tokens, counted = call.memory.buckets.get(name, (capacity, now))
    tokens = min(capacity, tokens + (now - counted) * rate)
    granted = tokens >= 1
    call.memory.buckets[name] = (tokens - granted, now)
    if granted:
        await answer_linked(call, f"/limited/{rest[0]}", LIMITED_PAGES, rest[1:])
    else:
        wait = math.ceil((1 - tokens) / rate)
        await call.answer("<h1>too fast</h1>", ("Retry-After", str(wait)), status=429)


async def _move(call: Call, location: str, *fields: tuple[str, str]) -> None:
    await call.answer("<h1>elsewhere</h1>", ("Location", location), *fields, status=int(call.query.get("status", 302)))


async def _redirect(call: Call, rest: list[str]) -> None:
    left = int(rest[0])
    if left > 0:
        await _move(call, f"/redirect/{left - 1}")
    else:
        await call.answer("<h1>arrived</h1>")


async def _redirect_loop(call: Call, rest: list[str]) -> None:
    await _move(call, "/redirect-loop" if rest else "/redirect-loop/back")


async def _redirect_to(call: Call, _rest: list[str]) -> None:
    if "url" not in call.query:
        raise ValueError("/redirect-to?url=")
    await _move(call, call.query["url"])


async def _redirect_cookie(call: Call, _rest: list[str]) -> None:
    if call.cookies.get("visited") == "yes":
        await call.answer("<h1>welcome back</h1>")
    else:
        await _move(call, "/redirect-cookie", ("Set-Cookie", "visited=yes; Path=/"))


ROUTES: dict[str, Handler] = {
    "429": _too_many,
    "503": _unavailable,
    "flaky": _flaky,
    "limited": _limited,
    "redirect": _redirect,
    "redirect-loop": _redirect_loop,
    "redirect-to": _redirect_to,
    "redirect-cookie": _redirect_cookie,
}
