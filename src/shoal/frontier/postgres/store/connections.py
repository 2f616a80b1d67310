"""Connections to one server: opened when needed, used by one call at a time, replaced when broken.

Nothing lives in a session: each verb is one call of one function, so that any connection will do, also one that a
pooler in transaction mode hands out anew for each call.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import msgspec

from shoal.core.clock import Clock, Moment
from shoal.errors import EngineRefused
from shoal.frontier.contract.timeouts import StoreTimeouts
from shoal.frontier.postgres.errors import AGAIN, ENDING, FORGOTTEN, clear_errors, is_of_value
from shoal.frontier.postgres.store.address import PostgresAddress, quoted
from shoal.frontier.postgres.store.columns import Composite, type_name

TIMEOUTS = StoreTimeouts(connect=10.0, call=20.0)
"""A connection that does not answer for so long is taken to be dead."""

TRIES = 10
"""How often a verb is repeated that lost against others."""


class Link:
    """One connection, with the statements that it has prepared.

    Statements are named by what they say: behind a pooler, where a name may meet the statement of another client, it
    can only meet the same one.
    """

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self._statements: dict[str, Any] = {}

    @property
    def is_closed(self) -> bool:
        return bool(self.connection.is_closed())

    async def fetch(self, query: str, values: Sequence[Any]) -> list[Any]:
        """One round trip, from the second time on."""
        statement = self._statements.get(query)
        if statement is None:
            name = f"shoal_{sha256(query.encode()).hexdigest()[:32]}"
            statement = self._statements[query] = await self.connection.prepare(query, name=name)
        rows: list[Any] = await statement.fetch(*values)
        return rows

    async def fetch_unprepared(self, query: str, values: Sequence[Any]) -> list[Any]:
        """Several round trips, in a transaction: so a pooler sends all of them to the same server."""
        async with self.connection.transaction():
            rows: list[Any] = await self.connection.fetch(query, *values)
            return rows

    async def close(self) -> None:
        """Say goodbye, or else hang up."""
        try:
            await self.connection.close(timeout=2)
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, TimeoutError):
            self.connection.terminate()


class Connections:
    """Calls functions of the schema. Answers are given only when they are durable."""

    def __init__(
        self, address: PostgresAddress, clock: Clock | None = None, timeouts: StoreTimeouts = TIMEOUTS
    ) -> None:
        self.address = address
        self._clock = clock
        self._timeouts = timeouts
        self._schema = quoted(address.schema)
        self._queries: dict[tuple[object, ...], str] = {}
        self._idle: list[Link] = []
        self._room = asyncio.Semaphore(address.connections)
        self._closed = False
        self._prepares = True
        self._chance = random.Random()  # noqa: S311 - spreads repeats, hides nothing

    @property
    def name(self) -> str:
        """The server, as the beginning of a sentence."""
        return f"PostgreSQL at {self.address.host}"

    def now(self) -> Moment | None:
        """What a verb takes for now; None = the server's own clock decides."""
        return self._clock.now() if self._clock else None

    async def connect(self) -> Any:
        """A new connection, outside of the pool."""
        return await asyncpg.connect(
            self.address.dsn,
            timeout=self._timeouts.connect,
            command_timeout=self._timeouts.call,
            statement_cache_size=0,
        )

    async def rows(self, function: str, *values: Any) -> list[Any]:
        """What a function answers. Repeated, bounded and with jitter, as long as it loses against others."""
        query, sent = self.call(function, *values)
        with clear_errors(self.address):
            for attempt in range(1, TRIES):
                try:
                    return await self._fetch(query, sent)
                except asyncpg.PostgresError as error:
                    if error.sqlstate in FORGOTTEN:
                        self._prepares = False
                    elif error.sqlstate not in AGAIN:
                        raise
                await asyncio.sleep(self._chance.uniform(0, 0.002 * 2 ** min(attempt, 6)))
            return await self._fetch(query, sent)

    async def row(self, function: str, *values: Any) -> Any:
        """The one row of a function that answers one."""
        return (await self.rows(function, *values))[0]

    async def value(self, function: str, *values: Any) -> Any:
        """The one value of a function that answers one."""
        return (await self.rows(function, *values))[0][0]

    async def close(self) -> None:
        """Let go of all connections. The second time: nothing."""
        self._closed = True
        await self.let_go()

    async def let_go(self) -> None:
        """Close what is idle. The next call opens a new one."""
        idle, self._idle = self._idle, []
        await asyncio.gather(*(link.close() for link in idle))

    def call(self, function: str, *values: Any) -> tuple[str, list[Any]]:
        """The call of a function, and what is sent with it: in place of a composite, its fields.

        So the driver only ever meets types that every server has, and need not ask what the store's own are.
        """
        sent: list[Any] = []
        for value in values:
            if isinstance(value, Composite):
                sent += msgspec.structs.astuple(value)
            else:
                sent.append(value)
        shape = (function, *map(type, values))
        query = self._queries.get(shape)
        if query is None:
            places = (f"${number}" for number in range(1, len(sent) + 1))
            arguments = ", ".join([self._argument(value, places) for value in values])
            query = f"SELECT * FROM {self._schema}.{function}({arguments})"  # noqa: S608 - names of our own
            self._queries[shape] = query
        return query, sent

    def _argument(self, value: Any, places: Iterator[str]) -> str:
        if not isinstance(value, Composite):
            return next(places)
        fields = ", ".join(next(places) for _ in value.__struct_fields__)
        return f"ROW({fields})::{self._schema}.{type_name(type(value))}"

    async def _fetch(self, query: str, values: Sequence[Any]) -> list[Any]:
        async with self._one() as link:
            if self._prepares:
                return await link.fetch(query, values)
            return await link.fetch_unprepared(query, values)

    @asynccontextmanager
    async def _one(self) -> AsyncIterator[Link]:
        if self._closed:
            raise EngineRefused(f"The engine at {self.address.shown} has been closed.")
        async with self._room:
            link = await self._take()
            fine = False
            try:
                yield link
                fine = True
            except asyncpg.PostgresError as error:
                fine = not (error.sqlstate or "").startswith(ENDING)
                raise
            except Exception as error:
                fine = is_of_value(error)
                if not fine:
                    self._hang_up()
                raise
            finally:
                if fine and not self._closed and not link.is_closed:
                    self._idle.append(link)
                else:  # also when a call was cancelled: its answer may still be on the way
                    link.connection.terminate()

    def _hang_up(self) -> None:
        """Close what is idle: if one connection has broken, others may wait for answers that never come."""
        idle, self._idle = self._idle, []
        for link in idle:
            link.connection.terminate()

    async def _take(self) -> Link:
        while self._idle:
            link = self._idle.pop()
            if not link.is_closed:
                return link
        return Link(await self.connect())
