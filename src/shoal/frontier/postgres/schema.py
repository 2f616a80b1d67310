"""Making the schema, and bringing it up to this version of Shoal, however many workers start at once."""

from __future__ import annotations

from typing import Any

from shoal.errors import EngineRefused, NoStore
from shoal.frontier.contract.schema import Schema
from shoal.frontier.postgres.errors import clear_errors
from shoal.frontier.postgres.store.address import PostgresAddress, quoted
from shoal.frontier.postgres.store.connections import Connections
from shoal.frontier.postgres.store.statements import FUNCTIONS, LOOKS, PLANNED, STATEMENTS, TYPES, VERBS
from shoal.frontier.shared.versions import steps

SCHEMA_VERSION = 18
OLDEST_SERVER = 130000
_LOCK = 0x53484F41  # "SHOA"


async def open_store(connections: Connections, *, create: bool, migrate: bool) -> Schema:
    """As `prepare`, by a connection of its own. Raises an EngineError with one clear sentence."""
    with clear_errors(connections.address):
        connection = await connections.connect()
        try:
            return await prepare(connection, connections.address, create=create, migrate=migrate)
        finally:
            await connection.close(timeout=5)


async def prepare(connection: Any, address: PostgresAddress, *, create: bool, migrate: bool) -> Schema:
    """See to it that the schema is there and of this version, and answer what was found.

    Raises EngineRefused or EngineBroken if it is not and may not be made so.
    """
    server = connection.get_server_version()
    if server.major * 10000 < OLDEST_SERVER:
        raise EngineRefused(
            f"PostgreSQL {server.major} at {address.host} is too old; Shoal needs {OLDEST_SERVER // 10000} or newer."
        )
    async with connection.transaction():
        found = await _version(connection, address)
        if found != SCHEMA_VERSION:
            await connection.execute(f"SELECT pg_advisory_xact_lock({_LOCK}, hashtext({_literal(address.schema)}))")
            found = await _version(connection, address)
        if found is None and not create:
            raise NoStore(
                f"There is no store in schema {address.schema} of {address.shown} yet. "
                "Start a run, or name another engine with --engine."
            )
        if found is None:
            await _make(connection, address)
        else:
            where = f"Schema {address.schema} of {address.shown}"
            needed = steps(where, found, SCHEMA_VERSION, STATEMENTS, migrate=migrate)
            if needed:
                await _migrate(connection, address, needed)
        await connection.execute(f"SELECT {quoted(address.schema)}.notice_restore()")
    return Schema(SCHEMA_VERSION, found)


async def _version(connection: Any, address: PostgresAddress) -> int | None:
    """The version of the schema; None = there is none.

    Looked up in the catalogue's tables: `to_regclass` may remember from before the lock that there was nothing.
    """
    there = await connection.fetchval(
        "SELECT EXISTS (SELECT 1 FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace "
        "WHERE n.nspname = $1 AND c.relname = 'meta')",
        address.schema,
    )
    if not there:
        return None
    name = f"{quoted(address.schema)}.meta"
    return int(await connection.fetchval(f"SELECT value::int FROM {name} WHERE key = 'version'"))  # noqa: S608 - quoted


async def _make(connection: Any, address: PostgresAddress) -> None:
    schema = quoted(address.schema)
    if not await connection.fetchval("SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = $1)", address.schema):
        await connection.execute(f"CREATE SCHEMA {schema}")
    await connection.execute(f"SET LOCAL search_path TO {schema}")
    await connection.execute("CREATE TABLE meta (key text PRIMARY KEY, value text NOT NULL)")
    await connection.execute(STATEMENTS["schema"])
    await _make_functions(connection, schema)


async def _migrate(connection: Any, address: PostgresAddress, needed: list[str]) -> None:
    """Change the tables step by step; functions and their types are those of this version, all made anew."""
    schema = quoted(address.schema)
    await connection.execute(f"SET LOCAL search_path TO {schema}")
    old = await connection.fetch(
        "SELECT p.oid::regprocedure::text FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace "
        "WHERE n.nspname = $1",
        address.schema,
    )
    for (function,) in old:
        await connection.execute(f"DROP FUNCTION {function}")
    types = await connection.fetch(
        "SELECT c.oid::regclass::text FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace "
        "WHERE n.nspname = $1 AND c.relkind = 'c'",
        address.schema,
    )
    for (kind,) in types:
        await connection.execute(f"DROP TYPE {kind}")
    for step in needed:
        await connection.execute(STATEMENTS[step])
    await _make_functions(connection, schema)


async def _make_functions(connection: Any, schema: str) -> None:
    await connection.execute("SET LOCAL check_function_bodies = off")  # some use others that come later
    for name in (*TYPES, *FUNCTIONS):
        await connection.execute(STATEMENTS[name])
    for name in (*VERBS, *LOOKS):
        await connection.execute(f"ALTER FUNCTION {name} SET search_path = {schema}, pg_temp")
    for name in VERBS:
        for setting, value in PLANNED.items():
            await connection.execute(f"ALTER FUNCTION {name} SET {setting} = {value}")
    await connection.execute("DELETE FROM meta WHERE key = 'version'")
    await connection.execute(f"INSERT INTO meta VALUES ('version', '{SCHEMA_VERSION}')")  # noqa: S608 - a number


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
