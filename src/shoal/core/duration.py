"""Durations as people write them: a number of seconds, or a text such as "6h". One reader for all places."""

from __future__ import annotations

import re

Duration = float | str
"""A length of time: a number of seconds, or a text with a unit: "500ms", "30s", "10m", "6h", "2d", "1w"."""

MOST_SECONDS = 366 * 86400.0
"""The longest length of time that people may ask for, wherever they do: a year."""

_UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_LENGTH = re.compile(r"\s*([0-9]{1,15}(?:\.[0-9]{1,15})?)\s*(ms|[smhdw]|)\s*")

_WRITTEN = 'a number of seconds, or a text such as "500ms", "30s", "10m", "6h", "2d"'


def wanted(*, positive: bool = False) -> str:
    """How a duration is to be written, for complaints."""
    return f"{_WRITTEN}; {'above 0' if positive else '0 or more'}, and a year at most"


def seconds_from(value: object, *, positive: bool = False) -> float:
    """What somebody gave as a duration, in seconds: `"30m"` is 1800.0. `positive`: 0 is none.

    Raises ValueError, saying what it should have been, for anything else, and for more than a year.
    """
    if isinstance(value, str):
        seconds = seconds_written(value)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        seconds = value if 0 <= value <= MOST_SECONDS else None
    else:
        seconds = None
    if seconds is None or seconds > MOST_SECONDS or (positive and seconds == 0):
        raise ValueError(wanted(positive=positive))
    return float(seconds)


def seconds_written(text: str) -> float | None:
    """What a text says in seconds, however many; None = it is no length of time."""
    found = _LENGTH.fullmatch(text)
    return None if found is None else float(found[1]) * _UNITS[found[2]]
