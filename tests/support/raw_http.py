"""What a server really sends, byte by byte."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from shoal.testing.hostile_site import (
    HostileSite,
)

if TYPE_CHECKING:
    pass


async def raw(site: HostileSite, path: str, *, at_most: int = 10_000_000) -> tuple[bytes, bytes]:
    """All that the site sends for a GET until it closes (or `at_most`), as head and body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: raw.test\r\nConnection: close\r\n\r\n".encode())
        received = b""
        while len(received) < at_most and (piece := await reader.read(65536)):
            received += piece
    finally:
        writer.transport.abort()
    head, _, body = received.partition(b"\r\n\r\n")
    return head, body
