"""Whether this version has workers for what a scraper asks of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.core.lanes import NO_WORKERS_YET
from shoal.errors import UsageError

if TYPE_CHECKING:
    from shoal.api.scraper import Scraper


def check_staffed(scraper: Scraper) -> None:
    """Raises UsageError for a scraper whose pages, or those of a route, would wait for workers that do not exist.

    A single request for such a lane is refused when it is made (`shoal.intake.admission.admit`).
    """
    routed = frozenset() if scraper.routes is None else scraper.routes.lanes
    for lane, sentence in NO_WORKERS_YET.items():
        if scraper.page_lane == lane:
            raise UsageError(f"The scraper {scraper.name!r} has its pages in the lane {lane!r}: {sentence}.")
        if lane in routed:
            raise UsageError(f"A route of the scraper {scraper.name!r} leads to the lane {lane!r}: {sentence}.")
