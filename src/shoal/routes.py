"""Routes: by what a URL looks like, where its task waits, how long it is worth fetching, how soon, at what pace, and by
which exits."""

from __future__ import annotations

import fnmatch
import math
import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec

from shoal.clock import MOST_SECONDS, Millis, millis
from shoal.url import host_of

MOST_PRIORITY = 1_000_000
"""Priorities reach from minus this to this."""

SITES_REMEMBERED = 10_000
"""For so many sites it is remembered which routes can apply to them."""

FILES_LANE, BROWSER_LANE = "files", "browser"


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """A rule for URLs. The first route of a scraper whose conditions all hold decides; a Request's own values go first.

    `host`: a host name (subdomains included, with `:port` only that one), or a pattern with `*` for whole names.
    `path`: a pattern for the whole path, in which `*` stands for anything: `/live/*`.
    `regex`: a regular expression that is looked for anywhere in the URL.
    `lane`: where pages wait. `ttl`: seconds after which they are no longer worth fetching. `priority`: higher goes
    first within its site. `browser`: True = they wait in the lane `browser`, False = not there (None = as the scraper
    says). `delay`: least seconds between two request starts of one slot, where that is longer than the scraper's; it is
    the pace of a site, so that a route with a delay has a `host` and no other condition. `exits`: the pool of exits by
    which they are fetched, sitemaps and files too (None = as the scraper says).
    """

    host: str | None = None
    path: str | None = None
    regex: str | re.Pattern[str] | None = None
    lane: str | None = None
    ttl: float | None = None
    priority: int | None = None
    browser: bool | None = None
    delay: float | None = None
    exits: str | None = None


class Routed(NamedTuple):
    """What a route says about a URL; None = nothing."""

    lane: str | None
    ttl: Millis | None
    priority: int | None
    exits: str | None = None


class _Rule(NamedTuple):
    on_host: Callable[[str], bool] | None
    path: re.Pattern[str] | None
    regex: re.Pattern[str] | None
    routed: Routed
    delay: Millis | None


class Routes:
    """Routes, compiled once. Raises ValueError for one that cannot be used, with the reason.

    `lanes`: those that there are. `page_lane`: where pages wait of which a route only says that they need no browser.
    """

    def __init__(self, routes: Iterable[Route], lanes: Iterable[str], page_lane: str) -> None:
        known = tuple(lanes)
        self._rules = [_compiled(route, known, page_lane) for route in routes]
        self._by_site: dict[str, tuple[list[_Rule], Millis | None]] = {}

    @property
    def pools(self) -> frozenset[str]:
        """The pools of exits that URLs may be sent by."""
        return frozenset(rule.routed.exits for rule in self._rules if rule.routed.exits is not None)

    def find(self, url: str, site: str) -> Routed | None:
        """What the first route that this normalised URL of `site` matches says; None = there is none."""
        rules, _ = self._by_site.get(site) or self._look_up(site)
        for rule in rules:
            if rule.path is not None:
                start = url.index("/", 8)
                end = url.find("?", start)
                if rule.path.fullmatch(url, start, end if end > 0 else len(url)) is None:
                    continue
            if rule.regex is None or rule.regex.search(url) is not None:
                return rule.routed
        return None

    def delay_of(self, site: str) -> Millis | None:
        """The delay of the first route for the whole of this site; None = it has none, or there is no such route."""
        return (self._by_site.get(site) or self._look_up(site))[1]

    def _look_up(self, site: str) -> tuple[list[_Rule], Millis | None]:
        if len(self._by_site) >= SITES_REMEMBERED:
            self._by_site.clear()
        rules = [rule for rule in self._rules if rule.on_host is None or rule.on_host(site)]
        whole = next((rule for rule in rules if rule.path is None and rule.regex is None), None)
        found = self._by_site[site] = (rules, None if whole is None else whole.delay)
        return found


def check_conditions(route: Route) -> None:
    """Raises ValueError for conditions that cannot be used, and for a delay that would not be that of a site."""
    if route.host is None and route.path is None and route.regex is None:
        raise ValueError("it has neither host nor path nor regex, and so no URL that it is for")
    if route.host is not None and not _is_host(route.host):
        raise ValueError(f"{route.host!r} is not a host: write `news.example`, `*.news.example` or `news.example:8080`")
    if route.path is not None and not (isinstance(route.path, str) and route.path.startswith(("/", "*"))):
        raise ValueError(f"the path {route.path!r} does not begin with / or *")
    if isinstance(route.regex, str):
        try:
            re.compile(route.regex)
        except re.error as error:
            raise ValueError(f"{route.regex!r} is not a regular expression: {error}") from None
    elif route.regex is not None and not isinstance(route.regex, re.Pattern):
        raise ValueError(f"{route.regex!r} is not a regular expression")
    if route.delay is not None and (route.host is None or route.path is not None or route.regex is not None):
        raise ValueError("delay is the pace of a whole site: a route with a delay has a host, and no path or regex")


def check_effects(route: Route, lanes: tuple[str, ...]) -> None:
    """Raises ValueError for an effect that cannot be had. `lanes`: those that there are."""
    if route.lane is not None and route.browser:
        raise ValueError("it has a lane and browser; a page that needs a browser waits in the lane 'browser'")
    if route.lane is not None and (route.lane not in lanes or route.lane == FILES_LANE):
        raise ValueError(f"pages cannot wait in the lane {route.lane!r}; the lanes are {', '.join(lanes)}")
    _check_number("ttl", route.ttl, above=0)
    _check_number("delay", route.delay, least=0)
    priority = route.priority
    if priority is not None and not (type(priority) is int and abs(priority) <= MOST_PRIORITY):
        raise ValueError(f"priority = {priority!r} is not a whole number from -{MOST_PRIORITY} to {MOST_PRIORITY}")
    if route.exits is not None and not (isinstance(route.exits, str) and route.exits.strip()):
        raise ValueError(f"exits = {route.exits!r} is not the name of a pool")
    if route.browser not in (None, True, False):
        raise ValueError(f"browser = {route.browser!r} is neither True nor False")


def _check_number(name: str, value: object, *, above: float = -math.inf, least: float = -math.inf) -> None:
    if value is None:
        return
    fits = isinstance(value, int | float) and not isinstance(value, bool) and value <= MOST_SECONDS
    if not fits or not above < value or not least <= value:  # type: ignore[operator]  # a number, as was just seen
        raise ValueError(
            f"{name} = {value!r} is not a number of seconds{' above 0' if above == 0 else ''}, a year at most"
        )


def _compiled(route: Route, lanes: tuple[str, ...], page_lane: str) -> _Rule:
    check_conditions(route)
    check_effects(route, lanes)
    lane = route.lane
    if route.browser is True:
        lane = BROWSER_LANE
    elif route.browser is False and lane is None:
        lane = "bulk" if page_lane == BROWSER_LANE else page_lane
    path = None if route.path is None else re.compile(fnmatch.translate(route.path))
    regex = re.compile(route.regex) if isinstance(route.regex, str) else route.regex
    ttl = None if route.ttl is None else millis(route.ttl)
    delay = None if route.delay is None else millis(route.delay)
    return _Rule(_host_test(route.host), path, regex, Routed(lane, ttl, route.priority, route.exits), delay)


def _is_host(text: object) -> bool:
    return isinstance(text, str) and re.fullmatch(r"[^\s/?#@\\]+", text.replace("?", "x")) is not None


def _host_test(host: str | None) -> Callable[[str], bool] | None:
    """Whether a site belongs to a host as a route names it. None = any does."""
    if host is None or host == "*":
        return None
    name = host.lower()
    with_port = re.search(r":[0-9]+$", name) is not None
    if "*" in name or "?" in name:
        whole = re.compile(fnmatch.translate(name)).match
        return lambda site: whole(site if with_port else _bare(site)) is not None
    below = f".{name}"

    def belongs(site: str) -> bool:
        place = site if with_port else _bare(site)
        return place == name or place.endswith(below)

    return belongs


def _bare(site: str) -> str:
    return host_of(f"http://{site}/")
