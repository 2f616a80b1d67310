"""Proxies that are no good, each in its own way: whatever a client sends, this is what it gets."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from enum import StrEnum

PAGE = b"<h1>not what you asked for</h1>"


class Lie(StrEnum):
    """What a proxy does with every request."""

    HANGS = "hangs"
    CUTS = "cuts the connection at once"
    GARBAGE = "answers what is no HTTP"
    LOCKED = "wants a password"
    BAD_GATEWAY = "says 502 in the target's name"
    SHORT = "says 200, and stops before the end"
    HEAD_ONLY = "says 200, and cuts the connection"
    NO_SOCKS = "answers what is no SOCKS"


ANSWERS = {
    Lie.CUTS: b"",
    Lie.GARBAGE: b"\x00\xff\x05 this is not the web\r\n\r\n",
    Lie.NO_SOCKS: b"HTTP/1.1 200 OK\r\n\r\n",
    Lie.LOCKED: b"HTTP/1.1 407 No\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n",
    Lie.BAD_GATEWAY: b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n",
    Lie.SHORT: b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 4000\r\n\r\n" + PAGE,
    Lie.HEAD_ONLY: b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
}


class LyingProxies:
    """One proxy for each lie, while the block runs. `asked`: how often each was used."""

    def __init__(self) -> None:
        self.asked: Counter[Lie] = Counter()
        self.ports: dict[Lie, int] = {}
        self._ended = asyncio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[LyingProxies]:
        async with AsyncExitStack() as stack:
            for lie in Lie:
                server = await asyncio.start_server(self._liar(lie), "127.0.0.1", 0)
                await stack.enter_async_context(server)
                self.ports[lie] = server.sockets[0].getsockname()[1]
            try:
                yield self
            finally:
                self._ended.set()

    def _liar(self, lie: Lie) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
        async def lie_to(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with suppress(OSError):
                if await reader.read(65_536):
                    self.asked[lie] += 1
                if lie is Lie.HANGS:
                    await self._ended.wait()
                writer.write(ANSWERS.get(lie, b""))
                await writer.drain()
            writer.close()

        return lie_to
