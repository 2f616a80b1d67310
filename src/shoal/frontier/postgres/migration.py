"""Bringing the schema up to this version of Shoal, however many workers start at once."""

from __future__ import annotations

from typing import Any

from shoal.errors import EngineBroken, EngineUnavailable
from shoal.frontier.postgres.address import Address, quoted
from shoal.frontier.postgres.statements import FUNCTIONS, LOOKS, PLANNED, STATEMENTS, VERBS

SCHEMA_VERSION = 1
OLDEST_SERVER = 130000
_LOCK = 0x53484F41  # "SHOA"


async def prepare(connection: Any, address: Address, *, create: bool) -> None:
    """See to it that the schema is there and of this version. Raises EngineBroken if it is newer."""
    server = connection.get_server_version()
    if server.major * 10000 < OLDEST_SERVER:
        raise EngineUnavailable(
            f"PostgreSQL {server.major} at {address.host} is too old; Shoal needs {OLDEST_SERVER // 10000} or newer."
        )
    async with connection.transaction():
        if await _version(connection, address) == SCHEMA_VERSION:
            await connection.execute(f"SELECT {quoted(address.schema)}.notice_restore()")
            return
        await connection.execute(f"SELECT pg_advisory_xact_lock({_LOCK}, hashtext({_literal(address.schema)}))")
        version = await _version(connection, address)
        if version == SCHEMA_VERSION:
            return
        if version is None and not create:
            raise EngineUnavailable(
                f"There is no store in schema {address.schema} of {address.shown} yet. "
                "Start a run, or name another engine with --engine."
            )
        if version is not None and version > SCHEMA_VERSION:
            raise EngineBroken(
                f"Schema {address.schema} of {address.shown} was written by a newer Shoal (schema {version}, this one "
                f"knows {SCHEMA_VERSION}). Use that version, or another schema (?schema=… in the engine URL)."
            )
        await _migrate(connection, address, version or 0)


async def _version(connection: Any, address: Address) -> int | None:
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


async def _migrate(connection: Any, address: Address, version: int) -> None:
    schema = quoted(address.schema)
    if not await connection.fetchval("SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = $1)", address.schema):
        await connection.execute(f"CREATE SCHEMA {schema}")
    await connection.execute(f"SET LOCAL search_path TO {schema}")
    if version < 1:
        await connection.execute("CREATE TABLE meta (key text PRIMARY KEY, value text NOT NULL)")
        await connection.execute(STATEMENTS["schema"])
    for name in FUNCTIONS:
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
