"""The SQL of this engine: named statements (`-- name: …`), one file for each verb beside the Python that runs it.

Under its name stands a sentence that says what the statement does. `{{QUIET}}` is a constant of `shoal.core`.
A migration is a file of its own, named by the schema that it makes: `migrations/07.sql` is `migrate_7`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from shoal.frontier.shared.rendering import CONSTANTS, render

_PACKAGE: Final = "shoal.frontier.sqlite"
_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_SENTENCE = re.compile(r"^-- .*\n", re.MULTILINE)
_ROW = re.compile(r"VALUES (\(\?[?, ]*\))")


def read_statements(constants: Mapping[str, int] = CONSTANTS) -> dict[str, str]:
    """All statements by name, with these constants. Raises ValueError if two have the same name."""
    statements: dict[str, str] = {}
    for file in _files(files(_PACKAGE)):
        for name, text in _named(file).items():
            if name in statements:
                raise ValueError(f"{file.name} names {name}, which another file names too.")
            statements[name] = render(text, constants)
    return statements


def _files(folder: Traversable) -> Iterator[Traversable]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _files(entry)
        elif entry.name.endswith(".sql"):
            yield entry


def _named(file: Traversable) -> dict[str, str]:
    text, stem = file.read_text(encoding="utf-8"), file.name.removesuffix(".sql")
    if stem.isdigit():
        return {f"migrate_{int(stem)}": text}
    _, *parts = _NAME.split(text)
    if not parts:
        return {stem: text}
    return {name: _SENTENCE.sub("", part).strip() for name, part in zip(parts[::2], parts[1::2], strict=True)}


STATEMENTS: Final = read_statements()


@cache
def for_rows(verb: str, count: int) -> str:
    """A statement that is written for one row of `VALUES (?, …)`, for so many rows."""
    return _ROW.sub(lambda row: "VALUES " + ", ".join([row[1]] * count), STATEMENTS[verb])
