"""The door: what a handler asks for becomes a task that the frontier can hold, or is refused with the reason."""

from __future__ import annotations

import difflib
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from shoal.clock import LENGTHS, MOST_SECONDS, Millis, millis, seconds_from
from shoal.errors import BadScraper, BadURL
from shoal.request import Request
from shoal.routes import MOST_PRIORITY
from shoal.scraper import LANES
from shoal.task import NO_EXTRA, Extra, Kind, NewTask
from shoal.url import NormalURL, dedup_key, normalise, site_of

if TYPE_CHECKING:
    from shoal.routes import Routed
    from shoal.scraper import Scraper
    from shoal.task import Task


PLAIN_GUARDED = Extra(guarded=True)
_PAGE = Kind.PAGE
_UNSTORABLE = (TypeError, ValueError, OverflowError, RecursionError, NotImplementedError)
_stored = msgspec.json.Encoder().encode
_as_stored = msgspec.json.Decoder(Extra).decode


class Refused(NamedTuple):
    """A request that will not be made. `reason` is a short phrase. It is counted, and the crawl goes on."""

    url: str
    reason: str


def to_task(
    request: Request,
    scraper: Scraper,
    parent_depth: int = -1,
    parent_group: str | None = None,
    *,
    guarded: bool = False,
) -> NewTask | Refused:
    """The task for a request that was yielded on a page at `parent_depth` (-1 = at the start) in `parent_group`.

    `guarded`: a web client is behind it, as behind the task that led to it.

    A URL that cannot be fetched, or that the scraper's `max_depth` or `allow` keeps out, is Refused; downloads and
    sitemaps are kept out by neither, for they belong to the page or the site that names them. A label or lane that
    does not exist, and `data` that JSON cannot hold, are mistakes in the scraper: BadScraper.
    """
    url = request.url
    if type(url) is NormalURL:
        url = str(url)
    else:
        try:
            url = normalise(_text(url, scraper))
        except BadURL as error:
            return Refused(url, error.reason)
    depth = parent_depth + 1
    if request.kind is not Kind.FILE and request.to not in scraper.handlers:
        scraper.handler(request.to)  # raises, with the nearest label
    if request.kind is _PAGE:
        if scraper.max_depth is not None and depth > scraper.max_depth:
            return Refused(url, f"it is deeper than max_depth={scraper.max_depth}")
        if scraper.allow is not None and not scraper.allow(url):
            return Refused(url, "it is outside of what the scraper allows")
    group = parent_group if request.group is None else request.group
    if group is None and _is_plain(request):
        extra = PLAIN_GUARDED if guarded else NO_EXTRA
    else:
        extra = _extra(request, scraper, group, guarded=guarded)
    key = None
    if request.dedup:
        # A file is not the page of the same address: whoever asks for both gets both.
        key = dedup_key(url, extra.method if extra.kind is _PAGE else extra.kind.upper(), extra.body)
    site = site_of(url)
    lane = scraper.page_lane if request.lane is None and extra.kind is _PAGE else _lane(request, scraper)
    ttl = None if request.ttl is None else _ttl(request, scraper)
    priority = 0 if request.priority is None else _priority(request.priority, request, scraper)
    routed = None if scraper.routes is None else scraper.routes.find(url, site)
    if routed is None:
        return NewTask(url, site, key, lane, request.to, priority, depth, 0, ttl, extra)
    lane, ttl, priority = _by_route(routed, request, lane, ttl, priority)
    return NewTask(url, site, key, lane, request.to, priority, depth, 0, ttl, extra, routed.exits)


def pool_of(url: str, scraper: Scraper) -> str | None:
    """The pool of exits that a route names for a normalised URL; None = that of the scraper."""
    routed = None if scraper.routes is None else scraper.routes.find(url, site_of(url))
    return None if routed is None else routed.exits


def _by_route(
    routed: Routed, request: Request, lane: str, ttl: Millis | None, priority: int
) -> tuple[str, Millis | None, int]:
    """What a route says, where the request itself says nothing. A lane is for pages; sitemaps have none of it."""
    if request.kind is Kind.SITEMAP:
        return lane, ttl, priority
    if request.lane is None and routed.lane is not None and request.kind is _PAGE:
        lane = routed.lane
    if request.ttl is None:
        ttl = routed.ttl
    if request.priority is None and routed.priority is not None:
        priority = routed.priority
    return lane, ttl, priority


def to_request(task: Task) -> Request:
    """The request that a task came from, as its handler sees it in `page.request`."""
    extra = task.extra
    return Request(
        NormalURL(extra.first_url or task.url),
        task.handler,
        extra.data,
        extra.group,
        task.priority,
        task.lane,
        method=extra.method,
        headers=extra.headers,
        body=extra.body,
        kind=extra.kind,
        every=None if extra.every is None else extra.every / 1000,
    )


def _text(url: object, scraper: Scraper) -> str:
    if not isinstance(url, str):
        raise BadScraper(f"Scraper {scraper.name!r} asks for {url!r}, but the URL of a Request must be a string.")
    return url


def _ttl(request: Request, scraper: Scraper) -> Millis:
    if not isinstance(request.ttl, int | float) or not 0 < request.ttl <= MOST_SECONDS:
        raise BadScraper(f"{_asks(request, scraper)} with ttl={request.ttl!r}; it must be above 0, and a year at most.")
    return millis(request.ttl)


def _every(request: Request, scraper: Scraper) -> Millis:
    every = request.every
    with suppress(ValueError):
        every = seconds_from(every) if isinstance(every, str) else every
    if request.kind is Kind.FILE:
        raise BadScraper(f"{_asks(request, scraper)} as a file, with every={request.every!r}; that is for pages.")
    if not isinstance(every, int | float) or isinstance(every, bool) or not 0 < every <= MOST_SECONDS:
        raise BadScraper(
            f"{_asks(request, scraper)} with every={request.every!r}; it must be {LENGTHS}, above 0, a year at most."
        )
    return millis(every)


def _priority(priority: object, request: Request, scraper: Scraper) -> int:
    if not isinstance(priority, int) or abs(priority) > MOST_PRIORITY:
        raise BadScraper(
            f"{_asks(request, scraper)} with priority={priority!r}; "
            f"it must be a whole number from -{MOST_PRIORITY} to {MOST_PRIORITY}."
        )
    return priority


def _lane(request: Request, scraper: Scraper) -> str:
    lane = request.lane
    if lane is None and request.kind is Kind.SITEMAP:
        lane = "bulk" if scraper.page_lane == "browser" else scraper.page_lane
    elif lane is None:
        lane = "files"
    if lane in LANES or lane in scraper.lanes:
        return lane
    known = (*LANES, *scraper.lanes)
    near = difflib.get_close_matches(lane, known, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}."
    raise BadScraper(f"{_asks(request, scraper)} in the lane {lane!r}, which nobody works; {hint}")


def _asks(request: Request, scraper: Scraper) -> str:
    return f"Scraper {scraper.name!r} asks for {request.url}"


def _is_plain(request: Request) -> bool:
    return (
        request.data is None
        and request.method == "GET"
        and request.headers is None
        and request.body is None
        and request.kind is _PAGE
        and request.every is None
    )


def _extra(request: Request, scraper: Scraper, group: str | None, *, guarded: bool) -> Extra:
    """What most requests do not have, as every store will give it back. Raises BadScraper for what none can hold."""
    if request.data is not None:
        _check_data(request, scraper)
    body = request.body
    try:
        extra = Extra(
            data=request.data,
            group=group,
            method=request.method.upper(),
            headers=dict(request.headers) if request.headers else None,
            body=body.encode() if isinstance(body, str) else body,
            kind=request.kind,
            guarded=guarded,
            every=None if request.every is None else _every(request, scraper),
        )
        return _as_stored(_stored(extra))
    except (AttributeError, *_UNSTORABLE) as error:
        raise BadScraper(f"{_asks(request, scraper)} in a way that cannot be stored: {error}.") from error


def _check_data(request: Request, scraper: Scraper) -> None:
    try:
        msgspec.json.encode(request.data)
    except _UNSTORABLE as error:
        raise BadScraper(f"{_asks(request, scraper)} with data that JSON cannot hold: {error}.") from error
