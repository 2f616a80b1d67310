"""Tracebacks for logs: where it happened and what was said, bounded, and never the values of variables.

Variables hold what clients sent: keys, cookies, bodies. And an error that takes seconds to print is a second fault.
"""

from __future__ import annotations

import sys
from collections.abc import MutableMapping
from traceback import TracebackException
from types import TracebackType
from typing import Any, cast

FRAMES = 20
"""Of each error, the innermost."""

MOST = 8_000
"""Characters of a traceback, or of any other text in a line; what is cut is the middle."""

ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None]


def bounded_traceback(error: BaseException) -> str:
    """The traceback of an error and its causes, in at most so many frames and characters."""
    shown = TracebackException.from_exception(error, limit=-FRAMES, max_group_width=5, max_group_depth=3, compact=True)
    return cut("".join(shown.format()).rstrip("\n"))


def cut(text: str, most: int = MOST) -> str:
    """A text that is not too long for a line of the log."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]} … ({len(text) - 2 * half:,} characters) … {text[-half:]}"


def with_traceback(_logger: object, _method: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """The error of a line as text (a processor of structlog), and every other text cut to size."""
    error = _error(line.pop("exc_info", None))
    for key, value in line.items():
        if isinstance(value, str) and len(value) > MOST:
            line[key] = cut(value)
    if error is not None:
        line["exception"] = bounded_traceback(error)
    return line


def _error(given: object) -> BaseException | None:
    """The error that `exc_info` means: itself, a tuple with it, or that it is the one being handled."""
    if isinstance(given, BaseException):
        return given
    if isinstance(given, tuple):
        return cast("ExcInfo", given)[1]
    return sys.exc_info()[1] if given else None
