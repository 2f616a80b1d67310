"""Endings (tombstones): how a page ended where it was not done; what stores remember of that, and by which name.

Nothing is written when a task is done. So a page that a run has seen, that does not wait, is not leased and has no
ending, is done. Only pages are remembered, because only pages can be asked about: no files, no sitemaps, no forms.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha1, sha256

from shoal.core.task import FINAL, NO_EXTRA, Extra, Kind, accepted_url
from shoal.core.url import without_credentials
from shoal.frontier.contract.reader import Whereabouts

NAME_BYTES = 8


def page_of(url: str, extra: Extra = NO_EXTRA) -> str | None:
    """The page that a task is for, as one asks about it: without credentials. None = it is for something else."""
    if extra.kind is not Kind.PAGE or extra.method != "GET" or extra.body is not None:
        return None
    return without_credentials(accepted_url(url, extra))


def names_of(page: str) -> tuple[bytes, bytes]:
    """The two names of a page. A store writes the one that it can make by itself, and looks for both: a run may have
    come from a store that makes the other. PostgreSQL has no SHA-1, and Redis nothing else."""
    text = page.encode()
    return sha256(text).digest()[:NAME_BYTES], sha1(text, usedforsecurity=False).digest()[:NAME_BYTES]


def last_of(places: Iterable[Whereabouts]) -> Whereabouts:
    """Of several tasks for a page in one run: the first that has not ended, or else the one that ended last."""
    return max(places, key=lambda place: (place.state not in FINAL, place.ended_at or 0))
