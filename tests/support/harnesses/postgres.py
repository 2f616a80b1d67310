"""PostgreSQL for the contract and the model: a store that nothing is in, on a real server."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Self

from servers.postgres_stage import emptied_store
from shoal.frontier.postgres.engine import PostgresEngine, open_postgres
from support.harnesses.jumping import JumpingHarness


class PostgresHarness(JumpingHarness[PostgresEngine]):
    """A store on a jumping clock."""

    def __init__(self) -> None:
        super().__init__()
        self._stack = AsyncExitStack()
        self.url = ""

    async def handle(self) -> PostgresEngine:
        return await open_postgres(self.url, clock=self.clock)

    async def open(self) -> Self:
        self.url = await self._stack.enter_async_context(emptied_store())
        return await super().open()

    async def close(self) -> None:
        await super().close()
        await self._stack.aclose()
