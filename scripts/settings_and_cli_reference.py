"""Writes the reference pages of settings and commands from the code itself; `make docs` calls it."""

from __future__ import annotations

import sys
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin

import typer.main
from pydantic import SecretStr

from shoal.cli.main import app
from shoal.config.sections import (
    GuardSettings,
    LaneSettings,
    PoolSettings,
    RouteSettings,
    ScraperSettings,
    ServeSettings,
    TorSettings,
)
from shoal.config.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

NOTE = "<!-- Made by `make docs`. Change the code, not this page. -->"
EVERYWHERE = ("--help", "--install-completion", "--show-completion")

SETTINGS_INTRODUCTION = """\
Settings come from three places, the later over the earlier: the file `shoal.toml` of the current folder (or
`--config FILE`), the environment, the command line. What is set nowhere has the default below; for a scraper that is
what its code says. An unknown key is an error that names the nearest known one. A length of time is a number of seconds
or a text with a unit: `"500ms"`, `"30s"`, `"10m"`, `"6h"`, `"2d"`.

In the environment a setting has the prefix `SHOAL_`, and `__` stands for the dot of a table:
`SHOAL_CONCURRENCY=16`, `SHOAL_SCRAPERS__BOOKS__DELAY=2`."""

ROUTES_INTRODUCTION = """\
Rules for URLs, as many as needed, each under a `[[route]]` of its own. The first whose conditions (`host`, `path`,
`regex`) all hold decides; they come before the routes in the code of a scraper. What a Request says itself goes first.
In the environment all of them together are `SHOAL_ROUTE`, a JSON list."""

CLI_INTRODUCTION = """\
Data goes to standard output, messages and progress to standard error. Exit codes: 0 done; 1 done, but something failed
(dead letters, a check of `doctor`); 2 not possible as asked, with one sentence that says why; 130 interrupted.
`--debug` may be added to any command and shows tracebacks. RUN is the id of a run, the beginning of one, or `last`."""


def pages() -> dict[str, str]:
    """Name and text of each page."""
    return {"cli.md": cli_page(), "settings.md": settings_page()}


def cli_page() -> str:
    """The commands, in the order in which `shoal --help` lists them."""
    parts = [NOTE, "# Command line", CLI_INTRODUCTION]
    for path, command in commands():
        parts += [f"## {path}", f"```\n{_usage(path, command)}\n```", command.help or ""]
        rows = [_parameter(each) for each in command.params if not getattr(each, "hidden", False)]
        rows = [row for row in rows if row[0].strip("`") not in EVERYWHERE]
        if rows:
            parts.append(_table(("parameter", "meaning", "default"), rows))
    return "\n\n".join(part for part in parts if part) + "\n"


def commands() -> Iterator[tuple[str, Any]]:
    """All commands that do something, with their full names."""
    yield from _below("shoal", typer.main.get_command(app))


def settings_page() -> str:
    """The settings, table by table."""
    parts = [NOTE, "# Settings", SETTINGS_INTRODUCTION, "## At the top of the file", _fields(Settings, "SHOAL_{}")]
    tables: tuple[tuple[type[BaseModel], str], ...] = (
        (ServeSettings, "serve"),
        (GuardSettings, "guard"),
        (ScraperSettings, "scrapers.NAME"),
        (LaneSettings, "lanes.NAME"),
        (PoolSettings, "exits.POOL"),
        (TorSettings, "tor"),
    )
    for model, name in tables:
        meaning = (model.__doc__ or "").partition(": ")[2]
        parts += [f"## `[{name}]`", meaning[:1].upper() + meaning[1:]]
        parts.append(_fields(model, f"SHOAL_{name.upper().replace('.', '__')}__{{}}"))
    parts += ["## `[[route]]`", ROUTES_INTRODUCTION, _fields(RouteSettings, None)]
    return "\n\n".join(parts) + "\n"


def _below(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    children = getattr(command, "commands", None)
    if children is None:
        yield path, command
        return
    for name, child in children.items():
        yield from _below(f"{path} {name}", child)


def _usage(path: str, command: Any) -> str:
    arguments = [each.metavar or each.name.upper() for each in command.params if each.param_type_name == "argument"]
    return " ".join([path, *arguments, "[OPTIONS]"])


def _parameter(parameter: Any) -> tuple[str, str, str]:
    if parameter.param_type_name == "argument":
        return f"`{parameter.metavar or parameter.name.upper()}`", parameter.help or "", ""
    names = ", ".join(f"`{name}`" for name in parameter.opts)
    metavar = "" if parameter.is_flag or not parameter.metavar else f" `{parameter.metavar}`"
    default = parameter.default
    shown = "" if parameter.is_flag or default in (None, (), []) else f"`{default}`"
    return f"{names}{metavar}", parameter.help or "", shown


def _fields(model: type[BaseModel], variable: str | None) -> str:
    header: tuple[str, ...] = ("setting", "kind", "default", "environment", "meaning")
    rows = [
        [f"`{name}`", _kind(field.annotation), _default(field), f"`{variable}`".format(name.upper()), field.description]
        for name, field in model.model_fields.items()
        if _kind(field.annotation) != "table"
    ]
    if variable is None:
        header = header[:3] + header[4:]
        rows = [[*row[:3], *row[4:]] for row in rows]
    return _table(header, rows)


def _kind(annotation: Any) -> str:
    if get_origin(annotation) in (Union, UnionType):
        return " or ".join(_kind(each) for each in get_args(annotation) if each is not NoneType)
    if get_origin(annotation) is Literal:
        return ", ".join(f"`{each}`" for each in get_args(annotation))
    if annotation == list[str]:
        return "list"
    if get_origin(annotation) in (dict, list) or annotation in (GuardSettings, ServeSettings, TorSettings):
        return "table"
    if get_origin(annotation) is not None:  # Annotated
        return _kind(get_args(annotation)[0])
    return {str: "text", SecretStr: "text", int: "whole number", float: "time", bool: "yes or no"}[annotation]


def _default(field: FieldInfo) -> str:
    if field.default is None or field.default_factory is not None:
        return "absent"
    return f"`{str(field.default).lower() if isinstance(field.default, bool) else field.default}`"


def _table(header: tuple[str, ...], rows: list[Any]) -> str:
    lines = [header, tuple("---" for _ in header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in pages().items():
        (folder / file).write_text(text, encoding="utf-8")
