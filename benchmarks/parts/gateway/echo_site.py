"""A site that says what it was asked for: `python echo_site.py` prints its port and serves on all of 127.0.0.0/8."""

from __future__ import annotations

import asyncio
from typing import cast

import uvloop


class Echo(asyncio.Protocol):
    """One connection: one request after the other, each answered at once."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Asyncio tells us that a client is there."""
        self._transport = cast("asyncio.Transport", transport)
        self._received = b""

    def data_received(self, data: bytes) -> None:
        """Asyncio brings some bytes."""
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            target = self._received[: self._received.find(b"\r\n")].split(b" ")[1]
            self._received = self._received[end + 4 :]
            page = b"<html><body><p>%s</p></body></html>" % target.replace(b"&", b"&amp;")
            head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(page)
            self._transport.write(head + page)


async def serve() -> None:
    """Until the process is ended."""
    server = await asyncio.get_running_loop().create_server(Echo, "0.0.0.0", 0, backlog=1024)  # noqa: S104 - loopback's
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve())
