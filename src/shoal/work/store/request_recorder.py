"""The log of requests (`shoal audit`): written down as they end, and kept with the next exchange."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shoal.api.scraper import Scraper
from shoal.core.clock import millis
from shoal.core.notes import Note
from shoal.insight.audit import KEPT, RequestRecord, stream_of, written
from shoal.work.task.attempt import Attempt


class RequestRecorder:
    """What was requested since the last exchange, by run."""

    def __init__(self, scrapers: Mapping[str, Scraper]) -> None:
        self._scrapers = scrapers
        self._requests: dict[str, list[RequestRecord]] = {}

    def write(self, attempt: Attempt) -> None:
        """Add the requests of an attempt that is over."""
        task = attempt.task
        scraper = self._scrapers[task.scraper]
        rules = millis(scraper.site_delay), scraper.concurrency
        self._requests.setdefault(task.run_id, []).extend(
            RequestRecord(task.site, attempt.lease.exit, m.at, m.slack, m.took, m.status, m.delay, *rules, m.robots)
            for m in attempt.made
        )

    def take(self) -> Sequence[Note]:
        """What was added since the last time."""
        notes = [Note(stream_of(run), written(made), KEPT) for run, made in self._requests.items()]
        self._requests.clear()
        return notes
