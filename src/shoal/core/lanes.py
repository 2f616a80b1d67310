"""Lanes: classes of work, each with its own workers, TTL and acknowledgement mode. Listed here and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from shoal.errors import UsageError

PRIORITY_LANE: Final = "priority"
BULK_LANE: Final = "bulk"
BROWSER_LANE: Final = "browser"
FILES_LANE: Final = "files"

LANES: Final = (PRIORITY_LANE, BULK_LANE, BROWSER_LANE, FILES_LANE)
"""Those that always exist, best first. A scraper may name more."""

OWN_WORKERS: Final = (BROWSER_LANE, FILES_LANE)
"""Lanes that page workers leave to workers of their own kind."""

NO_WORKERS_YET: Final[Mapping[str, str]] = {
    BROWSER_LANE: "browser workers are not part of this version yet",
    FILES_LANE: "file workers are not part of this version yet",
}
"""Lanes that nobody works in this version, each with what is said of it. What is meant for them is refused, so that no
run waits for workers that do not exist."""

PAGE_LANES: Final = tuple(lane for lane in LANES if lane not in OWN_WORKERS)
"""What a page worker works on unless told otherwise."""


def known_lanes(named: Iterable[str]) -> tuple[str, ...]:
    """All lanes there are, best first: those that always exist, then those that scrapers name."""
    return tuple(dict.fromkeys((*LANES, *named)))


def page_lanes(named: Iterable[str]) -> tuple[str, ...]:
    """Of all lanes there are, those of page workers."""
    return tuple(lane for lane in known_lanes(named) if lane not in OWN_WORKERS)


def left_for_pages(remaining: int, by_lane: Mapping[str, int]) -> int:
    """Of the tasks that remain, those that page workers have to do. `by_lane`: how many remain in each lane."""
    return remaining - sum(by_lane.get(lane, 0) for lane in OWN_WORKERS)


def lanes_from(text: str | None, known: tuple[str, ...]) -> tuple[str, ...]:
    """The lanes that `--lanes a,b` names; all, if it was not given. Raises UsageError for one that is not known."""
    if text is None:
        return known
    chosen = tuple(part.strip() for part in text.split(",") if part.strip())
    unknown = [lane for lane in chosen if lane not in known]
    if unknown or not chosen:
        raise UsageError(f"--lanes {text!r} names no lanes to work on; known are {', '.join(known)}.")
    return chosen
