"""One request to the hostile site, and every way to answer it that stays within HTTP. The rest writes bytes itself."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import responses
from typing import SupportsIndex
from urllib.parse import parse_qsl, unquote

HTML = "text/html; charset=utf-8"
_BODILESS = {204, 304}
_LINGER_ZERO = struct.pack("ii", 1, 0)


class ClientGoneError(Exception):
    """The client has closed its side (or shut it down for writing), so nobody waits for the answer."""


class StampedReader(asyncio.StreamReader):
    """A reader that knows when its latest bytes arrived, before any task was woken, and that its peer has left."""

    def __init__(self, *, limit: int, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=limit, loop=loop)
        self.arrived = 0.0
        self.gone = asyncio.Event()

    def feed_data(self, data: Iterable[SupportsIndex]) -> None:
        self.arrived = time.time()
        super().feed_data(data)

    def feed_eof(self) -> None:
        self.gone.set()
        super().feed_eof()

    def set_exception(self, exc: Exception) -> None:
        self.gone.set()
        super().set_exception(exc)


@dataclass(slots=True)
class SiteMemory:
    """What the site remembers between requests."""

    asked: dict[str, int] = field(default_factory=dict)
    """How often a name has been asked for, for routes that change their mind."""
    buckets: dict[tuple[str, str, float], tuple[float, float]] = field(default_factory=dict)
    """(host, peer, rate) to (tokens left, when counted by the monotonic clock)."""

    def count(self, name: str) -> int:
        """How often `name` has been asked for, this time included."""
        self.asked[name] = self.asked.get(name, 0) + 1
        return self.asked[name]


@dataclass(slots=True)
class Call:
    """A request whose head and body have been read. `headers` has names in lower case, the last of equals.

    `status` is what was sent so far (0: nothing). `keep_alive` False: the connection is closed after the handler.
    """

    method: str
    target: str
    headers: Mapping[str, str]
    host: str
    peer: str
    memory: SiteMemory
    reader: StampedReader
    writer: asyncio.StreamWriter
    keep_alive: bool = True
    body: bytes = b""
    status: int = 0

    @property
    def path(self) -> str:
        return unquote(self.target.partition("?")[0])

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(self.target.partition("?")[2], keep_blank_values=True))

    @property
    def cookies(self) -> dict[str, str]:
        pairs = (pair.strip().partition("=") for pair in self.headers.get("cookie", "").split(";"))
        return {name: value for name, _, value in pairs if name}

    def begin(self, status: int = 200, *fields: tuple[str, str]) -> None:
        """Send the head, with just these fields."""
        self.status = status
        lines = [
            f"HTTP/1.1 {status} {responses.get(status, 'Unusual')}",
            *(f"{name}: {value}" for name, value in fields),
            "\r\n",
        ]
        self.writer.write("\r\n".join(lines).encode("latin-1"))

    async def answer(
        self, body: bytes | str = b"", *fields: tuple[str, str], status: int = 200, content_type: str = HTML
    ) -> None:
        """A whole and honest answer; it leaves out the body where HTTP does."""
        content = body.encode() if isinstance(body, str) else body
        connection = "keep-alive" if self.keep_alive else "close"
        head = [("Content-Type", content_type), ("Connection", connection), *fields]
        if status not in _BODILESS:
            head.insert(0, ("Content-Length", str(len(content))))
        self.begin(status, *head)
        if self.method != "HEAD" and status not in _BODILESS:
            self.writer.write(content)
        await self.writer.drain()

    async def send(self, data: bytes) -> None:
        """Send bytes as they are, at the pace of the client, and let others work in between."""
        if self.reader.gone.is_set() or self.writer.is_closing():
            raise ClientGoneError
        self.writer.write(data)
        await self.writer.drain()
        await asyncio.sleep(0)

    async def pause(self, seconds: float) -> None:
        """Let time pass, but not for a client that has left."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.hang()

    async def hang(self) -> None:
        """Wait for the client to leave."""
        await self.reader.gone.wait()
        raise ClientGoneError

    def hang_up(self) -> None:
        """Close the connection after what has been sent."""
        self.keep_alive = False

    def reset(self) -> None:
        """Break the connection with RST. What was sent and not yet read is lost."""
        handle: socket.socket = self.writer.get_extra_info("socket")
        with socket.socket(fileno=os.dup(handle.fileno())) as same:  # event loops hide setsockopt; options are shared
            same.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_ZERO)
        self.keep_alive = False
        self.writer.transport.abort()


Handler = Callable[[Call, list[str]], Awaitable[None]]
"""Answers a call; the list is its path behind the first segment, split at the slashes.

A ValueError or IndexError before anything is sent means that the path is wrong, and is answered with 400.
"""
