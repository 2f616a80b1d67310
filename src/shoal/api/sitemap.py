"""What a user says about a sitemap, and what a task remembers of that."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import msgspec

from shoal.api.request import Request
from shoal.core.clock import Moment, millis
from shoal.core.duration import Duration, seconds_from, seconds_written
from shoal.core.task import Kind

Since = Duration | date | datetime | timedelta
"""A moment (`date`, `datetime`, "2026-05-01", "2026-05-01T12:00Z") or a time before now (`timedelta`, a number of
seconds, "36h", "7d")."""

MOST_FILES = 50_000
"""So many sitemaps are read at most because one that was asked for leads to them."""

_LONGEST_AGO = 86_400.0 * 365_000
_MILLISECOND = timedelta(milliseconds=1)


class Sitemap(msgspec.Struct, frozen=True):
    """A sitemap to begin with: a file of one, an index of several, a feed (RSS, Atom), a list of URLs, or the
    `robots.txt` of a site that names its sitemaps.

    `to`: label of the handler that reads the pages (None = the default handler).
    `since`: only pages and sitemaps that are not known to be older; those without a date are taken (None = all).
    `media`: the images and videos that it names are downloaded, too (False).
    `lastmod`: handlers are told as `page.data` what it says: `{"lastmod": …, "sitemap": …}` (False).
    `newest_first`: the newer the page, the higher its priority (False).
    """

    url: str
    to: str | None = None
    since: Since | None = None
    media: bool = False
    lastmod: bool = False
    newest_first: bool = False


class SitemapOrder(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a sitemap is to be read: the `data` of its task. `nested`: how many indexes led to it. `files`: how many more
    it may lead to; each index divides what it has among its own, so that the sum is bounded whoever reads them."""

    since: Moment | None = None
    media: bool = False
    lastmod: bool = False
    newest_first: bool = False
    nested: int = 0
    files: int = MOST_FILES


def sitemap_request(sitemap: Sitemap, now: Moment) -> Request:
    """The request for a sitemap. Raises ValueError for a `since` that cannot be understood."""
    since = None if sitemap.since is None else since_moment(sitemap.since, now)
    order = SitemapOrder(since, sitemap.media, sitemap.lastmod, sitemap.newest_first, files=MOST_FILES)
    return Request(sitemap.url, sitemap.to, msgspec.to_builtins(order), kind=Kind.SITEMAP)


def since_moment(since: Since, now: Moment) -> Moment:
    """The moment that a `since` means: for a day its beginning. Raises ValueError with what it should have been."""
    try:
        match since:
            case timedelta():
                return now - since // _MILLISECOND
            case datetime():
                return _moment(since)
            case date():
                return _moment(datetime(since.year, since.month, since.day, tzinfo=UTC))
            case str() if since.strip()[-1:].islower() and (ago := seconds_written(since)) is not None:
                return now - millis(min(ago, _LONGEST_AGO))
            case int() | float():
                return now - millis(seconds_from(since))
            case str():
                return _moment(datetime.fromisoformat(since.strip()))
    except (ValueError, OverflowError):
        pass
    raise ValueError(f'a date such as "2026-05-01" or a length of time such as "36h" or "7d", not {since!r}')


def _moment(at: datetime) -> Moment:
    aware = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return int(aware.timestamp() * 1000)
