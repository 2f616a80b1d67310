"""URL filters: the entries of `allow=` and `deny=` as one question."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from shoal.core.url import host_of, normalise, site_of
from shoal.errors import BadScraper, BadURL

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
    Raises BadScraper for an entry that is none of these. `option`: how to call what was given, in that.
    """

    def __init__(self, entries: Iterable[Allowed], option: str = "allow") -> None:
        self._patterns: list[re.Pattern[str]] = []
        self._places: list[_Place] = []
        for entry in entries:
            if isinstance(entry, re.Pattern):
                self._patterns.append(entry)
            else:
                self._places.append(_place(entry, option))

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


class UrlFilter:
    """Wants what is within `allow` (None = everything) and not within `deny`; asked of normalised URLs."""

    def __init__(self, allow: tuple[Allowed, ...] | None, deny: tuple[Allowed, ...]) -> None:
        self._allowed = None if allow is None else Allowance(allow)
        self._denied = Allowance(deny, "deny") if deny else None

    def __call__(self, url: str) -> bool:
        if self._allowed is not None and not self._allowed(url):
            return False
        return self._denied is None or not self._denied(url)


def url_filter(allow: Allowed | Iterable[Allowed] | None, deny: Allowed | Iterable[Allowed] | None) -> UrlFilter:
    """The filter for what was given as `allow=` and `deny=`. Raises BadScraper as Allowance does."""
    return _filter(_listed("allow", allow), _listed("deny", deny) or ())


_filter = lru_cache(maxsize=1024)(UrlFilter)


def _listed(option: str, given: Allowed | Iterable[Allowed] | None) -> tuple[Allowed, ...] | None:
    if given is None or isinstance(given, str | re.Pattern):
        return None if given is None else (given,)
    if not isinstance(given, Iterable):
        raise _not_an_entry(option, given)
    entries = tuple(given)
    for entry in entries:
        if not isinstance(entry, str | re.Pattern):
            raise _not_an_entry(option, entry)
    return entries


def _not_an_entry(option: str, entry: object) -> BadScraper:
    return BadScraper(f"{option} takes host names, host/path prefixes and compiled patterns, not {entry!r}.")


def _place(entry: str, option: str) -> _Place:
    try:
        url = normalise(entry if "://" in entry else f"http://{entry}")
    except BadURL as error:
        said = f"{option} has {entry!r}, which is no host name or host/path prefix: {error.reason}."
        raise BadScraper(said) from None
    host, site = host_of(url), site_of(url)
    return _Place(host, site if site != host else None, url[url.index("/", 8) :])
