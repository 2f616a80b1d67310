"""How values look on a terminal: tables, times, sizes, JSON."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from shoal.core.clock import utc

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shoal.core.clock import Moment


def print_json(value: Any, *, indent: bool = True) -> None:
    """One JSON value on stdout. `indent`: False = on one line."""
    told = msgspec.json.encode(value)
    sys.stdout.write((msgspec.json.format(told, indent=2) if indent else told).decode() + "\n")


def print_line(text: str = "") -> None:
    """One line of data on stdout."""
    sys.stdout.write(f"{text}\n")


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Columns under a header, never cut short. A column of numbers stands at its right edge."""
    texts = [[plain(str(cell)) for cell in row] for row in rows]
    widths = [max(len(line[column]) for line in [list(header), *texts]) for column in range(len(header))]
    right = [bool(rows) and all(isinstance(row[column], int) for row in rows) for column in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        padded = (
            cell.rjust(width) if at_right else cell.ljust(width)
            for cell, width, at_right in zip(cells, widths, right, strict=True)
        )
        return "  ".join(padded).rstrip()

    return "\n".join([line([name.upper() for name in header]), *map(line, texts)])


def plain(text: str) -> str:
    """The text without anything that could move a terminal's cursor; pages are written by strangers."""
    return "".join(character if character.isprintable() else "·" for character in text)


def moment(at: Moment | datetime | None) -> str:
    """A moment in local time; `-` for none."""
    if at is None:
        return "-"
    return (at if isinstance(at, datetime) else utc(at)).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def duration(seconds: float) -> str:
    """A length of time in at most two units: `0.05s`, `0.4s`, `12s`, `3m 05s`, `2h 10m`, `4d 3h`."""
    if 0 < seconds < 0.095:
        return f"{seconds:.1g}s" if seconds >= 0.001 else "0.001s"
    if seconds < 10:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02}s"
    if whole < 86400:
        return f"{whole // 3600}h {whole % 3600 // 60:02}m"
    return f"{whole // 86400}d {whole % 86400 // 3600}h"


def exact(seconds: float) -> str:
    """A length of time that somebody has set, as it was set: `0.25s`, `1s`, `90s`."""
    return f"{seconds:g}s" if seconds < 600 else duration(seconds)


def size(count: int) -> str:
    """Bytes with a unit of a thousand: `814 B`, `12.3 MB`."""
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


def count(number: int, one: str, many: str | None = None) -> str:
    """A number with its word: `1 page`, `1,204 pages`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
