"""A table in a PostgreSQL database of the user's own.

Rows travel as JSON, and the server makes of each value what its column wants (`jsonb_populate_recordset`): so a table
that the user has made, with types of their choice, takes items as one that was made here does.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import msgspec

from shoal.errors import UsageError
from shoal.runs.export.places.table import ID, OWN, UserTable, missing_columns, quoted, quoted_column
from shoal.runs.export.records import ColumnKind
from shoal.runs.export.survey import Survey

_TYPES = {
    ColumnKind.BOOLEAN: "boolean",
    ColumnKind.INTEGER: "bigint",
    ColumnKind.NUMBER: "double precision",
    ColumnKind.TEXT: "text",
    ColumnKind.JSON: "jsonb",
}
_LONGEST_NAME = 63
_CONNECT_WITHIN = 30.0


class PostgresRows:
    """An open table (`TableRows`)."""

    def __init__(self, connection: asyncpg.Connection, table: UserTable, columns: Sequence[str]) -> None:
        name, names = quoted(table.name), ", ".join(map(quoted_column, columns))
        self._statement = (
            f"INSERT INTO {name} ({names}) SELECT {names} FROM jsonb_populate_recordset(NULL::{name}, $1::jsonb) "  # noqa: S608 - names are quoted
            f"ON CONFLICT ({quoted_column(ID)}) DO NOTHING"
        )
        self._connection = connection

    async def insert(self, rows: Sequence[dict[str, Any]]) -> None:
        told = msgspec.json.encode(rows)
        if b"\\u0000" in told:
            told = msgspec.json.encode(_without_nul(msgspec.json.decode(told)))
        await self._connection.execute(self._statement, told.decode())


@asynccontextmanager
async def open_postgres_table(table: UserTable, found: Survey, *, live: bool) -> AsyncIterator[PostgresRows]:
    """The table, made if it is not there. What was inserted stays if the block ends well; live, in any case."""
    columns = [*OWN, *(name for name in found.columns if name not in OWN)]
    too_long = [name for name in columns if len(name.encode()) > _LONGEST_NAME]
    if too_long:
        raise UsageError(f"PostgreSQL cannot have a column {too_long[0]!r}: it is too long; choose --columns.")
    try:
        connection = await asyncpg.connect(table.database, timeout=_CONNECT_WITHIN, statement_cache_size=0)
        try:
            if live:
                await _make(connection, table, found, columns)
                yield PostgresRows(connection, table, columns)
            else:
                async with connection.transaction():
                    await _make(connection, table, found, columns)
                    yield PostgresRows(connection, table, columns)
        finally:
            await connection.close(timeout=_CONNECT_WITHIN)
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError, ValueError) as error:
        told = " ".join(str(error).split()) or type(error).__name__
        raise UsageError(f"The output {table.shown!r} could not be written: {told}.") from error


async def _make(connection: asyncpg.Connection, table: UserTable, found: Survey, columns: Sequence[str]) -> None:
    if await connection.fetchval("SELECT to_regclass($1)", quoted(table.name)) is None:
        defined = ", ".join(
            f"{quoted_column(name)} {_TYPES[found.kinds.get(name, ColumnKind.TEXT)]}"
            f"{' PRIMARY KEY' if name == ID else ''}"
            for name in columns
        )
        await connection.execute(f"CREATE TABLE IF NOT EXISTS {quoted(table.name)} ({defined})")
    has = await connection.fetch(
        "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped",
        quoted(table.name),
    )
    missing_columns(table, [row[0] for row in has], columns)


def _without_nul(value: Any) -> Any:
    """PostgreSQL has no text with U+0000 in it: U+FFFD stands there."""
    match value:
        case str():
            return value.replace("\0", "\ufffd")
        case list():
            return [_without_nul(part) for part in value]
        case dict():
            return {_without_nul(key): _without_nul(part) for key, part in value.items()}
        case _:
            return value
