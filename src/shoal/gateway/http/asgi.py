"""The few things that plain ASGI routes need of HTTP: headers, the query, a bounded body, an answer sent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs

from shoal.gateway.http.answer import Answer, Problem, unavailable
from shoal.gateway.perimeter.caller import ClientGone, caller_of

BODY_WITHIN = 30.0
"""Seconds after which a body must be there."""

MOST_HELD = 64 * 1024 * 1024
"""Bytes of bodies that one process holds before they are whole."""

CLOSE = (b"connection", b"close")

HEARD_OUT_FOR = 5.0
MOST_HEARD_OUT = 64 * 1024 * 1024
"""Seconds and bytes for which a client is heard out whose answer is known before it has said all."""

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


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


class UnfinishedBodies:
    """Bodies that come in parts, of all clients together: bounded."""

    def __init__(self, most: int = MOST_HELD) -> None:
        self._most = most
        self._held = 0

    async def read_on(self, receive: Receive, begun: bytes, most: int) -> bytes:
        """A body of which the beginning is here. Raises Problem 413 and 503, and ClientGone."""
        parts = [begun]
        size = len(begun)
        self._held += size
        try:
            more = True
            while more:
                if size > most:
                    raise too_large(most)
                if self._held > self._most:
                    raise unavailable("overloaded", "More is being sent than this process can hold.", 2)
                message = await receive()
                if message["type"] != "http.request":
                    raise ClientGone
                part = message.get("body", b"")
                parts.append(part)
                size += len(part)
                self._held += len(part)
                more = message.get("more_body", False)
            if size > most:
                raise too_large(most)
            return b"".join(parts)
        finally:
            self._held -= size


async def read_body(
    scope: Scope,
    receive: Receive,
    most: int,
    within: float = BODY_WITHIN,
    unfinished: UnfinishedBodies | None = None,
) -> bytes:
    """The whole body. Raises Problem 413 as soon as it is clear that it is larger than `most`, 408 if it has not come
    `within` so many seconds, 503 if too much is `unfinished`, and ClientGone."""
    announced = header(scope, b"content-length")
    if announced is not None and announced.isdigit() and int(announced[:20]) > most:
        raise too_large(most)
    if not caller_of(scope).heard:
        try:
            async with asyncio.timeout(within):
                return await (unfinished or UnfinishedBodies()).read_on(receive, b"", most)
        except TimeoutError:
            raise Problem(408, "body-too-slow", f"A body must be there within {within:.0f} seconds.") from None
    message = await receive()  # all of it is here
    if message["type"] != "http.request":
        raise ClientGone
    body: bytes = message.get("body", b"")
    if len(body) > most:
        raise too_large(most)
    return body


def too_large(most: int) -> Problem:
    """The client is told before it has sent all."""
    return Problem(413, "body-too-large", f"A body may have at most {most:,} bytes.")


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
    """Send a whole response at once. `receive`: from a client that has not finished yet. It is heard out, for a while;
    then the connection ends."""
    headers = [*answer.headers]
    if answer.body:
        headers += [(b"content-type", answer.kind)]
    if answer.status not in (204, 304):
        headers += [(b"content-length", b"%d" % len(answer.body))]
    if receive is None:
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": answer.body})
        return
    await send({"type": "http.response.start", "status": answer.status, "headers": [*headers, CLOSE]})
    await send({"type": "http.response.body", "body": answer.body, "more_body": True})
    await hear_out(receive)
    await send({"type": "http.response.body", "body": b""})
