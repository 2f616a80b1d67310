"""A site on loopback whose every answer takes a while: `python slow_server.py --latency 0.2` prints its port.

It counts answers by User-Agent, so that it can be told which worker made how many: GET /counts.
"""

from __future__ import annotations

import argparse
import asyncio
import json

PAGE = b"<html><body><h1>A page</h1>" + b"<p>some text to read</p>" * 100 + b"</body></html>"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n"
NO_RULES = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


class SlowSite(asyncio.Protocol):
    """One connection: one request after the other, each answered after the same time."""

    latency = 0.2
    counts: dict[str, int] = {}  # noqa: RUF012 - shared by all connections on purpose

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Asyncio tells us that a client is there."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - for the type checker
        self._transport = transport
        self._received = b""

    def data_received(self, data: bytes) -> None:
        """Answer each whole request, later."""
        self._received += data
        while b"\r\n\r\n" in self._received:
            head, _, self._received = self._received.partition(b"\r\n\r\n")
            path = head.split(b" ", 2)[1]
            if path == b"/counts":
                body = json.dumps(self.counts).encode()
                self._transport.write(HEAD % len(body) + body)
            elif path == b"/robots.txt":
                self._transport.write(NO_RULES)
            else:
                agent = head.lower().partition(b"user-agent: ")[2].split(b"\r\n", 1)[0].decode()
                asyncio.get_running_loop().call_later(self.latency, self._answer, agent)

    def _answer(self, agent: str) -> None:
        self.counts[agent] = self.counts.get(agent, 0) + 1
        if not self._transport.is_closing():
            self._transport.write(HEAD % len(PAGE) + PAGE)


async def main() -> None:
    """Serve until ended."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", type=float, default=0.2)
    SlowSite.latency = parser.parse_args().latency
    server = await asyncio.get_running_loop().create_server(SlowSite, "127.0.0.1", 0, backlog=1000)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
