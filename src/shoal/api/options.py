"""Validation of the options of a scraper: each held against what it may be."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from shoal.api.accepted import accepted_statuses
from shoal.api.auth import Credentials, credentials_by_origin
from shoal.api.blocked import Blocked
from shoal.api.request import Request
from shoal.api.routes import Route
from shoal.api.sitemap import Sitemap, sitemap_request
from shoal.core.clock import millis
from shoal.core.duration import Duration, seconds_from
from shoal.core.html.content import check_selector
from shoal.core.task import LanePolicy
from shoal.errors import BadScraper

if TYPE_CHECKING:
    from pydantic import BaseModel

CACHE_SECONDS = 60.0
"""How long `cache=True` keeps an answer."""


class LaneOptions(TypedDict, total=False):
    """How one lane treats tasks: `ttl` is a duration (default: no expiry); `ack` `"auto"` = at most once."""

    ttl: Duration
    ack: Literal["manual", "auto"]


class OptionCheck:
    """Each option, held against what it may be. The sentence names the scraper, the option and the value."""

    def __init__(self, scraper: str) -> None:
        self._scraper = scraper

    def _wrong(self, option: str, value: object, wanted: str) -> BadScraper:
        return BadScraper(f"Scraper {self._scraper!r}: {option} must be {wanted}, not {value!r}.")

    def seconds(self, option: str, value: Duration, *, positive: bool = False) -> float:
        try:
            return seconds_from(value, positive=positive)
        except ValueError as error:
            raise self._wrong(option, value, str(error)) from None

    def count(self, option: str, value: int, *, least: int) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise self._wrong(option, value, f"a whole number, {least} or more")
        return value

    def flag(self, option: str, value: bool) -> bool:
        if not isinstance(value, bool):
            raise self._wrong(option, value, "True or False")
        return value

    def word(self, option: str, value: str) -> str:
        if not isinstance(value, str) or not value.strip():
            raise self._wrong(option, value, "a name")
        return value

    def one_of(self, option: str, value: str, known: tuple[str, ...]) -> str:
        if value not in known:
            raise self._wrong(option, value, "one of " + ", ".join(known))
        return value

    def urls(self, option: str, value: Any, kinds: tuple[type, ...]) -> tuple[Any, ...]:
        if isinstance(value, kinds):
            return (value,)
        if not isinstance(value, Iterable) or isinstance(value, bytes | Mapping):
            raise self._wrong(option, value, "a list of URLs")
        entries = tuple(value)
        for entry in entries:
            if not isinstance(entry, kinds):
                raise self._wrong(option, entry, "a list of URLs")
        return entries

    def sitemaps(self, value: Any) -> tuple[Sitemap, ...] | Literal[True]:
        if value is True:
            return value
        entries = () if value is False else self.urls("sitemaps", value, (str, Sitemap))
        return tuple(self._sitemap(Sitemap(entry) if isinstance(entry, str) else entry) for entry in entries)

    def _sitemap(self, sitemap: Sitemap) -> Sitemap:
        try:
            sitemap_request(sitemap, 0)
        except ValueError as error:
            raise BadScraper(f"Scraper {self._scraper!r}: since of a sitemap must be {error}.") from None
        return sitemap

    def routes(self, value: Any) -> tuple[Route, ...]:
        routes = (value,) if isinstance(value, Route) else value
        if not isinstance(routes, Iterable) or isinstance(routes, str | bytes | Mapping):
            raise self._wrong("routes", value, "a list of Routes")
        listed = tuple(routes)
        for route in listed:
            if not isinstance(route, Route):
                raise self._wrong("routes", route, "a list of Routes")
        return listed

    def model(self, value: Any) -> type[BaseModel] | None:
        if value is not None and not (isinstance(value, type) and hasattr(value, "model_validate_json")):
            raise self._wrong("input", value, "a pydantic model class")
        return value  # checked by its method, so that pydantic need not be imported

    def cache(self, value: Duration | bool | None) -> float | None:
        if value is None or value is False:
            return None
        return CACHE_SECONDS if value is True else self.seconds("cache", value, positive=True)

    def selectors(self, option: str, value: str | Iterable[str]) -> tuple[str, ...]:
        listed = (value,) if isinstance(value, str) else value
        if not isinstance(listed, Iterable) or isinstance(listed, bytes | Mapping):
            raise self._wrong(option, value, "a list of CSS selectors")
        chosen = tuple(listed)
        for selector in chosen:
            try:
                check_selector(selector)
            except ValueError:
                raise self._wrong(option, selector, "a list of CSS selectors") from None
        return chosen

    def lanes(self, value: Mapping[str, LaneOptions] | None) -> dict[str, LanePolicy]:
        if value is not None and not isinstance(value, Mapping):
            raise self._wrong("lanes", value, 'a mapping such as {"priority": {"ttl": 60, "ack": "auto"}}')
        policies: dict[str, LanePolicy] = {}
        for lane, options in (value or {}).items():
            self.word("the name of a lane", lane)
            if not isinstance(options, Mapping) or options.keys() - {"ttl", "ack"}:
                raise self._wrong(f"lanes[{lane!r}]", options, 'options among "ttl" and "ack"')
            ttl = options.get("ttl")
            ack = self.one_of(f'lanes[{lane!r}]["ack"]', options.get("ack", "manual"), ("manual", "auto"))
            checked = None if ttl is None else millis(self.seconds(f'lanes[{lane!r}]["ttl"]', ttl, positive=True))
            policies[lane] = LanePolicy(ttl=checked, auto_ack=ack == "auto")
        return policies

    def blocked(self, value: Iterable[int | str]) -> Blocked:
        if isinstance(value, str | int) or not isinstance(value, Iterable):
            raise self._wrong("blocked", value, 'a list of statuses and patterns, such as [403, "captcha"]')
        try:
            return Blocked.of(value)
        except ValueError as error:
            raise BadScraper(f"Scraper {self._scraper!r}: blocked cannot be used: {error}.") from None

    def statuses(self, option: str, value: Any) -> tuple[int, ...]:
        try:
            return accepted_statuses(value)
        except ValueError as error:
            raise self._wrong(option, value, str(error)) from None

    def auth(self, value: Any, start: Iterable[str | Request]) -> dict[str, Credentials]:
        urls = [each if isinstance(each, str) else each.url for each in start]
        try:
            return credentials_by_origin(value, urls)
        except ValueError as error:  # what was given is not shown: it may well be a password
            raise BadScraper(f"Scraper {self._scraper!r}: auth must be {error}.") from None

    def headers(self, value: Mapping[str, str] | None) -> dict[str, str]:
        pairs = {} if value is None else value
        if not isinstance(pairs, Mapping):
            raise self._wrong("headers", value, "a mapping of names to values")
        for name, content in pairs.items():
            if not isinstance(name, str) or not isinstance(content, str) or re.search(r"[\r\n\x00]", name + content):
                raise self._wrong(f"headers[{name!r}]", content, "one line of text")
        return dict(pairs)
