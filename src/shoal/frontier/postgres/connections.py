"""Connections to one server: opened when needed, used by one call at a time, replaced when broken.

Nothing lives in a session: each verb is one call of one function, so that any connection will do, also one that a
pooler in transaction mode hands out anew for each call.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import asyncpg  # type: ignore[import-untyped]

from shoal.errors import EngineUnavailable
from shoal.frontier.postgres.address import Address, quoted
from shoal.frontier.postgres.troubles import AGAIN, FORGOTTEN, clear_errors

CONNECT_TIMEOUT = 10.0
TRIES = 10
"""How often a verb is repeated that lost against others."""


class Connections:
    """Calls functions of the schema. Answers are given only when they are durable."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._schema = quoted(address.schema)
        self._idle: list[Any] = []
        self._room = asyncio.Semaphore(address.connections)
        self._closed = False
        self._pooled = False
        self._chance = random.Random()  # noqa: S311 - spreads repeats, hides nothing

    async def connect(self) -> Any:
        """A new connection, outside of the pool."""
        return await asyncpg.connect(
            self.address.dsn, timeout=CONNECT_TIMEOUT, statement_cache_size=0 if self._pooled else 200
        )

    async def rows(self, function: str, *values: Any) -> list[Any]:
        """What a function answers. Repeated, bounded and with jitter, as long as it loses against others."""
        places = ", ".join(f"${number}" for number in range(1, len(values) + 1))
        query = f"SELECT * FROM {self._schema}.{function}({places})"  # noqa: S608 - names of our own
        with clear_errors(self.address):
            for attempt in range(1, TRIES + 1):
                try:
                    return await self._fetch(query, values)
                except asyncpg.PostgresError as error:
                    if error.sqlstate in FORGOTTEN and not self._pooled:
                        self._pooled = True
                        await self._let_go()
                    elif error.sqlstate not in AGAIN or attempt == TRIES:
                        raise
                await asyncio.sleep(self._chance.uniform(0, 0.002 * 2 ** min(attempt, 6)))
        raise AssertionError("unreachable")

    async def row(self, function: str, *values: Any) -> Any:
        """The one row of a function that answers one."""
        return (await self.rows(function, *values))[0]

    async def value(self, function: str, *values: Any) -> Any:
        """The one value of a function that answers one."""
        return (await self.rows(function, *values))[0][0]

    async def close(self) -> None:
        """Let go of all connections. The second time: nothing."""
        self._closed = True
        await self._let_go()

    async def _fetch(self, query: str, values: Sequence[Any]) -> list[Any]:
        async with self._one() as connection:
            if not self._pooled:
                rows: list[Any] = await connection.fetch(query, *values)
                return rows
            async with connection.transaction():  # so that a pooler gives the same server to all parts of the call
                return list(await connection.fetch(query, *values))

    @asynccontextmanager
    async def _one(self) -> AsyncIterator[Any]:
        if self._closed:
            raise EngineUnavailable(f"The engine at {self.address.shown} has been closed.")
        async with self._room:
            connection = await self._take()
            fine = False
            try:
                yield connection
                fine = True
            except asyncpg.PostgresError:
                fine = not connection.is_closed()
                raise
            finally:
                if fine and not self._closed and not connection.is_closed():
                    self._idle.append(connection)
                else:
                    connection.terminate()

    async def _take(self) -> Any:
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed():
                return connection
        return await self.connect()

    async def _let_go(self) -> None:
        idle, self._idle = self._idle, []
        for connection in idle:
            try:
                await connection.close(timeout=2)
            except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, TimeoutError):
                connection.terminate()
