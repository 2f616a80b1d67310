"""A function that a user wrote to read pages, and how to point at a line of it."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import partial
from pathlib import PurePath
from types import CodeType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from shoal.page import Page


@dataclass(frozen=True, slots=True)
class Handler:
    """One handler of a scraper. `label`: None = the default one."""

    scraper: str
    label: str | None
    function: Callable[[Page], Any]

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
    """`books.py:12`, where a function was written."""
    code = code_of(function)
    return f"{PurePath(code.co_filename).name}:{code.co_firstlineno}" if code else name_of(function)


def where(error: BaseException, handler: Handler) -> str:
    """`books.py:12 in detail`: the last line of the user's own file that an exception came through.

    If it came through none (the handler could not even be called), the line where the handler is defined.
    """
    code = code_of(handler.function)
    place = f"{defined_at(handler.function)} in {name_of(handler.function)}"
    step = error.__traceback__
    while step is not None and code is not None:
        inside = step.tb_frame.f_code
        if inside.co_filename == code.co_filename:
            place = f"{PurePath(inside.co_filename).name}:{step.tb_lineno} in {inside.co_name}"
        step = step.tb_next
    return place


def paused_at(result: object, handler: Handler) -> str:
    """Where a handler stands at the moment: at its `yield` while it is suspended there, else where it is defined."""
    frame = getattr(result, "gi_frame", None) or getattr(result, "ag_frame", None)
    if frame is None:
        return f"{defined_at(handler.function)} in {name_of(handler.function)}"
    return f"{PurePath(frame.f_code.co_filename).name}:{frame.f_lineno} in {frame.f_code.co_name}"


def _plain(function: Callable[..., Any]) -> Any:
    while isinstance(function, partial):
        function = function.func
    return inspect.unwrap(function)
