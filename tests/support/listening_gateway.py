"""A gateway inside a test that really listens, by any clock, and clients that are plain sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from msgspec.structs import replace

from shoal.core.clock import Clock
from shoal.core.task import DEFAULT_POOL, DIRECT
from shoal.frontier.contract.frontier import Ask
from shoal.frontier.sqlite.engine import SqliteEngine
from shoal.gateway import server
from shoal.gateway.options import GatewayOptions
from shoal.testing.contract.scene import done, worker
from support.gateway_parts import shop_scraper
from support.waiting import until

Line = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(slots=True)
class Listening:
    """A gateway that listens at a port of 127.0.0.1."""

    port: int

    async def connect(self) -> Line | None:
        with suppress(ConnectionError):
            return await asyncio.open_connection("127.0.0.1", self.port)
        return None

    async def ask(self, path: str) -> Line:
        """A connection on which this was asked for, and nothing read yet."""
        found = await until(self.connect, "the gateway listens")
        found[1].write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        return found

    async def get(self, path: str) -> tuple[bytes, bytes]:
        """Head and body of the answer."""
        reader, writer = await self.ask(path)
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
        return head, body


@asynccontextmanager
async def listening(
    engine: SqliteEngine, options: GatewayOptions | None = None, clock: Clock | None = None
) -> AsyncIterator[Listening]:
    gateway = server.GatewayProcess(engine, [shop_scraper()], options or GatewayOptions(), clock)
    at = server.listening("127.0.0.1", 0, shared=False)
    running = asyncio.create_task(gateway.run(at))
    yield Listening(at.getsockname()[1])
    gateway.abort()
    await running


async def settle_next(engine: SqliteEngine, items: Sequence[bytes], scraper: str = "shop") -> None:
    """Work on the one task that is due: these are the items of its page."""

    async def claimed() -> bool:
        ask = Ask(worker(), (scraper,), ("bulk",), {DEFAULT_POOL: (DIRECT,)}, 1)
        leases = (await engine.frontier.exchange(ask)).leases
        for lease in leases:
            await engine.frontier.exchange(replace(ask, want=0, settlements=[done(lease, *items)]))
        return bool(leases)

    await until(claimed, "the task is due")
