"""The SQL of PostgreSQL and the Python that calls it go by the same names, in both directions."""

from __future__ import annotations

import re
from pathlib import Path
from types import NoneType
from typing import get_args, get_type_hints

import pytest

import shoal.frontier.postgres
from servers.postgres import shared_server
from shoal.frontier.postgres.store import columns
from shoal.frontier.postgres.store.columns import Composite, type_name
from shoal.frontier.postgres.store.statements import FUNCTIONS, LOOKS, STATEMENTS, TYPES, VERBS, read_statements
from shoal.frontier.shared.rendering import CONSTANTS

CALLED = re.compile(r'\b(?:rows|row|value|_of_run|_call|_pages|_?look)\(\s*(?:[\w.]+,\s*)?"(\w+)"|\}\.(\w+)\(\)"')
"""How Python names what it calls: as a text, in the first or second place; or inside of a statement."""

GRAMMAR = {
    "any",
    "all",
    "array",
    "coalesce",
    "exists",
    "greatest",
    "in",
    "least",
    "nullif",
    "over",
    "row",
    "trim",
    "values",
}
"""What stands before a parenthesis and is no function."""

COMPOSITES = Composite.__subclasses__()

RENDERED = ("QUIET", "KEPT_AT_REST", "WORKER_KEPT", "QUARANTINE_FIRST", "QUARANTINE_MOST")

SQL_TYPES = {int: {"int", "bigint", "smallint"}, str: {"text"}, bytes: {"bytea"}, bool: {"boolean"}}


def called_by_python() -> set[str]:
    [folder] = shoal.frontier.postgres.__path__
    return {
        first or second
        for file in Path(folder).rglob("*.py")
        for first, second in CALLED.findall(file.read_text(encoding="utf-8"))
    }


def code_of(name: str) -> str:
    """A statement without its comments and texts."""
    return re.sub(r"--.*|'[^']*'", "", STATEMENTS[name])


def called_by(name: str) -> set[str]:
    return {called.lower() for called in re.findall(r"(?<![\w.\"])(\w+)\(", code_of(name))} - {name}


def test_what_python_calls_is_what_is_marked_as_called() -> None:
    assert called_by_python() == {*VERBS, *LOOKS}


def test_every_function_is_called_by_python_or_by_another() -> None:
    used = {*VERBS, *LOOKS}.union(*(called_by(name) for name in FUNCTIONS))
    assert set(FUNCTIONS) - used == set()


def test_every_function_that_is_called_is_there() -> None:
    known = set(shared_server().sql("SELECT DISTINCT proname FROM pg_proc", database="postgres").splitlines())
    for name in FUNCTIONS:
        assert called_by(name) - known - GRAMMAR - {*FUNCTIONS} == set(), name


def test_every_file_is_a_function_a_type_a_migration_or_the_schema() -> None:
    migrations = {name for name in STATEMENTS if name.startswith("migrate_")}
    assert set(STATEMENTS) == {*FUNCTIONS, *TYPES, *migrations, "schema"}


def test_every_type_is_a_class_and_is_taken_by_a_function() -> None:
    assert {type_name(kind) for kind in COMPOSITES} == set(TYPES)
    for name in TYPES:
        assert any(re.search(rf"_\w+ {name}\b", code_of(function)) for function in FUNCTIONS), name


@pytest.mark.parametrize("kind", COMPOSITES, ids=type_name)
def test_a_type_has_the_fields_of_its_class_in_their_order(kind: type[Composite]) -> None:
    declared = re.findall(r'^    "?(\w+)"? (\w+)(\[\])?,?$', code_of(type_name(kind)), re.MULTILINE)
    assert [field for field, _, _ in declared] == list(kind.__struct_fields__)
    hints = get_type_hints(kind, vars(columns))
    for field, sql_type, many in declared:
        assert sql_type in SQL_TYPES[scalar_of(hints[field], many=bool(many))], field


def scalar_of(hint: object, *, many: bool) -> type:
    """What a field holds, or each element of its list; None aside."""
    [kind] = [each for each in get_args(hint) or (hint,) if each is not NoneType]
    if many:
        kind = getattr(kind, "__args__", (kind,))[0] if kind is not list else kind
        [kind] = [each for each in get_args(kind) or (kind,) if each is not NoneType]
    assert isinstance(kind, type)
    return kind


def test_constants_are_those_of_the_core() -> None:
    """One that changes is changed wherever it is used; migrations stay as they were."""
    changed = read_statements(dict(CONSTANTS) | {name: 7_000_000_007 + n for n, name in enumerate(RENDERED)})
    for number, name in enumerate(RENDERED):
        assert any(str(7_000_000_007 + number) in text for text in changed.values()), name
    numbers = "|".join({str(CONSTANTS[name]) for name in RENDERED})
    kept = {name for name, text in changed.items() if re.search(rf"\b({numbers})\b", re.sub(r"--.*", "", text))}
    assert kept == set(), "a number that has a name"
    assert changed["migrate_7"] == STATEMENTS["migrate_7"]
