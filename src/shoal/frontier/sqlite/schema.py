"""Making the schema, and bringing it up to this version of Shoal. Statements: `schema.sql` and `migrations/`."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from shoal.errors import EngineBroken
from shoal.frontier.shared.versions import steps
from shoal.frontier.sqlite.store.statements import STATEMENTS

SCHEMA_VERSION = 10
APPLICATION_ID = 0x53484F41  # "SHOA"


def ensure_schema(connection: sqlite3.Connection, path: Path, *, migrate: bool) -> int | None:
    """Make the schema, or bring it up to this version, in the transaction of the caller.

    Answers the version that was found; None = there was none. Raises EngineBroken if it is not and may not be made so.
    """
    if not _value(connection, "SELECT count(*) FROM sqlite_schema"):
        _execute(connection, "schema")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        return None
    if _value(connection, "PRAGMA application_id") != APPLICATION_ID:
        raise EngineBroken(f"{path} belongs to another program. Choose another file with --engine sqlite:///new.db.")
    found = int(_value(connection, "PRAGMA user_version"))
    for step in steps(str(path), found, SCHEMA_VERSION, STATEMENTS, migrate=migrate):
        _execute(connection, step)
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    return found


def _execute(connection: sqlite3.Connection, name: str) -> None:
    for statement in STATEMENTS[name].split(";\n"):
        if statement.strip():
            connection.execute(statement)


def _value(connection: sqlite3.Connection, statement: str) -> Any:
    return connection.execute(statement).fetchone()[0]
