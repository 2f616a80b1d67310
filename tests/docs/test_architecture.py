"""The page on architecture is true: its tree is the folders that are there, and its walk passes files that exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "shoal"
PAGE = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
ENGINES = ("sqlite", "postgres", "redis")

QUIET = {"__init__.py", "__main__.py", "__pycache__", "py.typed"}
MOST_ENTRIES = 18
CROWDED = {
    "frontier/postgres/sql/move": 20,
}
"""Folders with more, and how many at most."""


def tree() -> Iterator[str]:
    """Every folder (with a slash at its end) and file that the tree of the page names, as a path below the package.

    A line may name several, and what is indented below it is in each of them.
    """
    above: list[tuple[int, list[str]]] = []
    for line in PAGE.split("src/shoal/\n")[1].split("```")[0].splitlines():
        names = re.match(r"( +)((?:\w+(?:/|\.py) )*\w+(?:/|\.py))(?=\s|$)", line)
        assert names, f"this line of the tree names nothing: {line}"
        while above and above[-1][0] >= len(names[1]):
            above.pop()
        folders = above[-1][1] if above else [""]
        here = [folder + name for folder in folders for name in names[2].split()]
        yield from here
        above.append((len(names[1]), here))


def packages() -> set[str]:
    """Every folder with Python in it, or below it."""
    files = [file.relative_to(PACKAGE) for file in PACKAGE.rglob("*.py")]
    return {f"{folder}/" for file in files for folder in file.parents if folder != Path()}


def _walked() -> list[str]:
    """Every file that the page names with its folder, outside of the table of engines."""
    before, table = PAGE.split("### The same")
    return sorted(set(re.findall(r"`(\w+/[\w/]*\w+\.(?:py|sql|lua))`", before + table.partition("\n## ")[2])))


TREE = set(tree())


def test_every_package_is_in_the_tree() -> None:
    assert packages() <= TREE


def test_what_is_in_the_tree_exists() -> None:
    missing = {name for name in TREE if not (PACKAGE / name).exists() or (PACKAGE / name).is_dir() != (name[-1] == "/")}
    assert not missing


@pytest.mark.parametrize("name", _walked())
def test_the_walk_passes_files_that_exist(name: str) -> None:
    assert (PACKAGE / name).is_file(), name


def test_the_engines_are_walked_through_files_that_exist() -> None:
    rows = re.findall(r"^\| (.+) \|$", PAGE.split("### The same")[1].split("\n## ")[0], re.MULTILINE)[2:]
    assert len(rows) >= 8
    for step, *cells in (row.split(" | ") for row in rows):
        assert len(cells) == len(ENGINES)
        for engine, cell in zip(ENGINES, cells, strict=True):
            names = re.findall(r"`([\w/]+\.\w+)`", cell)
            assert names, step
            for name in names:
                path = f"frontier/{engine}/{name}"
                assert (PACKAGE / path).is_file(), path


def test_the_engines_have_one_shape() -> None:
    """The same file names at the top of each, so that who knows one finds their way in the others."""
    shapes = {name.split("/", 2)[2] for name in TREE if re.match(r"frontier/sqlite/\w+\.py$", name)}
    for engine in ENGINES:
        there = {file.name for file in (PACKAGE / "frontier" / engine).glob("*.py")} - {"__init__.py"}
        assert shapes <= there, engine


def test_no_folder_is_crowded() -> None:
    """About fifteen entries at any level: more than that is a list, and not a place. SQL beside its Python is one."""
    for folder in [PACKAGE, *PACKAGE.rglob("*")]:
        if folder.is_dir() and folder.name != "__pycache__":
            name = str(folder.relative_to(PACKAGE))
            entries = {each.stem for each in folder.iterdir() if each.name not in QUIET}
            assert len(entries) <= CROWDED.get(name, MOST_ENTRIES), name
