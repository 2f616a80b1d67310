"""Routes: by what a URL looks like, where its task waits, how long it is worth fetching, how soon, at what pace, and by
which exits."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec

from shoal.core.clock import Millis, millis
from shoal.core.duration import Duration, seconds_from
from shoal.core.host_pattern import host_test, is_host_pattern
from shoal.core.lanes import BROWSER_LANE, BULK_LANE, FILES_LANE
from shoal.core.site_key import SiteKeyRules, is_site_name

MOST_PRIORITY = 1_000_000
"""Priorities reach from minus this to this."""

SITES_REMEMBERED = 10_000
"""For so many sites it is remembered which routes can apply to them."""


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """A rule for URLs. The first route of a scraper whose conditions all hold decides; a Request's own values go first.

    `host`: a host name (subdomains included, with `:port` only that one), or a pattern with `*` for whole names.
    `path`: a pattern for the whole path, in which `*` stands for anything: `/live/*`.
    `regex`: a regular expression that is looked for anywhere in the URL.
    `lane`: where pages wait. `ttl`: how long they are worth fetching. `priority`: higher goes
    first within its site. `browser`: True = they wait in the lane `browser`, False = not there (None = as the scraper
    says). `delay`: least time between two request starts of one slot, where that is longer than the scraper's; it is
    the pace of a site, so that a route with a delay has a `host` and no other condition. `exits`: the pool of exits by
    which they are fetched, sitemaps and files too (None = as the scraper says). `site`: the name of the site that these
    hosts are of, so that they share one pace, or the only one of that name; like a delay, it goes with a `host` alone.
    """

    host: str | None = None
    path: str | None = None
    regex: str | re.Pattern[str] | None = None
    lane: str | None = None
    ttl: Duration | None = None
    priority: int | None = None
    browser: bool | None = None
    delay: Duration | None = None
    exits: str | None = None
    site: str | None = None


class Routed(NamedTuple):
    """What a route says about a URL; None = nothing."""

    lane: str | None
    ttl: Millis | None
    priority: int | None
    exits: str | None = None


class _CompiledRoute(NamedTuple):
    on_host: Callable[[str], bool] | None
    path: re.Pattern[str] | None
    regex: re.Pattern[str] | None
    routed: Routed
    delay: Millis | None


class Routes:
    """Routes, compiled once. Raises ValueError for one that cannot be used, with the reason.

    `lanes`: those that there are. `page_lane`: where pages wait of which a route only says that they need no browser.
    `remembered`: for so many sites it is known by heart which routes can apply.
    """

    def __init__(
        self, routes: Iterable[Route], lanes: Iterable[str], page_lane: str, remembered: int = SITES_REMEMBERED
    ) -> None:
        self._remembered = remembered
        known = tuple(lanes)
        self._rules = [_compiled(route, known, page_lane) for route in routes]
        self._by_site: dict[str, tuple[list[_CompiledRoute], Millis | None]] = {}

    @property
    def pools(self) -> frozenset[str]:
        """The pools of exits that URLs may be sent by."""
        return frozenset(rule.routed.exits for rule in self._rules if rule.routed.exits is not None)

    @property
    def lanes(self) -> frozenset[str]:
        """The lanes that pages may be sent to."""
        return frozenset(rule.routed.lane for rule in self._rules if rule.routed.lane is not None)

    @staticmethod
    def site_rules(routes: Iterable[Route], *, by_domain: bool) -> SiteKeyRules | None:
        """How sites are keyed where these routes hold; None = each host is one."""
        named = tuple((route.host, route.site) for route in routes if route.host is not None and route.site is not None)
        return SiteKeyRules(by_domain, named) if by_domain or named else None

    def find(self, url: str, site: str) -> Routed | None:
        """What the first route that this normalised URL matches says; None = there is none. `site`: its host."""
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
        """The delay of the first route for the whole of this host; None = it has none, or there is no such route."""
        return (self._by_site.get(site) or self._look_up(site))[1]

    def _look_up(self, site: str) -> tuple[list[_CompiledRoute], Millis | None]:
        if len(self._by_site) >= self._remembered:
            self._by_site.clear()
        rules = [rule for rule in self._rules if rule.on_host is None or rule.on_host(site)]
        whole = next((rule for rule in rules if rule.path is None and rule.regex is None), None)
        found = self._by_site[site] = (rules, None if whole is None else whole.delay)
        return found


def check_conditions(route: Route) -> None:
    """Raises ValueError for conditions that cannot be used, and for a delay that would not be that of a site."""
    if route.host is None and route.path is None and route.regex is None:
        raise ValueError("it has neither host nor path nor regex, and so no URL that it is for")
    if route.host is not None and not is_host_pattern(route.host):
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
    alone = route.host is not None and route.path is None and route.regex is None
    if route.delay is not None and not alone:
        raise ValueError("delay is the pace of a whole site: a route with a delay has a host, and no path or regex")
    if route.site is not None and not alone:
        raise ValueError("site is about whole hosts: a route with a site has a host, and no path or regex")
    if route.site is not None and not is_site_name(route.site):
        raise ValueError(f"site = {route.site!r} is not a name of one word, such as 'shop' or 'shop.example'")


def check_effects(route: Route, lanes: tuple[str, ...]) -> None:
    """Raises ValueError for an effect that cannot be had. `lanes`: those that there are."""
    if route.lane is not None and route.browser:
        raise ValueError("it has a lane and browser; a page that needs a browser waits in the lane 'browser'")
    if route.lane is not None and (route.lane not in lanes or route.lane == FILES_LANE):
        raise ValueError(f"pages cannot wait in the lane {route.lane!r}; the lanes are {', '.join(lanes)}")
    _millis("ttl", route.ttl, positive=True)
    _millis("delay", route.delay)
    priority = route.priority
    if priority is not None and not (type(priority) is int and abs(priority) <= MOST_PRIORITY):
        raise ValueError(f"priority = {priority!r} is not a whole number from -{MOST_PRIORITY} to {MOST_PRIORITY}")
    if route.exits is not None and not (isinstance(route.exits, str) and route.exits.strip()):
        raise ValueError(f"exits = {route.exits!r} is not the name of a pool")
    if route.browser not in (None, True, False):
        raise ValueError(f"browser = {route.browser!r} is neither True nor False")


def _millis(name: str, value: Duration | None, *, positive: bool = False) -> Millis | None:
    if value is None:
        return None
    try:
        return millis(seconds_from(value, positive=positive))
    except ValueError as error:
        raise ValueError(f"{name} = {value!r} is not {error}") from None


def _compiled(route: Route, lanes: tuple[str, ...], page_lane: str) -> _CompiledRoute:
    check_conditions(route)
    check_effects(route, lanes)
    lane = route.lane
    if route.browser is True:
        lane = BROWSER_LANE
    elif route.browser is False and lane is None:
        lane = BULK_LANE if page_lane == BROWSER_LANE else page_lane
    path = None if route.path is None else re.compile(fnmatch.translate(route.path))
    regex = re.compile(route.regex) if isinstance(route.regex, str) else route.regex
    ttl, delay = _millis("ttl", route.ttl, positive=True), _millis("delay", route.delay)
    return _CompiledRoute(host_test(route.host), path, regex, Routed(lane, ttl, route.priority, route.exits), delay)
