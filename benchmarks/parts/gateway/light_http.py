"""A client that costs little: one keep-alive connection per object, bytes out, status and body in."""

from __future__ import annotations

import asyncio
from typing import cast

LENGTH = b"content-length:"
AFTER = b"retry-after:"


class Connection(asyncio.Protocol):
    """One request at a time. Answers must have a length, as those of gateways do.

    `retry_after`: of the last 503.
    """

    __slots__ = ("_answer", "_received", "_transport", "retry_after")

    def __init__(self) -> None:
        self._received = b""
        self._answer: asyncio.Future[tuple[int, bytes]] | None = None
        self.retry_after = 1.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Asyncio tells us that the server is there."""
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, _: Exception | None) -> None:
        """Asyncio tells us that it has gone."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionResetError("the gateway hung up"))

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        """Status and body of the answer to a whole request."""
        if self._transport.is_closing():
            raise ConnectionResetError("the gateway hung up")
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._answer

    def close(self) -> None:
        """Hang up."""
        self._transport.close()

    def data_received(self, data: bytes) -> None:
        """Asyncio brings some bytes."""
        self._received = self._received + data if self._received else data
        end = self._received.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self._received[:end].lower()
        at = head.find(LENGTH)
        length = int(head[at + len(LENGTH) :].split(b"\r\n", 1)[0]) if at >= 0 else 0
        if len(self._received) < end + 4 + length:
            return
        if head[9:12] == b"503":
            later = head.find(AFTER)
            self.retry_after = float(head[later + len(AFTER) :].split(b"\r\n", 1)[0]) if later >= 0 else 1.0
        body = self._received[end + 4 : end + 4 + length]
        self._received = b""
        if self._answer is not None and not self._answer.done():
            self._answer.set_result((int(head[9:12]), body))


def post(path: str, body: bytes) -> bytes:
    """A submission as bytes."""
    head = f"POST {path} HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\n"
    return head.encode() + b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def get(path: str) -> bytes:
    """A question as bytes."""
    return f"GET {path} HTTP/1.1\r\nHost: gateway\r\n\r\n".encode()


async def connect(host: str, port: int) -> Connection:
    """A connection that stands."""
    _, connection = await asyncio.get_running_loop().create_connection(Connection, host, port)
    return connection
