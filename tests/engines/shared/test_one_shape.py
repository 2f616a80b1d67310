"""Three engines, one shape: the same file names with the same duties. Whoever knows one finds the way in the others."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from shoal import frontier

ENGINES = {"sqlite": "Sqlite", "postgres": "Postgres", "redis": "Redis"}
"""Packages, and how the names of their classes begin."""

VERBS = {"claim", "settle", "enqueue", "sweep", "runs"}
"""What the verbs of a frontier do. How they are cut is each engine's own: functions, or parts of a class."""

DUTIES = {
    "engine": {"{}Engine", "{}Frontier"},
    "cache": {"{}Cache"},
    "exits": {"{}Exits"},
    "jobs": {"{}Jobs", "{}Registry"},
    "reader": {"{}Reader"},
    "whereabouts": set(),
    "mover": {"{}Mover"},
    "schema": {"SCHEMA_VERSION"},
    "errors": {"clear_errors"},
}
"""What is defined in which file of each."""

FOLDER = Path(frontier.__file__).parent


def defined(path: Path) -> set[str]:
    """The names that a module defines, without those that it imports."""
    names: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return names


@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_has_these_files_and_no_others(engine: str) -> None:
    files = {path.stem for path in (FOLDER / engine).glob("*.py")} - {"__init__"}
    assert files == VERBS | DUTIES.keys()


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_only_an_engines_own_is_in_its_folders(engine: str) -> None:
    assert (FOLDER / engine / "store" / "__init__.py").is_file()


@pytest.mark.parametrize("duty", DUTIES)
@pytest.mark.parametrize(("engine", "prefix"), ENGINES.items())
def test_the_same_is_defined_in_the_same_file(engine: str, prefix: str, duty: str) -> None:
    assert {name.format(prefix) for name in DUTIES[duty]} <= defined(FOLDER / engine / f"{duty}.py")


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*/*.py")), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_the_first_line_of_a_file_says_its_duty(path: Path) -> None:
    if path.name != "__init__.py":
        duty = ast.get_docstring(ast.parse(path.read_text()))
        assert duty
        assert duty.splitlines()[0].endswith((".", ":", "?")) or len(duty.splitlines()) > 1
