"""Time as a dependency, so that tests can jump hours in no time."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from typing import Protocol

Moment = int
"""Milliseconds since the epoch, by the clock of the store."""

Millis = int
"""A length of time in milliseconds."""


class Clock(Protocol):
    """Where the time comes from. Both answers are in milliseconds; `elapsed` never goes back."""

    def now(self) -> Moment: ...

    def elapsed(self) -> float: ...


class SystemClock:
    """The clock of this machine."""

    def now(self) -> Moment:
        return time.time_ns() // 1_000_000

    def elapsed(self) -> float:
        return time.monotonic() * 1000.0


def millis(seconds: float) -> Millis:
    """Seconds as whole milliseconds, rounded up: a delay may be longer than asked for, never shorter."""
    return -int(-seconds * 1000 // 1)


MOST_SECONDS = 366 * 86400.0
"""The longest length of time that people may ask for, wherever they do: a year."""

_UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_LENGTH = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(ms|s|m|h|d|)\s*")

LENGTHS = 'a number of seconds, or a text such as "500ms", "30s", "10m", "6h", "2d"'
"""How a length of time is written, for complaints."""


def seconds_from(text: str) -> float:
    """`"30m"` as 1800.0. Raises ValueError for what is no length of time."""
    found = _LENGTH.fullmatch(text)
    if found is None:
        raise ValueError(f"a length of time is {LENGTHS}")
    return float(found[1]) * _UNITS[found[2]]


def iso(at: Moment | None) -> str | None:
    """A moment for machines: UTC, to the millisecond. None stays None."""
    if at is None:
        return None
    return datetime.fromtimestamp(at / 1000, tz=UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
