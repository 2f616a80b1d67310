"""PostgreSQL for the contract and the model: a schema of the test's own, on a real server."""

from __future__ import annotations

from shoal.frontier.postgres.engine import PostgresEngine, open_postgres
from support.harnesses.jumping import JumpingHarness


class PostgresHarness(JumpingHarness[PostgresEngine]):
    """The schema that the URL names, on a jumping clock."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url

    async def handle(self) -> PostgresEngine:
        return await open_postgres(self.url, clock=self.clock)
