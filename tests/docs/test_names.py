"""One idea, one name, and the industry's where it has one: the glossary has them all, and old names are gone."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "shoal"
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")


def _listed(text: str) -> frozenset[str]:
    return frozenset(" ".join(text.split()).split(", "))


WORDS_OF_THE_DESIGN = _listed(
    """
    scraper, run, job, task, lane, site, exit, slot, lease, settle, outcome, dead letter, frontier, engine, session,
    rejected item, limit, pool, supervisor, gateway, item, worker, handler, route, sitemap
    """
)

NAMES_OF_PARTS = _listed(
    """
    exchange, single flight, exit blame, missing code, fair turns, batching, classify, run request, store breaker,
    connection limit, start threads, fast routes, retry spread, retrying, finished cache, URL list, relocate,
    transition, note, attempt, executor, admission, seeding, page history, group commit, shared reads, long poll
    """
)

OLD_MODULES = _listed(
    """
    talks, flights, doubts, foreign, turns, rhythm, reading, verdict, order, kept, given, moves, reach, room, bench,
    hot, pushback, patience, ways, berth
    """
)
OLD_NAMES = _listed(
    """
    Talks, Flights, Doubts, Judge, Order, Patience, PatientEngine, Pushback, Reach, Room, Bench, Kept,
    KeptDocuments, Way, Ways, WaysOut, Turns, Rhythm, GivenURLs, berth, MOVES
    """
)
"""Of classes, functions and constants."""


class Named(NamedTuple):
    """Something with a name at the top of a module."""

    name: str
    where: str
    is_class: bool


def named() -> Iterator[Named]:
    for file in sorted(PACKAGE.rglob("*.py")):
        where = str(file.relative_to(PACKAGE))
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield Named(node.name, where, isinstance(node, ast.ClassDef))
            elif isinstance(node, ast.Assign):
                yield from (Named(each.id, where, False) for each in node.targets if isinstance(each, ast.Name))


NAMES = list(named())


@pytest.mark.parametrize("word", sorted(WORDS_OF_THE_DESIGN | NAMES_OF_PARTS))
def test_the_glossary_has_the_word(word: str) -> None:
    assert re.search(rf"\*\*{word}\*\*", GLOSSARY, re.IGNORECASE), word


def test_every_row_of_the_glossary_says_what_others_call_it_and_what_it_is() -> None:
    rows = [row.split(" | ") for row in re.findall(r"^\| (\*\*.+) \|$", GLOSSARY, re.MULTILINE)]
    assert len(rows) > 80
    assert all(len(row) == 3 and all(cell.strip() for cell in row) for row in rows)
    words = [row[0] for row in rows]
    assert sorted(words) == sorted(set(words)), "each word once"


def test_old_names_are_gone() -> None:
    modules = {str(file.relative_to(PACKAGE)) for file in PACKAGE.rglob("*.py") if file.stem in OLD_MODULES}
    assert not modules
    assert not {each.name for each in NAMES if each.name in OLD_NAMES}


def test_a_class_name_names_one_thing() -> None:
    found: dict[str, set[str]] = defaultdict(set)
    for each in NAMES:
        if each.is_class and not each.name.startswith("_"):
            found[each.name].add(each.where)
    assert not {name: files for name, files in found.items() if len(files) > 1}
