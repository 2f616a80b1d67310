"""Writes docs/reference/python.md from the docstrings of what `import shoal` offers."""

from __future__ import annotations

import inspect
import re
import sys
from enum import Enum
from pathlib import Path
from types import FunctionType
from typing import Any

import shoal
import shoal.errors

NOTE = "<!-- Made by `make docs` from the docstrings. Change the code, not this page. -->"

INTRODUCTION = """\
`from shoal import …` offers these names and no others. A handler is a function, generator, coroutine or async
generator that takes one `Page`. It yields items (dicts, dataclasses, pydantic models), `Request`s and downloads, in any
nesting of lists; it may raise `Retry` or `Drop`."""

DURATION = """\
`float | str`: a number of seconds, or a text with a unit: `"500ms"`, `"30s"`, `"10m"`, `"6h"`, `"2d"`, `"1w"`; a year
at most. Wherever a length of time is given, in code, in settings and on the command line, either will do."""

ORDER = (
    "Scraper",
    "Page",
    "Element",
    "Matches",
    "Table",
    "Request",
    "FormFile",
    "BasicAuth",
    "DigestAuth",
    "Hop",
    "Sitemap",
    "Route",
    "Duration",
    "Retry",
    "Drop",
    "Orchestrator",
    "AsyncOrchestrator",
    "RunResult",
    "RunStatus",
    "Client",
    "AsyncClient",
    "open_leases",
    "LeaseClient",
    "LeaseOptions",
    "Job",
    "JobItem",
    "RefusedURL",
    "verify_webhook",
    "webhook_secret",
)
ERRORS = tuple(
    name
    for name, value in vars(shoal.errors).items()
    if isinstance(value, type) and issubclass(value, shoal.errors.ShoalError)
)
WIDTH = 110
EXPLAINS = re.compile(r"`\w+`(?:(?:, | and )`\w+`)*(?::| is | are | collects )").match
"""Whether a line of a docstring begins to explain a parameter."""


def python_page() -> str:
    """The whole page."""
    offered = set(shoal.__all__) - {"__version__"}
    if offered != {*ORDER, *ERRORS}:
        raise SystemExit(f"ORDER lacks or has too much: {offered ^ {*ORDER, *ERRORS}}")
    parts = [NOTE, "# Python", INTRODUCTION]
    told: set[type] = set()
    for name in ORDER:
        parts += [f"## {name}", DURATION] if name == "Duration" else _of(name, getattr(shoal, name), told)
    parts += ["## Errors", _tree()]
    return "\n\n".join(parts) + "\n"


def _tree() -> str:
    """What `shoal.errors` draws of them, and what it says below."""
    drawn, _, said = (shoal.errors.__doc__ or "").partition("\n\n")[2].rpartition("\n\n")
    return f"All of them can be had by `from shoal import …`.\n\n```\n{drawn}\n```\n\n{said.strip()}"


def _of(name: str, offered: type | FunctionType, told: set[type]) -> list[str]:
    parts = [f"## {name}", _call(name, offered), _prose(offered)]
    for method, value in _members(offered, told).items():
        if method.startswith("_") or not isinstance(value, FunctionType | classmethod | property):
            continue
        function = getattr(offered, method) if isinstance(value, classmethod) else value
        heading = f"### {name}.{method}"
        if isinstance(function, property):
            parts += [heading, _prose(function)]
        else:
            parts += [heading, _call(f"{name}.{method}", function), _prose(function)]
    return parts


def _members(offered: type | FunctionType, told: set[type]) -> dict[str, Any]:
    """What a class offers, with what it has from classes of ours that are neither offered themselves nor `told` yet."""
    if not isinstance(offered, type):
        return dict(vars(offered))
    members: dict[str, Any] = {}
    for each in offered.__mro__:
        ours = each.__module__.startswith("shoal.") and each.__name__ not in shoal.__all__
        if each is offered or (ours and each not in told):
            told.add(each)
            members = {**members, **{name: value for name, value in vars(each).items() if name not in members}}
    return members


def _call(name: str, called: Any) -> str:
    signature = inspect.signature(called)
    parameters = [_parameter(each) for each in signature.parameters.values() if each.name != "self"]
    keywords = [each for each in signature.parameters.values() if each.kind in (each.KEYWORD_ONLY, each.VAR_KEYWORD)]
    if keywords:
        parameters.insert(len(parameters) - len(keywords), "*")
    answer = "" if inspect.isclass(called) or signature.return_annotation is signature.empty else _answer(signature)
    line = f"{name}({', '.join(parameters)}){answer}"
    if len(line) > WIDTH:
        listed = "".join(f"\n    {each}," for each in parameters)
        line = f"{name}({listed}\n){answer}"
    return f"```\n{line}\n```"


def _parameter(parameter: inspect.Parameter) -> str:
    kind = "" if parameter.annotation is parameter.empty else f": {_spelled(parameter.annotation)}"
    default = "" if parameter.default is parameter.empty else f" = {_value(parameter.default)}"
    if parameter.kind is parameter.VAR_KEYWORD:
        return f"**{parameter.name}"
    return f"{parameter.name}{kind}{default}"


def _value(default: Any) -> str:
    return f"{type(default).__name__}.{default.name}" if isinstance(default, Enum) else repr(default)


def _answer(signature: inspect.Signature) -> str:
    return f" -> {_spelled(signature.return_annotation)}"


def _spelled(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"(?:\w+\.)+(?=\w)", "", text)


def _prose(documented: Any) -> str:
    """The docstring, with the lines that explain parameters as a list."""
    lines: list[str] = []
    listing = False
    for line in (inspect.getdoc(documented) or "").splitlines():
        begins = EXPLAINS(line) is not None
        listing = line != "" and (begins or listing)
        lines.append(f"- {line}" if begins else f"  {line}" if listing else line)
    return "\n".join(lines)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(python_page(), encoding="utf-8")
