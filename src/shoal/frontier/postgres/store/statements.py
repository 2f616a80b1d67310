"""The SQL of this engine: one type, function or statement per file, in folders by verb (`sql/claim/…`).

What Shoal calls says so in its first line: `-- entry: verb` or `-- entry: look`. Other functions are parts of those. A
migration is named by the schema that it makes: `migrations/07.sql` is `migrate_7`.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from shoal.frontier.shared.rendering import CONSTANTS, render

PLANNED: Final = {
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_material": "off",
    "plan_cache_mode": "force_generic_plan",
    "jit": "off",
}
"""How verbs are planned. They handle small batches against tables of any size, so each way leads through an index, and
a plan that was made while a table was empty is still the right one when it has grown. Looks are planned freely."""


def read_statements(constants: Mapping[str, int] = CONSTANTS) -> dict[str, str]:
    """All SQL by its name, with these constants. Migrations stay as they were written."""
    return _read_all(files("shoal.frontier.postgres").joinpath("sql"), constants)


def _read_all(folder: Traversable, constants: Mapping[str, int]) -> dict[str, str]:
    statements: dict[str, str] = {}
    for entry in folder.iterdir():
        if entry.is_dir():
            statements |= _read_all(entry, constants)
        elif entry.name.endswith(".sql"):
            stem, text = entry.name.removesuffix(".sql"), entry.read_text(encoding="utf-8")
            if stem.isdigit():
                statements[f"migrate_{int(stem)}"] = text
            else:
                statements[stem] = render(text, constants)
    return statements


STATEMENTS: Final = read_statements()

TYPES: Final = tuple(name for name in sorted(STATEMENTS) if f"CREATE TYPE {name} " in STATEMENTS[name])

FUNCTIONS: Final = tuple(name for name in sorted(STATEMENTS) if f"CREATE FUNCTION {name}(" in STATEMENTS[name])

VERBS: Final = tuple(name for name in FUNCTIONS if STATEMENTS[name].startswith("-- entry: verb\n"))

LOOKS: Final = tuple(name for name in FUNCTIONS if STATEMENTS[name].startswith("-- entry: look\n"))
