"""The traceback of a failed handler: the lines of the user's own code, bounded in size, and never a variable."""

from __future__ import annotations

import os
import sysconfig
import traceback
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path, PurePath
from traceback import FrameSummary, StackSummary
from types import FrameType

from shoal.api.handler import Handler, code_of, defined_at, name_of
from shoal.core.storable import cleaned
from shoal.errors import BadScraper

MOST_BYTES = 4096
"""What a traceback may take in the store."""

MOST_CAUSES = 3
"""Exceptions of one chain (`raise … from …`) that are shown."""

_LIBRARIES = tuple(
    f"{os.path.realpath(folder)}{os.sep}"
    for folder in {
        str(Path(__file__).parents[2]),
        *(path for name, path in sysconfig.get_paths().items() if name.endswith(("lib", "stdlib"))),
    }
)
"""Where Python, what was installed and Shoal itself lie."""


@lru_cache(maxsize=1024)
def is_of_a_library(file: str) -> bool:
    """Whether a file is not the user's own."""
    return file.startswith("<frozen") or os.path.realpath(file).startswith(_LIBRARIES)


def where(error: BaseException, handler: Handler) -> str:
    """`books.py:12 in detail`: the innermost line of the user's own code that an exception came through; if that is not
    in the handler, `prices.py:7 in amount, from books.py:12 in detail`.

    If it came through none (the handler could not even be called), the line where the handler is defined.
    """
    if isinstance(error, BadScraper) and error.place is not None:
        return error.place
    code = code_of(handler.function)
    frames = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    mine = [(each, line) for each, line in frames if _is_users(each.co_filename, handler)]
    if not mine:
        return f"{defined_at(handler.function)} in {name_of(handler.function)}"
    inside, line = mine[-1]
    told = _place(inside.co_filename, line, inside.co_name)
    within = [(each, line) for each, line in mine if each is code]
    if inside is code or not within:
        return told
    return f"{told}, from {_place(code.co_filename if code else '', within[-1][1], within[-1][0].co_name)}"


def place_in(frame: FrameType | None) -> str | None:
    """Where the user's own code stands that this frame is of, or was called by; if none was, the frame itself."""
    innermost = None if frame is None else _place(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
    while frame is not None and is_of_a_library(frame.f_code.co_filename):
        frame = frame.f_back
    return innermost if frame is None else _place(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


def traceback_of(error: BaseException, handler: Handler) -> str | None:
    """What Python would print, from the user's first line on; the causes before it, as far as there is room.

    None = the exception came through no code of the user's.
    """
    told = _one(error, handler)
    if told is None:
        return None
    for cause, link in _causes(error):
        before = _one(cause, handler)
        if before is None or len(before.encode()) + len(link) + len(told.encode()) > MOST_BYTES:
            break
        told = f"{before}{link}{told}"
    return told


def _place(file: str, line: int | None, name: str) -> str:
    return f"{PurePath(file).name}:{line} in {name}"


def _is_users(file: str, handler: Handler) -> bool:
    code = code_of(handler.function)
    return (code is not None and file == code.co_filename) or not is_of_a_library(file)


def _causes(error: BaseException) -> Iterator[tuple[BaseException, str]]:
    """What an exception came from, nearest first, each with the words that stand between the two."""
    for _ in range(MOST_CAUSES):
        if error.__cause__ is not None:
            error = error.__cause__
            yield error, "\n\nThe above exception was the direct cause of the following exception:\n\n"
        elif error.__context__ is not None and not error.__suppress_context__:
            error = error.__context__
            yield error, "\n\nDuring handling of the above exception, another exception occurred:\n\n"
        else:
            return


def _one(error: BaseException, handler: Handler) -> str | None:
    frames = list(StackSummary.extract(traceback.walk_tb(error.__traceback__), lookup_lines=False))
    first = next((number for number, frame in enumerate(frames) if _is_users(frame.filename, handler)), None)
    if first is None:
        return None
    words = cleaned(error)
    last = f"{type(error).__name__}: {words}" if words else type(error).__name__
    last = last.encode()[: MOST_BYTES // 2].decode(errors="ignore")
    room = MOST_BYTES - len(last.encode())
    kept = frames[first:]
    for shown in (kept, [frame for frame in kept if _is_users(frame.filename, handler)]):
        text = _shown(shown, left_out=len(kept) - len(shown))
        if len(text.encode()) <= room:
            return text + last
    while True:
        shown = shown[max(1, len(shown) // 4) :]  # the last ones tell the most
        text = _shown(shown, left_out=len(kept) - len(shown))
        if len(text.encode()) <= room:
            return text + last


def _shown(frames: Iterable[FrameSummary], left_out: int) -> str:
    omitted = f"  ({left_out} more frames)\n" if left_out else ""
    return f"Traceback (most recent call last):\n{omitted}{''.join(StackSummary.from_list(list(frames)).format())}"
