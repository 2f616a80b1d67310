"""Time is a dependency: nothing but a `Clock` reads it, and nothing but a `Clock` lets it pass."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import shoal

PACKAGE = Path(shoal.__file__).parent

READS = {
    ("time", "time"), ("time", "time_ns"), ("time", "monotonic"), ("time", "monotonic_ns"), ("time", "perf_counter"),
    ("time", "perf_counter_ns"), ("time", "localtime"), ("time", "gmtime"), ("datetime", "now"), ("datetime", "utcnow"),
    ("datetime", "today"), ("date", "today"), ("loop", "time"), ("_loop", "time"),
}  # fmt: skip
SLEEPS = {("asyncio", "sleep"), ("time", "sleep")}

MAY_READ = {
    "core/clock.py": "it is the clock",
    "demo": "a site, which has a clock of its own",
    "testing/hostile": "a site, which has a clock of its own",
    "testing/access_log.py": "what the target saw is told by the target's own clock",
}
"""Files and folders below `src/shoal`, with the reason."""

MAY_SLEEP = {
    "core/clock.py": "it is the clock",
    "client": "its protocol says how long, as a value, and has tests that jump; what is left is to wait that long",
    "demo": "a site, which takes its time",
    "testing": "a site that takes its time, and turns of the loop",
    "frontier/postgres/store/connections.py": "jitter of milliseconds between two tries of one transaction",
    "frontier/sqlite/store/connection.py": "in a thread, while another process switches the file to its journal",
}


@pytest.mark.parametrize(
    ("calls", "allowed"), [pytest.param(READS, MAY_READ, id="read"), pytest.param(SLEEPS, MAY_SLEEP, id="sleep")]
)
def test_nothing_but_a_clock_has_to_do_with_time(calls: set[tuple[str, str]], allowed: dict[str, str]) -> None:
    found = {
        f"{place}:{line}"
        for place, tree in _sources()
        if not any(place == each or place.startswith(f"{each}/") for each in allowed)
        for line in _calls(tree, calls)
    }
    assert not found, "Take a `Clock` (shoal.core.clock), and ask it; or say in this file why not."


@pytest.mark.parametrize("allowed", [MAY_READ, MAY_SLEEP])
def test_what_may_is_still_there(allowed: dict[str, str]) -> None:
    assert [place for place in allowed if not (PACKAGE / place).exists()] == []


@pytest.mark.parametrize(
    ("code", "is_one"),
    [
        ("time.monotonic()", True),
        ("f(clock=time.time)", True),
        ("self._loop.time()", True),
        ("asyncio.get_running_loop().time()", True),
        ("from time import monotonic", True),
        ("datetime.now(UTC)", True),
        ("self._clock.now()", False),
        ("datetime.fromtimestamp(at)", False),
        ("entry.time()", False),
    ],
)
def test_how_they_are_told(code: str, is_one: bool) -> None:
    assert bool(list(_calls(ast.parse(code), READS))) is is_one


def test_a_turn_of_the_loop_takes_no_time() -> None:
    assert list(_calls(ast.parse("await asyncio.sleep(0)"), SLEEPS)) == []
    assert list(_calls(ast.parse("await asyncio.sleep(0.1)"), SLEEPS)) == [1]


def _sources() -> Iterator[tuple[str, ast.Module]]:
    for file in sorted(PACKAGE.rglob("*.py")):
        yield str(file.relative_to(PACKAGE)), ast.parse(file.read_text(encoding="utf-8"))


def _calls(tree: ast.AST, wanted: set[tuple[str, str]]) -> Iterator[int]:
    turns = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_zero(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and (_owner(node.value), node.attr) in wanted and id(node) not in turns:
            yield node.lineno
        if isinstance(node, ast.ImportFrom) and any((node.module, each.name) in wanted for each in node.names):
            yield node.lineno


def _owner(node: ast.expr) -> str:
    """The last name of what is asked: `loop` of `self.loop`, and of `asyncio.get_running_loop()`."""
    if isinstance(node, ast.Call):
        return "loop" if _owner(node.func) in ("get_running_loop", "get_event_loop") else ""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _is_zero(call: ast.Call) -> bool:
    return bool(call.args) and isinstance(call.args[0], ast.Constant) and call.args[0].value == 0
