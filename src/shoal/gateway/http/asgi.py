"""The few things that plain ASGI routes need of HTTP: headers, the query, a bounded body, an answer sent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs

from shoal.gateway.http.answer import Answer, Problem

BODY_WITHIN = 30.0
"""Seconds after which a body must be there."""

HEARD_OUT_FOR = 5.0
MOST_HEARD_OUT = 64 * 1024 * 1024
"""Seconds and bytes for which a client is heard out whose body is too large."""

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class ClientGone(Exception):
    """The client hung up before it had said everything."""


def header(scope: Scope, name: bytes) -> str | None:
    """The first header of that name (lower case), or None."""
    for key, value in scope["headers"]:
        if key == name:
            return str(value, "latin-1")
    return None


def query(scope: Scope) -> dict[str, str]:
    """The query, with the last value of each name."""
    raw = scope["query_string"]
    if not raw:
        return {}
    try:
        found = parse_qs(raw.decode("latin-1"), keep_blank_values=True, max_num_fields=50)
    except ValueError:
        raise Problem(400, "bad-query", "The query has too many fields.") from None
    return {name: values[-1] for name, values in found.items()}


async def read_body(scope: Scope, receive: Receive, most: int, within: float = BODY_WITHIN) -> bytes:
    """The whole body. Raises Problem 413 as soon as it is clear that it is larger than `most`, 408 if it has not come
    `within` so many seconds, and ClientGone."""
    announced = header(scope, b"content-length")
    if announced is not None and announced.isdigit() and int(announced) > most:
        raise too_large(most)
    message = await receive()
    body: bytes = message.get("body", b"")
    if message["type"] == "http.request" and message.get("more_body"):
        try:
            async with asyncio.timeout(within):
                return await _read_on(receive, body, most)
        except TimeoutError:
            raise Problem(
                408, "body-too-slow", f"A body must be there within {within:.0f} seconds.",
                headers=((b"connection", b"close"),),
            ) from None  # fmt: skip
    if message["type"] != "http.request":
        raise ClientGone
    if len(body) > most:
        raise too_large(most)
    return body


async def _read_on(receive: Receive, body: bytes, most: int) -> bytes:
    """The rest of a body that comes in parts."""
    more = True
    while more:
        if len(body) > most:
            raise too_large(most)
        message = await receive()
        if message["type"] != "http.request":
            raise ClientGone
        body += message.get("body", b"")
        more = message.get("more_body", False)
    if len(body) > most:
        raise too_large(most)
    return body


def too_large(most: int) -> Problem:
    """The client is told before it has sent all, so the connection cannot be used again."""
    return Problem(
        413, "body-too-large", f"A body may have at most {most:,} bytes.", headers=((b"connection", b"close"),)
    )


async def hear_out(receive: Receive) -> None:
    """Let a client finish that talks on although it has its answer: it may not look at that before. Not for ever."""
    heard = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(HEARD_OUT_FOR):
            while heard < MOST_HEARD_OUT:
                message = await receive()
                if message["type"] != "http.request" or not message.get("more_body"):
                    return
                heard += len(message.get("body", b""))


async def send_answer(send: Send, answer: Answer, receive: Receive | None = None) -> None:
    """Send a whole response at once. `receive`: from a client that may not have finished yet, and is heard out."""
    headers = [*answer.headers]
    if answer.body:
        headers += [(b"content-type", answer.kind)]
    if answer.status not in (204, 304):
        headers += [(b"content-length", b"%d" % len(answer.body))]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    if receive is not None:
        await send({"type": "http.response.body", "body": answer.body, "more_body": True})
        await hear_out(receive)
        await send({"type": "http.response.body", "body": b""})
    else:
        await send({"type": "http.response.body", "body": answer.body})
