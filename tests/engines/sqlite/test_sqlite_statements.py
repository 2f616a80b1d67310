"""Names in SQL and names in Python are the same: what is run exists, and what exists is run by the file beside it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal.frontier import sqlite
from shoal.frontier.sqlite.store.statements import read_statements

PACKAGE = Path(sqlite.__file__).parent

OF_A_TRANSACTION = frozenset({"run", "insert", "write_rows", "value", "row", "table", "numbers", "rows", "read"})
SEAM = {
    "tx": OF_A_TRANSACTION,
    "self._tx": OF_A_TRANSACTION,
    "claim.tx": OF_A_TRANSACTION,
    "self": {"run", "write_rows", "value", "rows", "_pages"},
    "self._reader": {"rows"},
    "": {"look", "for_rows"},
}
"""What takes the name of a statement first: functions, by what they are asked of."""

HANDED_ON = {"statement", "verb"}
"""Parameters of those themselves, by which they hand a name on."""

BY_LOADER = {"schema"}
"""Not run by name, beside migrations: `schema.py` executes them whole."""


def named(path: Path) -> dict[str, str]:
    """The statements of a file by name, each as it stands there."""
    _, *parts = re.split(r"^-- name: (.*)$", path.read_text(), flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def run_by(source: str) -> Iterator[str]:
    """The names of statements that Python runs. Raises if one is not written out where it is run."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        whose, _, called = ast.unparse(node.func).rpartition(".")
        if called in SEAM.get(whose, ()):
            yield from _names(node.args[0])


def _names(node: ast.expr) -> Iterator[str]:
    match node:
        case ast.Constant(value=str(name)):
            yield name
        case ast.IfExp(body=one, orelse=other):
            yield from _names(one)
            yield from _names(other)
        case ast.Name(id=name) if name in HANDED_ON:
            pass
        case other:
            raise AssertionError(f"line {other.lineno}: the name of a statement is written where it is run")


PYTHON = sorted(PACKAGE.rglob("*.py"))
SQL = sorted(path for path in PACKAGE.rglob("*.sql") if named(path))


@pytest.mark.parametrize("path", PYTHON, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_what_is_run_exists(path: Path) -> None:
    assert set(run_by(path.read_text())) <= read_statements().keys()


@pytest.mark.parametrize("path", SQL, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_what_exists_is_run_by_the_file_beside_it(path: Path) -> None:
    assert named(path).keys() <= set(run_by(path.with_suffix(".py").read_text()))


@pytest.mark.parametrize("path", SQL, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_each_statement_says_what_it_does(path: Path) -> None:
    silent = [name for name, text in named(path).items() if not re.match(r"\n-- [A-Z`].*\S[.:]?\n", text)]
    assert not silent


def test_every_statement_is_named_in_some_file() -> None:
    names = {name for path in SQL for name in named(path)}
    others = read_statements().keys() - names
    assert {name for name in others if not name.startswith("migrate_")} == BY_LOADER


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ('tx.run("one", x=1)', ["one"]),
        ('tx.run("one" if x else "two")', ["one", "two"]),
        ('[look("one") for _ in y]', ["one"]),
        ("self.rows(statement, **values)", []),
    ],
)
def test_names_are_found_in_python(source: str, names: list[str]) -> None:
    assert list(run_by(source)) == names


def test_a_name_that_is_made_up_is_not_let_through() -> None:
    with pytest.raises(AssertionError, match="line 1"):
        list(run_by('tx.run(f"delete_{kind}")'))
