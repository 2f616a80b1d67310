"""Many sites in one process, with an access log: `python watched_target.py LOG` prints its port.

It listens on all of 127.0.0.0/8, so that each address there is a site of its own, and tells who asks by the address
that the request comes from. The log has one record of RECORD for each request, written when its head has been read.
"""

from __future__ import annotations

import asyncio
import sys
import time
from itertools import pairwise
from pathlib import Path
from struct import Struct
from typing import IO, NamedTuple, cast

import uvloop

RECORD = Struct("<QII")
"""Nanoseconds of the monotonic clock, which all processes of a machine share; the site's address; who asked."""

PAGE = b"<html><body><h1>A page</h1>" + b"<p>some text to read</p>" * 100 + b"</body></html>"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s" % (len(PAGE), PAGE)
NO_RULES = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


class Seen(NamedTuple):
    """One request, as the target saw it."""

    at: int
    site: int
    peer: int


def read_log(file: Path) -> list[Seen]:
    """All requests so far, in the order in which they came."""
    written = file.read_bytes()
    whole = len(written) // RECORD.size * RECORD.size
    return [Seen(*record) for record in RECORD.iter_unpack(written[:whole])]


def gaps(seen: list[Seen]) -> list[float]:
    """Seconds from each request to the next of the same site by the same way."""
    times: dict[tuple[int, int], list[int]] = {}
    for request in seen:
        times.setdefault((request.site, request.peer), []).append(request.at)
    return [(later - sooner) / 1e9 for of_slot in times.values() for sooner, later in pairwise(of_slot)]


class Site(asyncio.Protocol):
    """One connection: one request after the other, each answered at once."""

    log = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Asyncio tells us that a client is there."""
        self._transport = cast("asyncio.Transport", transport)
        self._site = _number(transport.get_extra_info("sockname")[0])
        self._peer = _number(transport.get_extra_info("peername")[0])
        self._received = b""

    def data_received(self, data: bytes) -> None:
        """Note each whole request, then answer it."""
        self._received += data
        while b"\r\n\r\n" in self._received:
            head, _, self._received = self._received.partition(b"\r\n\r\n")
            self.log += RECORD.pack(time.monotonic_ns(), self._site, self._peer)
            self._transport.write(NO_RULES if head.startswith(b"GET /robots.txt ") else ANSWER)


def _number(address: str) -> int:
    return int.from_bytes(bytes(map(int, address.split("."))), "big")


async def main(log: IO[bytes]) -> None:
    """Serve until killed; what was seen goes to the file ten times a second."""
    server = await asyncio.get_running_loop().create_server(Site, "0.0.0.0", 0, backlog=4096)  # noqa: S104 - loopback
    print(server.sockets[0].getsockname()[1], flush=True)
    while True:
        await asyncio.sleep(0.1)
        log.write(Site.log)
        Site.log.clear()


if __name__ == "__main__":
    with Path(sys.argv[1]).open("ab", buffering=0) as file:
        uvloop.run(main(file))
