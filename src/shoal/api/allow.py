"""URL filters of a scraper: the entries of `allow=` as one question."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from shoal.core.url import host_of, normalise, site_of
from shoal.errors import BadScraper, BadURL

if TYPE_CHECKING:
    from collections.abc import Iterable

Allowed = str | re.Pattern[str]


class _Place(NamedTuple):
    """A host with its subdomains, on one port or (None) on any, below a path."""

    host: str
    site: str | None
    path: str


class Allowance:
    """Answers whether a normalised URL is within any of the entries.

    `books.example`: that host and its subdomains, on any port unless one is named. `books.example/fiction`: only what
    begins with that path. A compiled pattern: what it finds (`search`) anywhere in the URL.
    Raises BadScraper for an entry that is none of these.
    """

    def __init__(self, entries: Iterable[Allowed]) -> None:
        self._patterns: list[re.Pattern[str]] = []
        self._places: list[_Place] = []
        for entry in entries:
            if isinstance(entry, re.Pattern):
                self._patterns.append(entry)
            else:
                self._places.append(_place(entry))

    def __call__(self, url: str) -> bool:
        site = site_of(url)
        host = host_of(url)
        for place in self._places:
            if host != place.host and not host.endswith("." + place.host):
                continue
            if place.site is not None and not (site == place.site or site.endswith("." + place.site)):
                continue
            if place.path == "/" or url.startswith(place.path, url.index("/", 8)):
                return True
        return any(pattern.search(url) for pattern in self._patterns)


def _place(entry: object) -> _Place:
    if not isinstance(entry, str):
        raise BadScraper(f"allow takes host names, host/path prefixes and compiled patterns, not {entry!r}.")
    try:
        url = normalise(entry if "://" in entry else f"http://{entry}")
    except BadURL as error:
        raise BadScraper(f"allow has {entry!r}, which is no host name or host/path prefix: {error.reason}.") from None
    host, site = host_of(url), site_of(url)
    return _Place(host, site if site != host else None, url[url.index("/", 8) :])
