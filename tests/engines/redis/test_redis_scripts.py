"""The Lua of Redis: what is run is there, what is there is run, and constants are those of the core."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

from shoal.frontier.redis.store.client import RedisStore
from shoal.frontier.redis.store.scripts import SCRIPTS, lua_texts, make_scripts
from shoal.frontier.shared.rendering import CONSTANTS
from shoal.testing.contract.scene import Scene, exit_failed

PACKAGE = Path(str(files("shoal.frontier.redis")))
LUA = {path.stem: path.parent.relative_to(PACKAGE / "lua").as_posix() for path in PACKAGE.rglob("*.lua")}
"""The folder of each file, by its name."""

PIECES = {piece for script in SCRIPTS.values() for piece in script.needs}


Function = ast.FunctionDef | ast.AsyncFunctionDef


class ScriptNames:
    """The scripts that a module runs: what `call` is given, and whatever passes its own argument on to that."""

    def __init__(self, module: ast.Module) -> None:
        self._functions = [node for node in ast.walk(module) if isinstance(node, Function)]
        self._runners = {"call": 0}
        self.found: set[str] = set()
        before = 0
        while before != len(self._runners):
            before = len(self._runners)
            for function in self._functions:
                self._look_at(function)

    def _look_at(self, function: Function) -> None:
        names = [argument.arg for argument in function.args.args if argument.arg != "self"]
        for call in _calls(function):
            position = self._runners.get(_name_of(call.func))
            if position is None or len(call.args) <= position:
                continue
            script = call.args[position]
            if isinstance(script, ast.Constant):
                self.found.add(str(script.value))
            elif isinstance(script, ast.Name) and script.id in names:
                self._runners[function.name] = names.index(script.id)
            elif isinstance(script, ast.Name):
                self.found.update(_looped(function, script.id))


def _calls(function: Function) -> Iterator[ast.Call]:
    return (node for node in ast.walk(function) if isinstance(node, ast.Call))


def _name_of(called: ast.expr) -> str:
    return called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")


def _looped(function: Function, name: str) -> set[str]:
    """The texts among what a loop gives to a name, one after the other."""
    return {
        str(value.value)
        for loop in ast.walk(function)
        if isinstance(loop, ast.For) and any(getattr(node, "id", None) == name for node in ast.walk(loop.target))
        for value in ast.walk(loop.iter)
        if isinstance(value, ast.Constant)
    }


def scripts_run() -> set[str]:
    modules = (ast.parse(path.read_text()) for path in PACKAGE.rglob("*.py"))
    return {name for module in modules for name in ScriptNames(module).found}


def test_the_scripts_that_are_run_are_those_that_there_are() -> None:
    assert scripts_run() == set(SCRIPTS)


def test_every_piece_is_there_and_every_file_is_a_script_or_a_piece() -> None:
    assert PIECES | set(SCRIPTS) == set(LUA)
    assert not PIECES & set(SCRIPTS)


def test_a_piece_is_in_the_library_if_several_folders_need_it() -> None:
    """A piece that only one verb needs stands beside its scripts."""
    for piece in PIECES:
        folders = {LUA[name] for name, script in SCRIPTS.items() if piece in script.needs}
        assert (LUA[piece] == "lib") == (len(folders) > 1), f"{piece} is for {folders}"


def test_a_name_that_comes_twice_is_refused(tmp_path: Path) -> None:
    for folder in ("claim", "settle"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same.lua").write_text("-- needs: prelude\n")
    with pytest.raises(ValueError, match=r"more than one same\.lua"):
        lua_texts(tmp_path)


def test_no_script_has_a_constant_of_the_core_as_a_number() -> None:
    numbers = {str(value) for value in CONSTANTS.values() if value >= 10_000}
    for name, text in lua_texts().items():
        assert not numbers & set(re.findall(r"\d+", text)), f"{name}.lua"


async def test_a_constant_that_changes_in_the_core_changes_in_the_store(scene: Scene) -> None:
    store: RedisStore = scene.engine._store  # type: ignore[attr-defined]
    store.scripts = make_scripts(lua_texts(), {**CONSTANTS, "QUARANTINE_AFTER": 2, "QUARANTINE_FIRST": 5_000})
    await scene.open_run(delay=0)
    await scene.put("a.example/", "b.example/")
    ends = []
    for _ in range(2):
        await scene.settle(exit_failed(await scene.claim_one(exits=["proxy"])))
        [record] = await scene.engine.exits.all()
        ends.append(record.quarantined_until)
    assert ends == [0, await scene.now() + 5_000]
