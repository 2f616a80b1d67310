"""A web site that misbehaves on purpose, on the wire, and remembers exactly how it was treated.

In a test:

    async with HostileSite() as site:
        await fetch(site.url("/drop"))
        print(site.log.smallest_gap())

As a process of its own, which prints `ready http://127.0.0.1:PORT` when it listens:

    python -m shoal.testing.hostile_site --port 0 --log access.jsonl --robots disallow-private

Paths:
    ordinary   /site/{n}/ (n linked pages with an item each)  /json  /empty  /html/broken  /big/{kb}  /echo
               /private/…  /status/{code}  /delay/{ms}  /delay/first/{times}/{ms}/{name}  /cookies/set?name=value
               /cookies/echo
    wire       /drop  /reset  /half  /drip/{bytes}/{ms}  /endless  /headers/endless  /garbage
               /length/long|short|garbage|negative|twice  /chunked/good|bad
    encodings  /gzip  /br  /deflate  /bad-gzip  /bomb/gzip|br|deflate  /charset/{kind of CHARSET_TEXTS}
    complex    /complex/{kind of COMPLEX_PAGES or UNSEEN_PAGES} (small, and takes a parser minutes or gigabytes)
    redirects  /redirect/{n}  /redirect-loop  /redirect-to?url=  /redirect-cookie  (each with &status=, 302 if not said)
    refusals   /429|503/bare  /429|503/seconds/{s}  /429|503/date/{s}  /429|503/first/{times}/{s}/{name}
               /flaky/{failures}/{name}  /limited/{per_second}/ (linked pages behind a token bucket)
    sitemaps   /sitemap/urls|gzip|text|rss|atom|news|images|broken|cut/{n}  /sitemap/index/{files}/{n} (of /site/{n}/)
               /sitemap/big/{MB}  /sitemap/loop  /sitemap/deep/0  /sitemap/bomb|entities|external|html
    validators /etag/{name}  /modified/{name}  /plain/{name}?Header=value  /ticking/{name}?pause={ms}&Header=value
               /change/{name}  /fading/{status}/{first}/{last}/{name}  /unasked  /gate/{name}
    robots     /robots.txt (by Host, see `HostileSite.robots`)  /robots-kind/{kind}
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Self

import uvloop

from shoal.testing.access_log import AccessLog, AccessRecorder
from shoal.testing.hostile.call import StampedReader
from shoal.testing.hostile.complex_pages import COMPLEX_PAGES, UNSEEN_PAGES
from shoal.testing.hostile.connection import HEAD_LIMIT, Site, serve_connection
from shoal.testing.hostile.encodings import BOMB_MEGABYTES, CHARSET_TEXTS, PLAIN
from shoal.testing.hostile.ordinary import BROKEN_TITLE, SiteItem, site_item, site_links, site_path
from shoal.testing.hostile.robots import CRAWL_DELAY, Robots, RobotsAt, RobotsKind
from shoal.testing.hostile.wire import TRUE_BODY

if TYPE_CHECKING:
    from types import TracebackType

__all__ = [
    "BOMB_MEGABYTES",
    "BROKEN_TITLE",
    "CHARSET_TEXTS",
    "COMPLEX_PAGES",
    "CRAWL_DELAY",
    "PLAIN",
    "TRUE_BODY",
    "UNSEEN_PAGES",
    "HostileSite",
    "Robots",
    "RobotsAt",
    "RobotsKind",
    "SiteItem",
    "site_item",
    "site_links",
    "site_path",
]


class HostileSite:
    """The site, listening while the context is open. Leaving it breaks off whatever is still being answered.

    `host` "0.0.0.0" makes every address of 127.0.0.0/8 reach it; peers from elsewhere are hung up on.
    `port` 0 takes any free one. `robots` is the robots.txt of hosts that have no entry of their own in `.robots`.
    `log_file` is appended to, two lines for each request.
    """

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        robots: Robots = RobotsKind.NONE,
        log_file: Path | str | None = None,
    ) -> None:
        self._host = host
        self._wanted_port = port
        self._log_file = log_file
        self._site = Site(AccessRecorder(), default_robots=robots)
        self._connections: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    @property
    def log(self) -> AccessLog:
        """All requests so far; it grows while the site is open and stays readable afterwards."""
        return self._site.recorder.log

    @property
    def robots(self) -> dict[str, Robots]:
        """robots.txt by host name (lower case, without port): a body, a bare status, a `RobotsAt` or a `RobotsKind`."""
        return self._site.robots

    @property
    def pages(self) -> dict[str, bytes | str]:
        """HTML of your own by path; it goes before everything else."""
        return self._site.pages

    @property
    def limits(self) -> dict[tuple[str, str], int]:
        """By host name and peer: the next request of that slot is answered with 429 and so many seconds to wait."""
        return self._site.limits

    @property
    def port(self) -> int:
        """The port it listens on."""
        if self._server is None:
            raise RuntimeError("The hostile site has no port before it is entered: use `async with HostileSite()`.")
        return int(self._server.sockets[0].getsockname()[1])

    def url(self, path: str = "/", *, host: str = "127.0.0.1") -> str:
        """The URL of a path, under any name or address that leads to this machine."""
        return f"http://{host}:{self.port}{path}"

    async def arrivals(self, count: int) -> None:
        """Wait until `count` requests have arrived in all."""
        while len(self.log) < count:
            self._site.arrival.clear()
            await self._site.arrival.wait()

    async def __aenter__(self) -> Self:
        if self._log_file is not None:
            self._site.recorder = AccessRecorder(self._log_file)
        loop = asyncio.get_running_loop()

        def protocol() -> asyncio.StreamReaderProtocol:
            reader = StampedReader(limit=HEAD_LIMIT, loop=loop)
            return asyncio.StreamReaderProtocol(reader, self._accept, loop=loop)

        self._server = await loop.create_server(protocol, self._host, self._wanted_port, backlog=4096)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is None:
            return
        self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()
        self._site.recorder.close()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert isinstance(reader, StampedReader)
        if not ip_address(writer.get_extra_info("peername")[0]).is_loopback:
            writer.transport.abort()
            return
        connection = asyncio.get_running_loop().create_task(serve_connection(self._site, reader, writer))
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)


async def _serve(options: argparse.Namespace) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    site = HostileSite(host=options.host, port=options.port, robots=RobotsKind(options.robots), log_file=options.log)
    async with site:
        sys.stdout.write(f"ready http://127.0.0.1:{site.port}\n")
        sys.stdout.flush()
        await stop.wait()


def main() -> None:
    """Serve until SIGINT or SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m shoal.testing.hostile_site", description="A site that misbehaves.")
    parser.add_argument("--host", default="127.0.0.1", help="0.0.0.0 for all of 127.0.0.0/8 (default: %(default)s)")
    parser.add_argument("--port", type=int, default=0, help="0 for any free one (default: %(default)s)")
    parser.add_argument("--log", type=Path, help="JSONL file to append each request to")
    parser.add_argument("--robots", choices=[kind.value for kind in RobotsKind], default=RobotsKind.NONE.value)
    with suppress(KeyboardInterrupt):
        uvloop.run(_serve(parser.parse_args()))


if __name__ == "__main__":
    main()
