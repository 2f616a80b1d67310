"""Dates as sitemaps and feeds write them: how new an entry can be."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from shoal.core.clock import Moment

_W3C = re.compile(
    r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,]\d+)?)?\s*([Zz]|[+-]\d\d:?\d\d)?)?)?)?"
)
_DAY = 86_400_000


def latest(text: str) -> Moment | None:
    """The last moment that a date can mean: for a day its end. None = it is no date that anybody could read.

    Takes the W3C form of sitemaps and Atom, and the form of e-mails and RSS. Without a time zone it is UTC.
    """
    text = text.strip()
    found = _W3C.fullmatch(text)
    try:
        return _latest_w3c(*found.groups()) if found else _moment(parsedate_to_datetime(text))
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _latest_w3c(year: str, month: str | None, day: str | None, *clock: str | None) -> Moment:
    hour, minute, second, zone = clock
    if hour is None:
        last_month = int(month or 12)
        last_day = int(day or monthrange(int(year), last_month)[1])
        return _moment(datetime(int(year), last_month, last_day, tzinfo=UTC)) + _DAY - 1
    at = datetime(int(year), int(month or 1), int(day or 1), int(hour), int(minute or 0), int(second or 0), tzinfo=UTC)
    if zone and zone not in "Zz":
        digits = zone[1:].replace(":", "")
        shift = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
        at = at - shift if zone[0] == "+" else at + shift
    return _moment(at) + (999 if second else 59_999)


def _moment(at: datetime) -> Moment:
    aware = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return int(aware.timestamp() * 1000)
