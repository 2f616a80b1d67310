"""What one worker left out and why, for the summary of a run; the store has only the totals."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import structlog

from shoal.core import log_events
from shoal.core.outcome import Blame, Dropped
from shoal.core.url import without_credentials
from shoal.intake.admission import UNSTAFFED

if TYPE_CHECKING:
    from shoal.api.page import Page
    from shoal.core.outcome import Outcome, Reason
    from shoal.intake.admission import Refusal
    from shoal.work.task.attempt import Attempt

MOST_WARNED = 10_000
"""Runs that it is remembered of that they were warned about."""

log = structlog.get_logger("shoal")


class BarrenPage(NamedTuple):
    """A start page whose handler gave neither an item nor a link. `url`: without credentials. `size`: in bytes."""

    url: str
    status: int
    size: int


class Tally:
    """Counts by reason, of what this worker has seen."""

    def __init__(self) -> None:
        self.refused: Counter[str] = Counter()
        self.dropped: Counter[str] = Counter()
        self._fruitful = False
        self._barren: BarrenPage | None = None
        self._warned: set[tuple[str, Refusal]] = set()

    @property
    def barren_start(self) -> BarrenPage | None:
        """The first start page, if no page gave anything at all; else None."""
        return None if self._fruitful else self._barren

    def ended(self, outcome: Outcome, attempt: Attempt) -> None:
        """An attempt is over."""
        if isinstance(outcome, Dropped):
            self.dropped[_why(outcome.reason)] += 1
        if attempt.refusals:
            self.refused.update({kind.value: number for kind, number in attempt.refusals.items()})
            self._warn(attempt)

    def read(self, page: Page, *, gave: bool) -> None:
        """A handler is through with a page. `gave`: an item or a link."""
        self._fruitful = self._fruitful or gave
        if not gave and page.depth == 0 and self._barren is None:
            self._barren = BarrenPage(without_credentials(page.url), page.status, len(page.body))

    def _warn(self, attempt: Attempt) -> None:
        """Something was refused because this version has no workers for it: said once per run and kind."""
        for kind in UNSTAFFED.values():
            if attempt.refusals[kind] and (attempt.task.run_id, kind) not in self._warned:
                if len(self._warned) >= MOST_WARNED:  # a worker may see runs without end
                    self._warned.clear()
                self._warned.add((attempt.task.run_id, kind))
                url = without_credentials(attempt.url)
                about = {"scraper": attempt.task.scraper, "run": attempt.task.run_id, "url": url}
                log.warning(log_events.LANE_UNSTAFFED, **about, reason=kind.value)


def _why(reason: Reason) -> str:
    if reason.blame is Blame.HANDLER:
        return "by the handler"
    return "redirected to where it may not go" if reason.text.startswith("redirected") else "robots.txt"
