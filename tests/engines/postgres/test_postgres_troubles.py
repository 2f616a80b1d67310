"""What a server or its administrator can refuse, each as one sentence."""

from __future__ import annotations

import asyncpg  # type: ignore[import-untyped]
import pytest

from servers.postgres import shared_server
from shoal.errors import BadSettings, EngineBroken, EngineError, EngineFull, EngineRefused, EngineUnavailable
from shoal.frontier.postgres.engine import PostgresEngine, open_postgres
from shoal.frontier.postgres.errors import clear_errors
from shoal.frontier.postgres.store.address import read_address


class TestTroubles:
    async def refused(self, url: str, kind: type[EngineError] = EngineUnavailable) -> str:
        with pytest.raises(kind) as caught:
            await open_postgres(url)
        assert "\n" not in str(caught.value)
        assert "secret" not in str(caught.value)
        return str(caught.value)

    async def test_wrong_password(self) -> None:
        server = shared_server()
        server.sql("DROP ROLE IF EXISTS guarded")
        server.sql("CREATE ROLE guarded LOGIN PASSWORD 'right'")
        assert "password" in await self.refused(server.url(user="guarded", password="secret"), EngineRefused)  # noqa: S106 - it is wrong

    async def test_unknown_user(self) -> None:
        assert "'nobody'" in await self.refused(shared_server().url(user="nobody"), EngineRefused)

    async def test_no_such_database(self) -> None:
        assert "no database 'missing'" in await self.refused(shared_server().url("missing"), EngineRefused)

    async def test_nothing_listens(self) -> None:
        assert "Nothing answers" in await self.refused("postgresql://shoal:secret@127.0.0.1:1/shoal")

    async def test_no_such_host(self) -> None:
        assert "no host" in await self.refused("postgresql://shoal:secret@nowhere.invalid/shoal")

    async def test_no_right_to_create(self) -> None:
        server = shared_server()
        server.sql("DROP ROLE IF EXISTS visitor")
        server.sql("CREATE ROLE visitor LOGIN")
        sentence = await self.refused(server.url(user="visitor", schema="visitors"), EngineRefused)
        assert "GRANT CREATE" in sentence

    async def test_a_schema_made_by_the_administrator_is_enough(self) -> None:
        server = shared_server()
        server.sql("DROP ROLE IF EXISTS tenant")
        server.sql("CREATE ROLE tenant LOGIN")
        server.sql("CREATE SCHEMA tenant AUTHORIZATION tenant", database="shoal")
        engine = await open_postgres(server.url(user="tenant", schema="tenant"))
        assert await engine.reader.runs() == []
        await engine.close()
        server.sql("DROP SCHEMA tenant CASCADE; DROP ROLE tenant", database="shoal")

    async def test_read_only(self, engine: PostgresEngine) -> None:
        server = shared_server()
        server.sql("CREATE ROLE reader LOGIN; ALTER ROLE reader SET default_transaction_read_only = on")
        server.sql("GRANT shoal TO reader")
        assert "only lets read" in await self.refused(server.url(user="reader", schema="of_reader"))
        server.sql("DROP ROLE reader")

    async def test_too_many_connections(self) -> None:
        server = shared_server()
        server.sql("CREATE ROLE crowd LOGIN CONNECTION LIMIT 0")
        assert "no more connections" in await self.refused(server.url(user="crowd"))
        server.sql("DROP ROLE crowd")

    @pytest.mark.parametrize(
        ("error", "kind", "words"),
        [
            (asyncpg.DiskFullError, EngineFull, "disk .* full"),
            (asyncpg.AdminShutdownError, EngineUnavailable, "shutting down"),
            (asyncpg.CannotConnectNowError, EngineUnavailable, "starting up"),
            (asyncpg.DataCorruptedError, EngineBroken, "damaged"),
            (asyncpg.DeadlockDetectedError, EngineUnavailable, "deadlocks"),
            (asyncpg.ConnectionDoesNotExistError, EngineUnavailable, "lost"),
            (ConnectionResetError, EngineUnavailable, "lost"),
            (TimeoutError, EngineUnavailable, "lost"),
        ],
    )
    def test_what_cannot_be_staged_has_its_sentence(
        self, error: type[Exception], kind: type[EngineError], words: str
    ) -> None:
        with pytest.raises(kind, match=words), clear_errors(read_address("postgresql://u:secret@host/db")):
            raise error("whatever")

    @pytest.mark.parametrize(
        "url", ["postgresql://host:port/db", "postgresql://host/db?schema=", "postgresql://host/db?connections=none"]
    )
    async def test_a_url_that_cannot_be(self, url: str) -> None:
        with pytest.raises(BadSettings):
            await open_postgres(url)

    async def test_after_closing_nothing_works_and_says_so(self, schema: str) -> None:
        engine = await open_postgres(shared_server().url(schema=schema))
        await engine.close()
        await engine.close()
        with pytest.raises(EngineRefused, match="closed"):
            await engine.reader.runs()
