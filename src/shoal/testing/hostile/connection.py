"""One connection to the hostile site: reads requests, has each recorded at once, finds who answers it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

from shoal.testing.access_log import AccessEntry, AccessRecorder
from shoal.testing.hostile import complex_pages, encodings, ordinary, refusals, sitemaps, validators, wire
from shoal.testing.hostile.call import Call, ClientGoneError, SiteMemory, StampedReader
from shoal.testing.hostile.robots import Robots, RobotsKind, answer_robots, show_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shoal.testing.hostile.call import Handler

HEAD_LIMIT = 64 * 1024
_BODY_LIMIT = 16 * 1024 * 1024


class RefusedError(Exception):
    """A request that cannot be read: answered with a status, then the connection is closed."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


@dataclass(slots=True)
class Site:
    """What the connections of one hostile site share."""

    recorder: AccessRecorder
    default_robots: Robots = RobotsKind.NONE
    robots: dict[str, Robots] = field(default_factory=dict)
    pages: dict[str, bytes | str] = field(default_factory=dict)
    limits: dict[tuple[str, str], int] = field(default_factory=dict)
    memory: SiteMemory = field(default_factory=SiteMemory)
    arrival: asyncio.Event = field(default_factory=asyncio.Event)
    numbers: Iterator[int] = field(default_factory=count)
    routes: dict[str, Handler] = field(
        default_factory=lambda: {
            **ordinary.ROUTES,
            **wire.ROUTES,
            **encodings.ROUTES,
            **complex_pages.ROUTES,
            **refusals.ROUTES,
            **sitemaps.ROUTES,
            **validators.ROUTES,
            "robots-kind": show_kind,
        }
    )

    async def answer(self, call: Call) -> None:
        """Have the call answered by whoever is in charge of its path."""
        path = call.path
        if (seconds := self.limits.pop((call.host, call.peer), None)) is not None:
            await call.answer("<h1>too much</h1>", ("Retry-After", str(seconds)), status=429)
        elif (page := self.pages.get(path)) is not None:
            await call.answer(page)
        elif path == "/robots.txt":
            await answer_robots(call, self.robots.get(call.host, self.default_robots))
        else:
            first, *rest = path.removeprefix("/").split("/")
            handler = self.routes.get(first)
            if handler is None:
                await call.answer(f"nothing at {path}", status=404)
            else:
                await handler(call, rest)


async def serve_connection(site: Site, reader: StampedReader, writer: asyncio.StreamWriter) -> None:
    """Answer requests until either side has had enough. Always closes the connection."""
    try:
        while await _serve_request(site, reader, writer):
            pass
    except RefusedError as refused:
        writer.write(f"HTTP/1.1 {refused.status} {refused}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
    except (asyncio.IncompleteReadError, ConnectionError):
        pass  # the client is gone
    finally:
        writer.close()


async def _serve_request(site: Site, reader: StampedReader, writer: asyncio.StreamWriter) -> bool:
    """Read and answer one request; whether another may follow."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        raise RefusedError(431, "Request Header Fields Too Large") from None
    started = reader.arrived
    call = _read_head(site, head, reader, writer)
    entry = AccessEntry(
        number=next(site.numbers),
        started=started,
        peer=call.peer,
        local=writer.get_extra_info("sockname")[0],
        method=call.method,
        host=call.host,
        path=call.target,
        agent=call.headers.get("user-agent", ""),
    )
    site.recorder.began(entry)
    site.arrival.set()
    try:
        call.body = await _read_body(call)
        await _answer(site, call)
    finally:
        site.recorder.ended(entry, call.status)
    return call.keep_alive


async def _answer(site: Site, call: Call) -> None:
    try:
        await site.answer(call)
    except ClientGoneError:
        call.hang_up()
    except (ValueError, IndexError) as error:
        call.hang_up()
        if call.status == 0:
            await call.answer(f"what is {call.target}? {error}", status=400)


def _read_head(site: Site, head: bytes, reader: StampedReader, writer: asyncio.StreamWriter) -> Call:
    first, *lines = head[:-4].decode("latin-1").split("\r\n")
    try:
        method, target, version = first.split(" ")
    except ValueError:
        raise RefusedError(400, "Bad Request") from None
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    if target.startswith("http://"):  # the absolute form, which is what a proxy is sent
        target = "/" + target.split("://", 1)[1].partition("/")[2]
    connection = headers.get("connection", "").lower()
    return Call(
        method=method,
        target=target,
        headers=headers,
        host=headers.get("host", "").rsplit(":", 1)[0].lower(),
        peer=writer.get_extra_info("peername")[0],
        memory=site.memory,
        reader=reader,
        writer=writer,
        keep_alive=connection != "close" if version == "HTTP/1.1" else connection == "keep-alive",
    )


async def _read_body(call: Call) -> bytes:
    if call.headers.get("expect", "").lower() == "100-continue":
        call.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    if "chunked" in call.headers.get("transfer-encoding", "").lower():
        return await _read_chunks(call.reader)
    size = call.headers.get("content-length", "0")
    if not (size.isascii() and size.isdigit()):
        raise RefusedError(400, "Bad Request")
    if int(size) > _BODY_LIMIT:
        raise RefusedError(413, "Content Too Large")
    return await call.reader.readexactly(int(size)) if int(size) else b""


async def _read_chunks(reader: StampedReader) -> bytes:
    body = b""
    while True:
        try:
            size = int((await reader.readuntil(b"\r\n")).partition(b";")[0], 16)
        except (ValueError, asyncio.LimitOverrunError):
            raise RefusedError(400, "Bad Request") from None
        if size < 0 or len(body) + size > _BODY_LIMIT:
            raise RefusedError(413, "Content Too Large")
        body += (await reader.readexactly(size + 2))[:size]
        if not size:
            return body
