"""Settings laid over scrapers."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

import msgspec

from shoal.api.routes import check_effects
from shoal.core.clock import millis
from shoal.core.lanes import known_lanes
from shoal.core.task import LanePolicy
from shoal.errors import BadSettings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from shoal.api.routes import Route
    from shoal.api.scraper import Scraper
    from shoal.config.sections import LaneSettings
from shoal.config.settings import Settings

OWN_NAMES = frozenset({"sitemap"})
"""Names that settings may speak of and that no target has: `shoal sitemap` is set up as a scraper of this name."""

CLOSE = 0.75
"""From here on a name is taken for another one, misspelt."""


def check_names(settings: Settings, scrapers: Iterable[str]) -> list[str]:
    """Look for names of scrapers in the settings that none of these have, and that are close to one of them.

    Answers a sentence for each. A settings file may be for more scrapers than these; but if nothing in it is for any of
    these, a name that is close to one, and not only by a number (`shop2`), is surely a mistake: BadSettings.
    """
    known = list(scrapers)
    named = {name: f"[scrapers.{name}]" for name in settings.scrapers}
    for number, rule in enumerate(settings.route, start=1):
        if rule.scraper is not None:
            named.setdefault(rule.scraper, f"route {number}, which is for the scraper {rule.scraper!r},")
    complaints: list[str] = []
    certain: list[str] = []
    for name, where in named.items():
        if name in known or name in OWN_NAMES:
            continue
        if near := get_close_matches(name, known, n=1, cutoff=CLOSE):
            complaint = f"{settings.source}: {where} is for no scraper of this command; did you mean {near[0]!r}?"
            misspelt = _letters(name) != _letters(near[0])
            if misspelt or near[0] not in named:
                complaints.append(complaint)
            if misspelt:
                certain.append(complaint)
    if certain and not any(name in known for name in named):
        raise BadSettings(certain[0])
    return complaints


def _letters(name: str) -> str:
    return re.sub(r"[^a-z]", "", name)


def configure(scraper: Scraper, settings: Settings) -> None:
    """Change a scraper as `[scrapers.NAME]`, `[lanes.NAME]` and `[[route]]` say. What they do not set stays as its
    author wrote it.

    The second time: nothing changes. Raises BadSettings for a lane that the scraper does not have.
    """
    for name, lane in settings.lanes.items():
        scraper.lanes[name] = _lane(scraper.lanes.get(name, LanePolicy()), lane)
    for option, value in settings.overrides(scraper.name).items():
        if option == "lane" and value not in (lanes := known_lanes(scraper.lanes)):
            known = ", ".join(lanes)
            raise BadSettings(f"scrapers.{scraper.name}.lane = {value!r} cannot be used: the lanes are {known}.")
        setattr(scraper, option, value)
        if option == "lane":
            scraper.page_lane = value
    _route(scraper, settings)


def _route(scraper: Scraper, settings: Settings) -> None:
    """The routes of the settings that are for this scraper, before its own."""
    lanes = known_lanes(scraper.lanes)
    routes: list[Route] = []
    for number, rule in enumerate(settings.route, start=1):
        if rule.scraper not in (None, scraper.name):
            continue
        try:
            check_effects(rule.route, lanes)
        except ValueError as error:
            raise BadSettings(f"{settings.source}: route {number} cannot be used: {error}.") from None
        routes.append(rule.route)
    scraper.route_by([*routes, *scraper.own_routes])


def _lane(policy: LanePolicy, settings: LaneSettings) -> LanePolicy:
    changes: dict[str, int | bool | None] = {}
    if "ttl" in settings.model_fields_set:
        changes["ttl"] = None if settings.ttl is None else millis(settings.ttl)
    if "ack" in settings.model_fields_set:
        changes["auto_ack"] = settings.ack == "auto"
    return msgspec.structs.replace(policy, **changes)
