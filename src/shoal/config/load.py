"""Where settings come from: `shoal.toml`, the environment, the command line; and what is wrong with them."""

from __future__ import annotations

import os
import re
import tomllib
from collections import Counter
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError
from pydantic_settings import EnvSettingsSource, SettingsError

from shoal.config.sections import (
    GuardSettings,
    LaneSettings,
    PoolSettings,
    RouteSettings,
    ScraperSettings,
    ServeSettings,
    TorSettings,
)
from shoal.config.settings import MASK, Settings, mask_url
from shoal.errors import BadSettings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pydantic_core import ErrorDetails

FILE_NAME = "shoal.toml"
PREFIX = "SHOAL_"
Values = dict[str, Any]


def load(file: Path | None = None, given: Mapping[str, Any] | None = None, *, folders: Iterable[Path] = ()) -> Settings:
    """Settings from all three places, the later over the earlier, key by key also inside tables.

    `file`: None = `shoal.toml` of the current folder; if it has none, that of the one of `folders` (those of the
    targets) that has one. `given`: what the command line set; a value of None is absent.
    Raises BadSettings with one sentence that names the place.
    """
    if file is None and not Path(FILE_NAME).exists():
        file = _beside(folders)
    table, text = _read(file)
    shown = str(file or FILE_NAME)
    environment = _from_environment()
    line = {name: value for name, value in (given or {}).items() if value is not None}
    try:
        return Settings(**_merged(_merged(table, environment), line)).named(shown)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        place = _place(first, line, environment, shown, text)
        raise BadSettings(f"{place}: {_complaint(first)}") from None


def ignored_file(settings: Settings, folders: Iterable[Path]) -> Path | None:
    """A settings file beside a target that these settings are not from; None = there is none."""
    used = Path(settings.source).resolve()
    return next((path for path in _files_in(folders) if path.resolve() != used), None)


def _beside(folders: Iterable[Path]) -> Path | None:
    found = {path.resolve(): path for path in _files_in(folders)}
    if len(found) > 1:
        names = " and ".join(str(path) for path in found.values())
        raise BadSettings(f"There are {names}; say which of them holds for this command, with --config.")
    return next(iter(found.values()), None)


def _files_in(folders: Iterable[Path]) -> list[Path]:
    return [path for folder in folders if (path := folder / FILE_NAME).is_file()]


def stray_variables() -> list[str]:
    """Variables of the environment that begin with SHOAL_ and set nothing."""
    known = {f"{PREFIX}{name}".upper() for name in Settings.model_fields}
    return sorted(
        name for name in os.environ if name.upper().startswith(PREFIX) and name.upper().split("__", 1)[0] not in known
    )


def _read(file: Path | None) -> tuple[Values, str]:
    """The file as a table and as text; both empty when no file was asked for and none is there."""
    path = file or Path(FILE_NAME)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        if file is None:
            return {}, ""
        raise BadSettings(f"There is no settings file {str(file)!r}.") from None
    except UnicodeDecodeError:
        raise BadSettings(f"{path}: the file is not UTF-8 text.") from None
    except OSError as error:
        raise BadSettings(f"{path}: the file cannot be read ({error.strerror}).") from None
    try:
        return tomllib.loads(text), text
    except tomllib.TOMLDecodeError as error:
        raise BadSettings(f"{path}: this is not TOML: {error}.") from None


def _from_environment() -> Values:
    """What the environment sets.

    A misspelt name is an error; a name like nothing we know is left alone, for others (Kubernetes among them) also set
    variables that begin with SHOAL_.
    """
    known = [name.upper() for name in Settings.model_fields]
    for variable in stray_variables():
        name = variable.upper().removeprefix(PREFIX).split("__", 1)[0]
        if near := get_close_matches(name, known, n=1, cutoff=0.75):
            raise BadSettings(f"environment: {variable} is not a setting; did you mean {PREFIX}{near[0]}?")
    try:
        return EnvSettingsSource(Settings)()
    except SettingsError as error:
        found = re.search(r'field "(\w+)"', str(error))
        variable = f"{PREFIX}{found[1].upper()}" if found else "a variable"
        raise BadSettings(f"environment: {variable} is a table and must be written as a JSON object.") from None


def _merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> Values:
    """Both tables in one; where both have a value the second one's counts, and tables are merged in turn."""
    result = dict(under)
    for key, value in over.items():
        below = result.get(key)
        result[key] = _merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return result


def _complaint(error: ErrorDetails) -> str:
    """What is wrong with one value, as the end of a sentence."""
    path = [str(part) for part in error["loc"]]
    if path[0] == "route" and len(path) > 1:
        return _complaint_about_route(error, path)
    name = ".".join(path)
    if error["type"] == "extra_forbidden":
        known = _known_keys(path[:-1])
        near = get_close_matches(path[-1], known, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(sorted(known))}."
        return f"there is no setting {name!r}; {hint}"
    value = MASK if path[-1] == "secret_key" else _masked(error["input"])
    message = error["msg"].removeprefix("Value error, ")
    return f"{name} = {value!r} cannot be used: {message[0].lower()}{message[1:]}."


def _complaint_about_route(error: ErrorDetails, path: Sequence[str]) -> str:
    """The same for a `[[route]]`, which is named by its number, and may be wrong as a whole."""
    rule = f"route {int(path[1]) + 1}"
    message = error["msg"].removeprefix("Value error, ")
    if len(path) < 3:
        return f"{rule} cannot be used: {message}."
    if error["type"] == "extra_forbidden":
        known = _known_keys(path[:-1])
        near = get_close_matches(path[2], known, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(sorted(known))}."
        return f"{rule} has no setting {path[2]!r}; {hint}"
    return f"{rule}: {path[2]} = {error['input']!r} cannot be used: {message[0].lower()}{message[1:]}."


def _masked(value: Any) -> Any:
    """A value as it may be shown, texts in lists included."""
    if isinstance(value, list):
        return [_masked(each) for each in value]
    return mask_url(value) if isinstance(value, str) else value


def _known_keys(table: Sequence[str]) -> Iterable[str]:
    """Names of the settings in the table at this path."""
    models: dict[str, type[BaseModel]] = {
        "scrapers": ScraperSettings,
        "lanes": LaneSettings,
        "exits": PoolSettings,
        "route": RouteSettings,
        "serve": ServeSettings,
        "guard": GuardSettings,
        "tor": TorSettings,
    }
    return list((models[table[0]] if table else Settings).model_fields)


def _place(error: ErrorDetails, line: Values, environment: Values, file: str, text: str) -> str:
    """Where a value came from: the last of the three places that has it."""
    path = [str(part) for part in error["loc"]]
    if _has(line, path):
        return f"command line (--{path[-1].replace('_', '-')})"
    if _has(environment, path):
        return f"environment ({PREFIX}{'__'.join(path).upper()})"
    number = _line_of(text, path)
    return f"{file}, line {number}" if number else file


def _has(values: Any, path: Sequence[str]) -> bool:
    for key in path:
        if isinstance(values, list) and key.isdigit() and int(key) < len(values):
            values = values[int(key)]
        elif isinstance(values, dict) and key in values:
            values = values[key]
        else:
            return False
    return True


def _line_of(text: str, path: Sequence[str]) -> int | None:
    """The line where a key stands, for the usual ways to write it; None if it is written in another.

    By hand, because tomllib gives values without their lines, and a mistake is found by its line. A parser that keeps
    them would be one more dependency at every start, for a number in a complaint that may as well be absent.
    """
    table: list[str] = []
    arrays: Counter[str] = Counter()
    for number, line in enumerate(text.splitlines(), start=1):
        if header := re.fullmatch(r"\s*\[\[\s*([^\[\]]+?)\s*\]\]\s*(#.*)?", line):
            table = [*_parts(header[1]), str(arrays[header[1]])]
            arrays[header[1]] += 1
            if table == list(path):
                return number
        elif header := re.fullmatch(r"\s*\[\s*([^\[\]]+?)\s*\]\s*(#.*)?", line):
            table = _parts(header[1])
            if table == list(path):
                return number
        elif (pair := re.match(r"\s*([^=#]+?)\s*=", line)) and table + _parts(pair[1]) == list(path):
            return number
    return None


def _parts(dotted: str) -> list[str]:
    return [part.strip().strip("\"'") for part in dotted.split(".")]
