"""A table in a SQLite file of the user's own."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from typing import Any

import msgspec

from shoal.errors import UsageError
from shoal.frontier.open import sqlite_path
from shoal.runs.export.places.table import ID, OWN, UserTable, missing_columns, quoted, quoted_column
from shoal.runs.export.records import ColumnKind
from shoal.runs.export.survey import Survey

_TYPES = {
    ColumnKind.BOOLEAN: "INTEGER",
    ColumnKind.INTEGER: "INTEGER",
    ColumnKind.NUMBER: "REAL",
    ColumnKind.TEXT: "TEXT",
    ColumnKind.JSON: "TEXT",
}


class SqliteRows:
    """An open table (`TableRows`). `live`: each batch is committed."""

    def __init__(self, connection: sqlite3.Connection, table: UserTable, columns: Sequence[str], *, live: bool) -> None:
        names = ", ".join(map(quoted_column, columns))
        marks = ", ".join("?" * len(columns))
        self._statement = (
            f"INSERT INTO {quoted(table.name)} ({names}) VALUES ({marks}) ON CONFLICT ({quoted_column(ID)}) DO NOTHING"  # noqa: S608 - names are quoted
        )
        self._connection = connection
        self._columns = columns
        self._live = live

    async def insert(self, rows: Sequence[dict[str, Any]]) -> None:
        values = [[_value(row[name]) for name in self._columns] for row in rows]

        def work() -> None:
            self._connection.executemany(self._statement, values)
            if self._live:
                self._connection.commit()

        await asyncio.to_thread(work)


@asynccontextmanager
async def open_sqlite_table(table: UserTable, found: Survey, *, live: bool) -> AsyncIterator[SqliteRows]:
    """The table, made if it is not there. What was inserted stays if the block ends well."""
    path = sqlite_path(table.database, table.database.partition("://")[2])
    columns = [*OWN, *(name for name in found.columns if name not in OWN)]
    kinds = {name: _TYPES[found.kinds.get(name, ColumnKind.TEXT)] for name in columns}
    try:
        with closing(sqlite3.connect(path, timeout=30, check_same_thread=False)) as connection:
            defined = ", ".join(
                f"{quoted_column(name)} {kind}{' PRIMARY KEY' if name == ID else ''}" for name, kind in kinds.items()
            )
            connection.execute(f"CREATE TABLE IF NOT EXISTS {quoted(table.name)} ({defined})")
            has = [
                row[1]
                for row in connection.execute(f"PRAGMA table_info({quoted_column(table.name.rpartition('.')[2])})")
            ]
            missing_columns(table, has, columns)
            yield SqliteRows(connection, table, columns, live=live)
            await asyncio.to_thread(connection.commit)
    except sqlite3.Error as error:
        raise UsageError(f"The output {table.shown!r} could not be written: {error}.") from error


def _value(value: object) -> object:
    if value is None or isinstance(value, str | float):
        return value
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return int(value)
    return msgspec.json.encode(value).decode()
