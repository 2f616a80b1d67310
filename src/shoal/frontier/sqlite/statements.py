"""The SQL of this engine: one statement per file in `sql/`, named as a verb."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Final

_ROW = re.compile(r"VALUES (\(\?[?, ]*\))")


def _read_all() -> dict[str, str]:
    folder = files(__package__).joinpath("sql")
    return {
        entry.name.removesuffix(".sql"): entry.read_text() for entry in folder.iterdir() if entry.name.endswith(".sql")
    }


STATEMENTS: Final = _read_all()


@cache
def for_rows(verb: str, count: int) -> str:
    """A statement that is written for one row of `VALUES (?, …)`, for so many rows."""
    return _ROW.sub(lambda row: "VALUES " + ", ".join([row[1]] * count), STATEMENTS[verb])
