"""Fetchers, and servers that say what they are told to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from shoal.errors import TooLate
from shoal.fetch.http import HttpFetcher, Timeouts
from shoal.fetch.protocol import Fetch, FetchError, Response
from support.serving import Serve

AGENT = "ShoalTest/1.0"


def open_gate() -> None:
    """A gate that lets everything through."""


class CountingGate:
    """Counts the starts; refuses those after the first `allowed`."""

    def __init__(self, allowed: int = 1000) -> None:
        self.starts = 0
        self._allowed = allowed

    def __call__(self) -> None:
        if self.starts == self._allowed:
            raise TooLate
        self.starts += 1


@asynccontextmanager
async def impatient(**phases: float) -> AsyncIterator[HttpFetcher]:
    fetcher = HttpFetcher(AGENT, timeouts=Timeouts(**phases))
    try:
        yield fetcher
    finally:
        await fetcher.close()


def answering(*answers: bytes, heads: list[bytes] | None = None) -> Serve:
    """Each connection gets these answers, one for each request, and then the end."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            head = await reader.readuntil(b"\r\n\r\n")
            if heads is not None:
                heads.append(head)
            writer.write(answer)
            await writer.drain()

    return serve


def answer(body: bytes, *fields: str) -> bytes:
    lines = ["HTTP/1.1 200 OK", f"Content-Length: {len(body)}", *fields, "", ""]
    return "\r\n".join(lines).encode() + body


async def get(fetcher: HttpFetcher, port: int, path: str = "/") -> Response:
    return await fetcher.fetch(Fetch(f"http://127.0.0.1:{port}{path}", timeout=60), open_gate)


async def failure(fetcher: HttpFetcher, fetch: Fetch) -> FetchError:
    with pytest.raises(FetchError) as caught:
        await fetcher.fetch(fetch, open_gate)
    return caught.value
