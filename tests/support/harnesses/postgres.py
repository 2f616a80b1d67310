"""PostgreSQL for the contract and the model: a schema that nothing is in, on a real server."""

from __future__ import annotations

from typing import ClassVar

import asyncpg  # type: ignore[import-untyped]

from servers.postgres import shared_server
from shoal.frontier.postgres.engine import PostgresEngine, open_postgres
from support.harnesses.jumping import JumpingHarness


class PostgresHarness(JumpingHarness[PostgresEngine]):
    """A store on a jumping clock. It is made once for all tests of a process and emptied after each, which is a hundred
    times faster than to make its functions anew."""

    _emptied: ClassVar[list[str]] = []
    _made: ClassVar[int] = 0

    def __init__(self) -> None:
        super().__init__()
        if not self._emptied:
            PostgresHarness._made += 1
            self._emptied.append(f"emptied_{self._made}")
        self._schema = self._emptied.pop()
        self.url = shared_server().url(schema=self._schema)

    async def handle(self) -> PostgresEngine:
        return await open_postgres(self.url, clock=self.clock)

    async def close(self) -> None:
        await super().close()
        await self._empty()
        self._emptied.append(self._schema)

    async def _empty(self) -> None:
        """All rows go, and numbers begin anew. Of what is kept for good, only the version matters."""
        connection = await asyncpg.connect(shared_server().url(user="postgres"))
        try:
            await connection.execute("SET session_replication_role = replica")  # in any order
            tables = "SELECT tablename FROM pg_tables WHERE schemaname = $1 AND tablename NOT IN ('meta', 'ledger')"
            numbers = "SELECT sequencename FROM pg_sequences WHERE schemaname = $1"
            deletes = [f"DELETE FROM {self._schema}.{name}" for (name,) in await connection.fetch(tables, self._schema)]  # noqa: S608 - names of our own
            restarts = [
                f"SELECT setval('{self._schema}.{name}', 1, false)"
                for (name,) in await connection.fetch(numbers, self._schema)
            ]
            await connection.execute("; ".join(deletes + restarts))
        finally:
            await connection.close()
