"""Politeness constants are defined once, in `shoal.core.politeness`: stores reckon with what stands there."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from shoal import frontier
from shoal.frontier.shared.rendering import CONSTANTS, render

FOLDER = Path(frontier.__file__).parent

IN_EVERY_ENGINE = {"QUIET", "WORKER_KEPT"}

DISTINCTIVE = 10_000
"""Numbers from here on are not met by chance; a 3 or a 20 may be anything."""

CHANGED_IN_CORE = """
import json
from shoal.core import politeness

numbers = {name: 900_000_000 + at for at, name in enumerate(vars(politeness)) if name.isupper() and name != "UTC"}
vars(politeness).update(numbers)

from shoal.frontier.postgres.store.statements import STATEMENTS as postgres
from shoal.frontier.redis.store.scripts import SCRIPTS
from shoal.frontier.sqlite.store.statements import STATEMENTS as sqlite

texts = {
    "postgres": "".join(postgres.values()),
    "redis": "".join(script.text for script in SCRIPTS.values()),
    "sqlite": "".join(sqlite.values()),
}
found = {name: [engine for engine, text in texts.items() if str(number) in text] for name, number in numbers.items()}
print(json.dumps(found))
"""
"""In a process where each constant is another number: which engines have that number in what they send to stores."""


@pytest.fixture(scope="module")
def seen_in() -> dict[str, list[str]]:
    """The engines that each constant is seen in."""
    answer = subprocess.run([sys.executable, "-c", CHANGED_IN_CORE], capture_output=True, text=True, check=True)
    found: dict[str, list[str]] = json.loads(answer.stdout)
    return found


@pytest.mark.parametrize("name", sorted(IN_EVERY_ENGINE))
def test_a_constant_that_is_changed_is_seen_in_every_engine(name: str, seen_in: dict[str, list[str]]) -> None:
    assert seen_in[name] == ["postgres", "redis", "sqlite"]


@pytest.mark.parametrize("name", sorted(CONSTANTS))
def test_every_constant_is_used(name: str, seen_in: dict[str, list[str]]) -> None:
    assert seen_in[name]


@pytest.mark.parametrize("engine", ["postgres", "redis", "sqlite"])
def test_no_constant_is_written_as_a_number(engine: str) -> None:
    known = {value: name for name, value in CONSTANTS.items() if value >= DISTINCTIVE}
    written = [
        (str(path.relative_to(FOLDER)), known[int(number)])
        for path in sorted((FOLDER / engine).rglob("*"))
        if path.suffix in {".sql", ".lua"} and path.parent.name != "migrations"
        for number in re.findall(r"\b\d+\b", path.read_text())
        if int(number) in known
    ]
    assert not written


def test_a_name_becomes_its_number() -> None:
    assert render("now - {{QUIET}} / {{QUIET}}", {"QUIET": 7}) == "now - 7 / 7"


def test_a_name_that_is_none_is_refused() -> None:
    with pytest.raises(KeyError, match="QUITE"):
        render("{{QUITE}}")
