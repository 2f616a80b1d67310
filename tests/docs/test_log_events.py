"""The log has one vocabulary: what is logged is declared, what is declared is logged, and the page says the same."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from log_reference import log_page
from shoal.core import log_events
from shoal.core.log_events import EVENTS, LogEvent

ROOT = Path(__file__).parents[2]
DECLARED = {name: value for name, value in vars(log_events).items() if isinstance(value, LogEvent)}
LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}
ABOUT_ERRORS = {"exc_info"}


class Call(NamedTuple):
    """One line of the log, as it stands in the code."""

    where: str
    method: str
    event: str | None
    """The name of its constant; None where it is anything else."""
    keys: frozenset[str]


def calls() -> Iterator[Call]:
    for file in sorted((ROOT / "src").rglob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                for node in ast.walk(function):
                    if _is_logging(node):
                        assert isinstance(node, ast.Call)
                        yield _call(f"{file.relative_to(ROOT)}:{node.lineno}", node, function)


def _is_logging(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in LEVELS
        and isinstance(node.func.value, ast.Name | ast.Attribute)
        and ast.unparse(node.func.value).rpartition(".")[2].strip("_") in ("log", "logger", "logging")
    )


def _call(where: str, call: ast.Call, function: ast.FunctionDef | ast.AsyncFunctionDef) -> Call:
    assert isinstance(call.func, ast.Attribute)
    keys: set[str] = set()
    for keyword in call.keywords:
        keys |= {keyword.arg} if keyword.arg else _keys_of(ast.unparse(keyword.value), function, where)
    event = re.fullmatch(r"log_events\.(\w+)", ast.unparse(call.args[0])) if len(call.args) == 1 else None
    return Call(where, call.func.attr, event and event[1], frozenset(keys - ABOUT_ERRORS))


def _keys_of(name: str, function: ast.FunctionDef | ast.AsyncFunctionDef, where: str) -> set[str]:
    """The keys of a dictionary that the function makes for several lines."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name and isinstance(node.value, ast.Dict):
            return {
                key.value for key in node.value.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)
            }
    raise AssertionError(f"{where}: the keys of **{name} cannot be seen where it is logged")


CALLS = list({call.where: call for call in calls()}.values())


def test_every_line_that_is_logged_is_a_declared_event() -> None:
    assert len(CALLS) >= 35, "the calls are not found any more"
    for call in CALLS:
        assert call.event in DECLARED, f"{call.where}: log an event of shoal.core.log_events, not a text"


def test_every_declared_event_is_logged() -> None:
    assert {call.event for call in CALLS} == set(DECLARED)


@pytest.mark.parametrize("call", CALLS, ids=[call.where for call in CALLS])
def test_an_event_is_logged_with_its_level_and_its_keys(call: Call) -> None:
    event = DECLARED[call.event or ""]
    assert {"exception": "error"}.get(call.method, call.method) == event.level, call.where
    assert call.keys <= set(event.keys), call.where


def test_every_key_that_is_declared_is_given_somewhere() -> None:
    for name, event in DECLARED.items():
        given = frozenset[str]().union(*(call.keys for call in CALLS if call.event == name))
        assert given == set(event.keys), name


def test_names_are_a_component_and_a_verb_each_once() -> None:
    for constant, event in DECLARED.items():
        assert re.fullmatch(r"[a-z]+\.[a-z]+(_[a-z]+)*", event), event
        assert event.replace(".", "_").upper() == constant
        assert event.sentence
    assert max(Counter(map(str, DECLARED.values())).values()) == 1
    assert max(Counter(event.sentence for event in DECLARED.values()).values()) == 1
    assert list(EVENTS) == list(DECLARED.values())


def test_the_committed_log_reference_is_up_to_date() -> None:
    committed = (ROOT / "docs" / "reference" / "log-events.md").read_text(encoding="utf-8")
    assert committed == log_page(), "run `make docs` and commit what it writes"
