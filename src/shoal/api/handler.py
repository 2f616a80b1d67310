"""A function that a user wrote to read pages, and how to point at it."""

from __future__ import annotations

import inspect
import linecache
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import PurePath
from types import CodeType
from typing import Any

from shoal.api.page import Page

_MOST_DECORATORS = 50
"""Lines in which a `def` is looked for."""


@dataclass(frozen=True, slots=True)
class Handler:
    """One handler of a scraper. `label`: None = the default one. `thread`: it runs in a thread of its own.

    `accept`: statuses besides 2xx that it is given; None = as the scraper says.
    """

    scraper: str
    label: str | None
    function: Callable[[Page], Any]
    thread: bool = False
    accept: tuple[int, ...] | None = None

    @property
    def title(self) -> str:
        """How reports call it: `detail`, or `listing (default)`."""
        return f"{name_of(self.function)} (default)" if self.label is None else self.label


def name_of(function: Callable[..., Any]) -> str:
    """The name a function was written under."""
    return getattr(_plain(function), "__name__", type(function).__name__)


def code_of(function: Callable[..., Any]) -> CodeType | None:
    """The code of a function behind decorators, partials and callable objects; None for what is not Python."""
    plain = _plain(function)
    code = getattr(plain, "__code__", None) or getattr(getattr(plain, "__call__", None), "__code__", None)  # noqa: B004
    return code if isinstance(code, CodeType) else None


def defined_at(function: Callable[..., Any]) -> str:
    """`books.py:12`, where a function was written: the line of its `def`, below its decorators."""
    code = code_of(function)
    return f"{PurePath(code.co_filename).name}:{_line_of_def(code)}" if code else name_of(function)


def paused_at(result: object, handler: Handler) -> str:
    """Where a handler stands at the moment: at its `yield` while it is suspended there, else where it is defined."""
    frame = getattr(result, "gi_frame", None) or getattr(result, "ag_frame", None)
    if frame is None:
        return f"{defined_at(handler.function)} in {name_of(handler.function)}"
    return f"{PurePath(frame.f_code.co_filename).name}:{frame.f_lineno} in {frame.f_code.co_name}"


def takes_a_page(function: Callable[..., Any]) -> bool:
    """Whether a handler can be given a Page: nothing more is required by name, and its argument is no other class."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # written in C, and silent about itself
        return True
    if any(p.kind is p.KEYWORD_ONLY and p.default is p.empty for p in parameters):
        return False
    wanted = parameters[0].annotation
    known = isinstance(wanted, type) and wanted.__module__.partition(".")[0] in ("builtins", "shoal")
    return not known or issubclass(Page, wanted)


def arguments_of(function: Callable[..., Any]) -> tuple[int, float]:
    """How many arguments a function must be given, and how many it can be given."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # written in C, and silent about itself
        return 0, math.inf
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    open_end = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    return sum(p.default is p.empty for p in positional), math.inf if open_end else len(positional)


def _line_of_def(code: CodeType) -> int:
    """Python calls a function's first decorator its first line."""
    first = code.co_firstlineno
    for line in range(first, first + _MOST_DECORATORS):
        if linecache.getline(code.co_filename, line).lstrip().startswith(("def ", "async def ", "class ")):
            return line
    return first


def _plain(function: Callable[..., Any]) -> Any:
    while isinstance(function, partial):
        function = function.func
    return inspect.unwrap(function)
