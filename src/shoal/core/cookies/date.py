"""The date of a cookie's Expires, read as browsers read it: in nearly any order and spelling."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from shoal.core.clock import Moment

MOST_CHARACTERS = 256
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DELIMITERS = re.compile(r"[\t\x20-\x2f\x3b-\x40\x5b-\x60\x7b-\x7e]+")
_TIME = re.compile(r"([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:[^0-9].*)?")
_DAY = re.compile(r"([0-9]{1,2})(?:[^0-9].*)?")
_YEAR = re.compile(r"([0-9]{2,4})(?:[^0-9].*)?")


def cookie_date(text: str) -> Moment | None:
    """The moment that it names, in UTC whatever it says of zones; None = it names none."""
    time = day = month = year = None
    for token in _DELIMITERS.split(text[:MOST_CHARACTERS]):
        if time is None and (found := _TIME.fullmatch(token)):
            time = [int(part) for part in found.groups()]
        elif day is None and (found := _DAY.fullmatch(token)):
            day = int(found[1])
        elif month is None and token[:3].lower() in _MONTHS:
            month = _MONTHS.index(token[:3].lower()) + 1
        elif year is None and (found := _YEAR.fullmatch(token)):
            year = int(found[1])
    if time is None or day is None or month is None or year is None:
        return None
    year += 1900 if 70 <= year <= 99 else 2000 if year <= 69 else 0
    if year < 1601:
        return None
    try:
        hour, minute, second = time
        return int(datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp() * 1000)
    except ValueError:
        return None
