"""Clients that do not say what they want."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from shoal.core.clock import millis
from shoal.frontier.sqlite.engine import SqliteEngine
from shoal.gateway import server
from shoal.gateway.options import GatewayOptions
from shoal.gateway.perimeter import connection
from shoal.testing.jump_clock import JumpClock
from support.gateway_parts import shop_scraper
from support.waiting import until


@asynccontextmanager
async def connected(
    engine: SqliteEngine, clock: JumpClock
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A gateway by that clock, and a client that has connected to it and said nothing yet."""
    gateway = server.GatewayProcess(engine, [shop_scraper()], GatewayOptions(store_patience=60), clock)
    at = server.listening("127.0.0.1", 0, shared=False)
    running = asyncio.create_task(gateway.run(at))

    async def connection() -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        with suppress(ConnectionError):
            return await asyncio.open_connection(*at.getsockname())
        return None

    reader, writer = await until(connection, "the gateway listens")
    await until(gateway._connections, "the gateway has the connection")
    yield reader, writer
    writer.close()
    gateway.stop()
    await running


@pytest.mark.parametrize("said", [b"", b"GET /health HT", b"GET /health HTTP/1.1\r\nHost: localhost\r\n"])
async def test_whoever_does_not_say_what_he_wants_is_hung_up_on(engine: SqliteEngine, said: bytes) -> None:
    clock = JumpClock()
    async with connected(engine, clock) as (reader, writer):
        writer.write(said)
        told = asyncio.create_task(reader.read())

        def hung_up() -> bool:
            clock.advance(millis(connection.HEAD_WITHIN + server.LOOK_FOR_THE_SLOW))
            return told.done()

        await until(hung_up, "the gateway hangs up")
        assert told.result().startswith(b"HTTP/1.1 408 ")


async def test_whoever_still_has_time_is_not(engine: SqliteEngine) -> None:
    clock = JumpClock()
    async with connected(engine, clock) as (reader, writer):
        for _ in range(6):
            clock.advance(millis(connection.HEAD_WITHIN) // 6)
            await until(lambda: clock.sleeping, "it has looked")
        writer.write(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 204 ")
