"""The SQL of this engine: one statement per file in `sql/`, named as a verb."""

from __future__ import annotations

from importlib.resources import files
from typing import Final


def _read_all() -> dict[str, str]:
    folder = files(__package__).joinpath("sql")
    return {
        entry.name.removesuffix(".sql"): entry.read_text() for entry in folder.iterdir() if entry.name.endswith(".sql")
    }


STATEMENTS: Final = _read_all()
