"""Which lanes a worker works."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.errors import UsageError
from shoal.scraper import LANES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shoal.frontier.protocol import Run
    from shoal.scraper import Scraper

FILES_LANE = "files"
OWN_WORKERS = ("browser", FILES_LANE)
"""Lanes that page workers leave to workers of their own kind."""


def page_lanes(scrapers: Sequence[Scraper]) -> tuple[str, ...]:
    """The lanes of page workers, best first: those that always exist, then those that the scrapers name."""
    named = [lane for scraper in scrapers for lane in scraper.lanes]
    return tuple(lane for lane in dict.fromkeys((*LANES, *named)) if lane not in OWN_WORKERS)


def left_for_pages(run: Run) -> int:
    """Tasks that page workers have still to do."""
    return run.counters.remaining - sum(run.lanes.get(lane, 0) for lane in OWN_WORKERS)


def lanes_from(text: str | None, known: tuple[str, ...]) -> tuple[str, ...]:
    """The lanes that `--lanes a,b` names; all, if it was not given. Raises UsageError for one that is not known."""
    if text is None:
        return known
    chosen = tuple(part.strip() for part in text.split(",") if part.strip())
    unknown = [lane for lane in chosen if lane not in known]
    if unknown or not chosen:
        raise UsageError(f"--lanes {text!r} names no lanes to work on; known are {', '.join(known)}.")
    return chosen
