"""Statuses that are handed to handlers besides 2xx: `accept=[404, 410]`."""

from __future__ import annotations

from collections.abc import Iterable

RATE_LIMIT = 429

WANTED = "a list of statuses from 300 to 599 such as [404, 410], without 429: a rate limit is waited for"


def accepted_statuses(given: object) -> tuple[int, ...]:
    """The statuses of `accept=`, in order and each once. Raises ValueError with what they must be."""
    listed = [given] if isinstance(given, int) else given
    if not isinstance(listed, Iterable) or isinstance(listed, str | bytes):
        raise ValueError(WANTED)  # noqa: TRY004 - a value that a user gave
    statuses = list(listed)
    for status in statuses:
        if type(status) is not int or not 300 <= status <= 599 or status == RATE_LIMIT:
            raise ValueError(WANTED)
    return tuple(sorted(set(statuses)))
