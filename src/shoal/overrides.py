"""Settings laid over scrapers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from shoal.clock import millis
from shoal.errors import BadSettings
from shoal.routes import check_effects
from shoal.scraper import LANES
from shoal.task import LanePolicy

if TYPE_CHECKING:
    from shoal.routes import Route
    from shoal.scraper import Scraper
    from shoal.settings import LaneSettings, Settings


def configure(scraper: Scraper, settings: Settings) -> None:
    """Change a scraper as `[scrapers.NAME]`, `[lanes.NAME]` and `[[route]]` say. What they do not set stays as its
    author wrote it.

    The second time: nothing changes. Raises BadSettings for a lane that the scraper does not have.
    """
    for name, lane in settings.lanes.items():
        scraper.lanes[name] = _lane(scraper.lanes.get(name, LanePolicy()), lane)
    for option, value in settings.overrides(scraper.name).items():
        if option == "lane" and value not in (*LANES, *scraper.lanes):
            known = ", ".join((*LANES, *(lane for lane in scraper.lanes if lane not in LANES)))
            raise BadSettings(f"scrapers.{scraper.name}.lane = {value!r} cannot be used: the lanes are {known}.")
        setattr(scraper, option, value)
        if option == "lane":
            scraper.page_lane = value
    _route(scraper, settings)


def _route(scraper: Scraper, settings: Settings) -> None:
    """The routes of the settings that are for this scraper, before its own."""
    lanes = tuple(dict.fromkeys((*LANES, *scraper.lanes)))
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
