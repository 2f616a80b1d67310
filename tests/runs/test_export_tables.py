"""Tables of a user's own database: made if absent, each item once, never altered."""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import msgspec
import pytest

from servers.postgres import shared_server
from shoal.errors import UsageError
from shoal.frontier.contract.reader import Item
from shoal.runs.export.export import export
from shoal.runs.export.output import OutputOptions, output_for
from shoal.runs.export.places.local_file import IfExists
from shoal.runs.export.survey import ItemSource

ITEMS: list[dict[str, Any]] = [
    {"title": "A\0", "price": 1, "tags": ["x"], "new": True},
    {"title": "B", "price": 2.5, "tags": None},
    {"title": "B", "price": 2.5, "tags": None},
]


def source_of(bodies: Sequence[object]) -> ItemSource:
    async def read() -> AsyncIterator[Item]:
        for body in bodies:
            yield Item("https://shop.example/", None, msgspec.Raw(json.dumps(body).encode()))

    return read


class Database:
    """One of each kind, to look into."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self.url = f"sqlite:///{folder}/own.db" if kind == "sqlite" else shared_server().url()
        self.table = f"items_{secrets.token_hex(4)}"
        self.target = f"{self.url}#{self.table}"

    async def sql(self, statement: str) -> list[tuple[Any, ...]]:
        if self.kind == "sqlite":
            with closing(sqlite3.connect(self.url.removeprefix("sqlite:///"), isolation_level=None)) as connection:
                return connection.execute(statement).fetchall()
        connection = await asyncpg.connect(self.url)
        try:
            return [tuple(row) for row in await connection.fetch(statement)]
        finally:
            await connection.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    return Database(request.param, tmp_path)


async def test_items_go_in_once_however_often_they_are_exported(database: Database) -> None:
    output = output_for(database.target)
    assert await export(source_of(ITEMS), output, "one") == 3
    assert await export(source_of(ITEMS[::-1]), output, "one") == 3, "in another order, too"
    rows = await database.sql(f"SELECT title, price, _url, _run FROM {database.table} ORDER BY title")  # noqa: S608
    nul = "\0" if database.kind == "sqlite" else "\ufffd"
    assert rows == [
        (f"A{nul}", 1.0, "https://shop.example/", "one"),
        ("B", 2.5, "https://shop.example/", "one"),
        ("B", 2.5, "https://shop.example/", "one"),
    ]
    await export(source_of(ITEMS[:1]), output, "two")
    assert await database.sql(f"SELECT count(*) FROM {database.table}") == [(4,)], "another run has its own"  # noqa: S608
    [(tags, new)] = await database.sql(f"SELECT tags, new FROM {database.table} WHERE _run = 'two'")  # noqa: S608
    assert (json.loads(tags), bool(new)) == (["x"], True)


async def test_a_table_of_the_users_own_making_is_filled_and_never_altered(database: Database) -> None:
    columns = "_id text PRIMARY KEY, _run text, _url text, title text, price numeric(10, 2), sold integer DEFAULT 0"
    await database.sql(f"CREATE TABLE {database.table} ({columns})")
    chosen = OutputOptions(columns=("title", "price"))
    await export(source_of(ITEMS[1:]), output_for(database.target, chosen), "run")
    rows = await database.sql(f"SELECT title, price, sold FROM {database.table}")  # noqa: S608
    assert [(title, float(price), sold) for title, price, sold in rows] == [("B", 2.5, 0)] * 2
    with pytest.raises(UsageError, match="has no column 'tags', 'new'; add it there, choose --columns"):
        await export(source_of(ITEMS), output_for(database.target), "run")
    assert await database.sql(f"SELECT count(*) FROM {database.table}") == [(2,)]  # noqa: S608


async def test_what_cannot_be_stored_leaves_the_table_as_it_was(database: Database) -> None:
    await database.sql(f"CREATE TABLE {database.table} (_id text, _run text, _url text, a integer)")
    with pytest.raises(UsageError, match="could not be written: "):
        await export(source_of([{"a": 1}]), output_for(database.target), "run")
    assert await database.sql(f"SELECT count(*) FROM {database.table}") == [(0,)]  # noqa: S608


async def test_a_database_that_is_not_there_is_one_sentence_without_its_password(tmp_path: Path) -> None:
    for target in (f"sqlite:///{tmp_path}/missing/a.db#items", "postgresql://me:hidden@127.0.0.1:1/db#items"):
        with pytest.raises(UsageError, match="could not be written: ") as caught:
            await export(source_of([{}]), output_for(target), "run")
        assert "hidden" not in str(caught.value)


def test_a_table_is_not_replaced() -> None:
    with pytest.raises(UsageError, match="A table is not replaced"):
        output_for("sqlite:///a.db#items", OutputOptions(if_exists=IfExists.REPLACE))
