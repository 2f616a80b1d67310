"""A table of the user's own database: created if absent, and each item in it once, however often it is exported."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import unquote

from shoal.errors import UsageError
from shoal.frontier.contract.reader import Item
from shoal.runs.export.records import Columns, record_of
from shoal.runs.export.survey import Survey

SCHEMES = ("sqlite", "postgresql", "postgres")
ID, RUN, URL = "_id", "_run", "_url"
OWN = (ID, RUN, URL)
"""Columns that every such table has: the id of the item, its run, and the page that it came from."""


@dataclass(frozen=True, slots=True)
class UserTable:
    """`database`: its URL. `name`: may have a schema before it. `shown`: without the password."""

    database: str
    name: str
    shown: str

    @property
    def dialect(self) -> str:
        """`sqlite` or `postgresql`."""
        return "sqlite" if self.database.startswith("sqlite:") else "postgresql"


class TableRows(Protocol):
    """An open table. One export is one transaction; live, each batch is one."""

    async def insert(self, rows: Sequence[dict[str, Any]]) -> None:
        """Add those whose id is not there yet."""
        ...


class OpenTable(Protocol):
    """How a dialect opens its tables."""

    def __call__(self, table: UserTable, found: Survey, *, live: bool) -> AbstractAsyncContextManager[TableRows]: ...


class ItemIds:
    """The id of each item of a run: of its page and content, and of how many the same there were before it.

    So it does not depend on the order of items, which another read of a store may answer otherwise.
    """

    def __init__(self, run_id: str) -> None:
        self._run = run_id.encode()
        self._met: set[bytes] = set()
        self._again: Counter[bytes] = Counter()

    def of(self, item: Item) -> str:
        """The next one."""
        content = hashlib.sha256(b"\0".join((self._run, item.url.encode(), bytes(item.body)))).digest()[:16]
        if content not in self._met:
            self._met.add(content)
            return content.hex()
        self._again[content] += 1
        return f"{content.hex()}-{self._again[content]}"


class TableRowMaker:
    """Items as rows, with the columns that every table has."""

    def __init__(self, run_id: str, columns: Columns) -> None:
        self._run = run_id
        self._columns = [name for name in columns if name not in OWN]
        self._ids = ItemIds(run_id)

    def row(self, item: Item) -> dict[str, Any]:
        """The row of the next item."""
        return {ID: self._ids.of(item), RUN: self._run, URL: item.url} | record_of(item, self._columns)


def table_for(target: str, shown: str) -> UserTable:
    """The table that a URL means: `sqlite:///books.db#books`, `postgresql://…/database#schema.books`."""
    database, _, name = target.partition("#")
    name = unquote(name)
    if not name or "\0" in name or not all(name.split(".")) or name.count(".") > 1:
        raise UsageError(
            f"The output {shown!r} names no table; write it behind the database: {shown.partition('#')[0]}#items."
        )
    return UserTable(database, name, shown)


def quoted(name: str) -> str:
    """A name as SQL wants it; one with a dot is a schema and a name."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in name.split("."))


def quoted_column(name: str) -> str:
    """The same where a dot is a dot."""
    return '"' + name.replace('"', '""') + '"'


def missing_columns(table: UserTable, has: Sequence[str], wanted: Sequence[str]) -> None:
    """Raises UsageError if a table that is there lacks columns: it is the user's, and never altered."""
    lacking = [name for name in wanted if name not in has]
    if lacking:
        raise UsageError(
            f"The table {table.name!r} has no column {', '.join(map(repr, lacking))}; add it there, choose --columns, "
            "or name another table."
        )
