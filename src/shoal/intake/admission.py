"""The door: what a handler asks for becomes a task that the frontier can hold, or is refused with the reason."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from shoal.clock import millis
from shoal.errors import BadScraper, BadURL
from shoal.request import Request
from shoal.scraper import LANES
from shoal.task import NO_EXTRA, Extra, Kind, NewTask
from shoal.url import NormalURL, dedup_key, normalise, site_of

if TYPE_CHECKING:
    from shoal.scraper import Scraper
    from shoal.task import Task


class Refused(NamedTuple):
    """A request that will not be made. `reason` is a short phrase. It is counted, and the crawl goes on."""

    url: str
    reason: str


def to_task(
    request: Request, scraper: Scraper, parent_depth: int = -1, parent_group: str | None = None
) -> NewTask | Refused:
    """The task for a request that was yielded on a page at `parent_depth` (-1 = at the start) in `parent_group`.

    A URL that cannot be fetched, or that the scraper's `max_depth` or `allow` keeps out, is Refused; downloads are kept
    out by neither, for a file belongs to the page that shows it. A label or lane that does not exist, and `data` that
    JSON cannot hold, are mistakes in the scraper: BadScraper.
    """
    is_file = request.kind is Kind.FILE
    if not is_file and request.to not in scraper.handlers:
        scraper.handler(request.to)  # raises, with the nearest label
    url = request.url
    if type(url) is NormalURL:
        url = str(url)
    else:
        try:
            url = normalise(url)
        except BadURL as error:
            return Refused(request.url, error.reason)
    depth = parent_depth + 1
    if not is_file:
        if scraper.max_depth is not None and depth > scraper.max_depth:
            return Refused(url, f"it is deeper than max_depth={scraper.max_depth}")
        if scraper.allow is not None and not scraper.allow(url):
            return Refused(url, "it is outside of what the scraper allows")
    extra = _extra(request, scraper, parent_group)
    key = dedup_key(url, extra.method, extra.body) if request.dedup else None
    ttl = None if request.ttl is None else millis(request.ttl)
    lane = _lane(request, scraper)
    return NewTask(url, site_of(url), key, lane, request.to, request.priority, depth, 0, ttl, extra)


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
    )


def _lane(request: Request, scraper: Scraper) -> str:
    lane = request.lane
    if lane is None:
        if request.kind is Kind.FILE:
            return "files"
        return scraper.lane or ("browser" if scraper.browser else "bulk")
    if lane in LANES or lane in scraper.lanes:
        return lane
    known = (*LANES, *scraper.lanes)
    near = difflib.get_close_matches(lane, known, 1)
    hint = f"did you mean {near[0]!r}" if near else f"there are {', '.join(known)}"
    raise BadScraper(
        f"Scraper {scraper.name!r} asks for {request.url} in the lane {lane!r}, which nobody works; {hint}."
    )


def _extra(request: Request, scraper: Scraper, parent_group: str | None) -> Extra:
    group = parent_group if request.group is None else request.group
    method = request.method
    if (
        group is None
        and request.data is None
        and method == "GET"
        and request.headers is None
        and request.body is None
        and request.kind is Kind.PAGE
    ):
        return NO_EXTRA
    if request.data is not None:
        _check_data(request, scraper)
    body = request.body
    return Extra(
        data=request.data,
        group=group,
        method=method.upper(),
        headers=dict(request.headers) if request.headers else None,
        body=body.encode() if isinstance(body, str) else body,
        kind=request.kind,
    )


def _check_data(request: Request, scraper: Scraper) -> None:
    try:
        msgspec.json.encode(request.data)
    except (TypeError, ValueError, OverflowError, RecursionError, NotImplementedError) as error:
        raise BadScraper(
            f"Scraper {scraper.name!r} asks for {request.url} with data that JSON cannot hold: {error}."
        ) from error
