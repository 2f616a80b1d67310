"""Admission: a request is normalised, checked and becomes a task, or is refused with the reason."""

from __future__ import annotations

import difflib
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from shoal.api.accepted import accepted_statuses
from shoal.api.request import Request
from shoal.api.request_body import Written, written
from shoal.api.routes import MOST_PRIORITY
from shoal.core.clock import Millis, millis
from shoal.core.duration import seconds_from
from shoal.core.lanes import BROWSER_LANE, BULK_LANE, FILES_LANE, NO_WORKERS_YET, known_lanes
from shoal.core.storable import (
    HALF,
    MAX_BODY,
    MAX_DATA,
    NUL,
    has_nul,
    headers_problem,
    is_method,
    json_problem,
    text_problem,
)
from shoal.core.task import NO_EXTRA, Extra, Kind, NewTask
from shoal.core.url import NormalURL, dedup_key, host_of, normalise, site_of
from shoal.errors import BadScraper, BadURL

if TYPE_CHECKING:
    from shoal.api.routes import Routed
    from shoal.api.scraper import Scraper
    from shoal.core.secret_box import SecretBox
    from shoal.core.task import Task


OUTSIDE = "it is outside of what the scraper allows"
TOO_MANY = "the job has as many pages as it may have"
PLAIN_GUARDED = Extra(guarded=True)
_PAGE = Kind.PAGE
_UNSTORABLE = (TypeError, ValueError, OverflowError, RecursionError, NotImplementedError)
_stored = msgspec.json.Encoder().encode
_as_stored = msgspec.json.Decoder(Extra).decode


class Refusal(StrEnum):
    """Why requests are not made, in the words of a summary."""

    NO_URL = "not a URL that can be fetched"
    TOO_DEEP = "deeper than max_depth"
    OUTSIDE = "outside of allow"
    UNSTORABLE = "more than a store can hold"
    TOO_MANY = "more pages than the job may have"
    NO_FILE_WORKERS = "downloads: file workers are not part of this version yet"
    NO_BROWSER_WORKERS = "pages for a browser: browser workers are not part of this version yet"


UNSTAFFED = {FILES_LANE: Refusal.NO_FILE_WORKERS, BROWSER_LANE: Refusal.NO_BROWSER_WORKERS}
"""Why a request for a lane that nobody works is refused."""


class Refused(NamedTuple):
    """A request that will not be made. `reason` is a short phrase. It is counted, and the crawl goes on."""

    url: str
    reason: str
    kind: Refusal = Refusal.NO_URL


def admit(
    request: Request,
    scraper: Scraper,
    parent_depth: int = -1,
    parent_group: str | None = None,
    *,
    guarded: bool = False,
) -> NewTask | Refused:
    """As `to_task`, and what would wait for workers that this version does not have is Refused as well."""
    task = to_task(request, scraper, parent_depth, parent_group, guarded=guarded)
    if isinstance(task, Refused) or task.lane not in NO_WORKERS_YET:
        return task
    return Refused(task.url, NO_WORKERS_YET[task.lane], UNSTAFFED[task.lane])


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
    sitemaps are kept out by neither, for they belong to the page that names them, or were named by the scraper itself
    (those that a site names: `may_lead_to`). What no store can hold (`shoal.core.storable`) is Refused as well: pages
    may have put it there. A label or lane that does not exist, and `data` of a type that JSON cannot hold, are mistakes
    in the scraper: BadScraper.
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
            return Refused(url, f"it is deeper than max_depth={scraper.max_depth}", Refusal.TOO_DEEP)
        if scraper.allow is not None and not scraper.allow(url):
            return Refused(url, OUTSIDE, Refusal.OUTSIDE)
    group = parent_group if request.group is None else request.group
    if group is None and _is_plain(request):
        extra = PLAIN_GUARDED if guarded else NO_EXTRA
    else:
        made = _extra(request, scraper, group, guarded=guarded)
        if isinstance(made, str):
            return Refused(url, made, Refusal.UNSTORABLE)
        extra = made
    key = None
    if request.dedup:
        # A file is not the page of the same address: whoever asks for both gets both.
        key = dedup_key(url, extra.method if extra.kind is _PAGE else extra.kind.upper(), extra.body)
    host = site_of(url)
    site = host if scraper.sites is None else scraper.sites.of(url)
    lane = scraper.page_lane if request.lane is None and extra.kind is _PAGE else _lane(request, scraper)
    ttl = None if request.ttl is None else _duration("ttl", request.ttl, request, scraper)
    priority = 0 if request.priority is None else _priority(request.priority, request, scraper)
    routed = None if scraper.routes is None else scraper.routes.find(url, host)
    if routed is None:
        return NewTask(url, site, key, lane, request.to, priority, depth, 0, ttl, extra)
    lane, ttl, priority = _by_route(routed, request, lane, ttl, priority)
    return NewTask(url, site, key, lane, request.to, priority, depth, 0, ttl, extra, routed.exits)


def may_lead_to(scraper: Scraper, source: str, url: str) -> bool:
    """Whether a sitemap file or a robots.txt at `source`, or a redirect of it, may lead to the sitemap file at `url`.

    `allow` says which pages are wanted, and the lists of these need not lie among them; but elsewhere than on the host
    that names them, they have to be allowed. What cannot be a URL is left to `to_task`.
    """
    if scraper.allow is None or type(url) is not NormalURL:
        return True
    return host_of(url) == host_of(source) or scraper.allow(url)


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


def to_request(task: Task, secrets: SecretBox) -> Request:
    """The request that a task came from, as its handler sees it in `page.request`, sealed headers opened."""
    extra = task.extra
    return Request(
        NormalURL(extra.first_url or task.url),
        task.handler,
        extra.data,
        extra.group,
        task.priority,
        task.lane,
        method=extra.method,
        headers=None if extra.headers is None else secrets.open_headers(extra.headers),
        body=extra.body,
        kind=extra.kind,
        every=None if extra.every is None else extra.every / 1000,
        timeout=None if extra.timeout is None else extra.timeout / 1000,
        accept=extra.accept,
        redirects=extra.follow,
    )


def _text(url: object, scraper: Scraper) -> str:
    if not isinstance(url, str):
        raise BadScraper(f"Scraper {scraper.name!r} asks for {url!r}, but the URL of a Request must be a string.")
    return url


def _every(request: Request, scraper: Scraper) -> Millis:
    if request.kind is Kind.FILE:
        raise BadScraper(f"{_asks(request, scraper)} as a file, with every={request.every!r}; that is for pages.")
    return _duration("every", request.every, request, scraper)


def _timeout(request: Request, scraper: Scraper) -> Millis:
    """Not longer than the scraper's: by that it is known when a request of a dead worker is surely over."""
    asked = _duration("timeout", request.timeout, request, scraper)
    if asked > millis(scraper.timeout):
        raise BadScraper(
            f"{_asks(request, scraper)} with timeout={request.timeout!r}, which is longer than the "
            f"{scraper.timeout:g} s of the scraper; raise that, and let requests that are in a hurry have less."
        )
    return asked


def _accept(request: Request, scraper: Scraper) -> tuple[int, ...]:
    try:
        return accepted_statuses(request.accept)
    except ValueError as error:
        raise BadScraper(f"{_asks(request, scraper)} with accept={request.accept!r}; it must be {error}.") from None


def _duration(option: str, value: object, request: Request, scraper: Scraper) -> Millis:
    try:
        return millis(seconds_from(value, positive=True))
    except ValueError as error:
        raise BadScraper(f"{_asks(request, scraper)} with {option}={value!r}; it must be {error}.") from None


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
        lane = BULK_LANE if scraper.page_lane == BROWSER_LANE else scraper.page_lane
    elif lane is None:
        lane = FILES_LANE
    known = known_lanes(scraper.lanes)
    if lane in known:
        return lane
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
        and request.json is None
        and request.form is None
        and request.cookies is None
        and request.timeout is None
        and request.accept is None
        and request.redirects is None
    )


def _unstorable(sent: Written, label: str | None, group: str | None) -> str | None:
    """Why no store can hold what a request has besides its URL, as far as that is text; None = each can."""
    for what, text in (("group", group), ("label", label)):
        if isinstance(text, str) and (problem := text_problem(text)) is not None:
            return f"its {what} cannot be stored: {problem}"
    if not is_method(sent.method):
        return f"{sent.method[:20]!r} is no method of a request"
    if sent.body is not None and len(sent.body) > MAX_BODY:
        return f"its body is {len(sent.body):,} long and {MAX_BODY:,} is the limit"
    if sent.headers and all(isinstance(word, str) for pair in sent.headers.items() for word in pair):
        return headers_problem(sent.headers)
    return None


def _extra(request: Request, scraper: Scraper, group: str | None, *, guarded: bool) -> Extra | str:
    """What most requests do not have, as every store will give it back; or why no store can hold it. Raises BadScraper
    for what cannot be sent, or what JSON cannot express."""
    try:
        sent = written(request)
    except UnicodeError:
        return f"it cannot be stored: {HALF}"
    except (AttributeError, TypeError, ValueError) as error:
        raise BadScraper(f"{_asks(request, scraper)} in a way that cannot be sent: {error}.") from error
    if (problem := _unstorable(sent, request.to, group)) is not None:
        return problem
    try:
        if request.data is not None and (problem := _data_problem(request, scraper)) is not None:
            return f"its data cannot be stored: {problem}"
        extra = Extra(
            data=request.data,
            group=group,
            method=sent.method,
            headers=sent.headers,
            body=sent.body,
            kind=request.kind,
            guarded=guarded,
            every=None if request.every is None else _every(request, scraper),
            timeout=None if request.timeout is None else _timeout(request, scraper),
            accept=None if request.accept is None else _accept(request, scraper),
            follow=request.redirects,
        )
        return _as_stored(_stored(extra))
    except UnicodeError:  # a page may have such text, and nobody is to blame
        return f"it cannot be stored: {HALF}"
    except (AttributeError, *_UNSTORABLE) as error:
        raise BadScraper(f"{_asks(request, scraper)} in a way that cannot be stored: {error}.") from error


def _data_problem(request: Request, scraper: Scraper) -> str | None:
    try:
        encoded = _stored(request.data)
    except UnicodeError:
        raise
    except _UNSTORABLE as error:
        raise BadScraper(f"{_asks(request, scraper)} with data that JSON cannot hold: {error}.") from error
    return NUL if has_nul(encoded) else json_problem(encoded, MAX_DATA)
