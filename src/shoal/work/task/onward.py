"""What an answer is for: to be read by the handler, or to lead on (redirects, meta refresh)."""

from __future__ import annotations

from shoal.api.page import Page
from shoal.api.reading.meta_refresh import LOOKED_AT, refresh_url
from shoal.api.scraper import Scraper
from shoal.core.task import REDIRECTS, Kind
from shoal.fetch.protocol import Response
from shoal.work.task.attempt import Attempt


def accepts(scraper: Scraper, attempt: Attempt, response: Response) -> bool:
    """Whether an answer that is not 2xx is for the handler all the same."""
    task = attempt.task
    return attempt.extra.kind is Kind.PAGE and scraper.accepts(response.status, task.handler, task.extra)


def onward(scraper: Scraper, attempt: Attempt, response: Response) -> str | None:
    """Where an answer leads, as it says so; None = nowhere."""
    if response.status in REDIRECTS and "Location" in response.headers:
        return None if accepts(scraper, attempt, response) else response.headers["Location"]
    if not scraper.meta_refresh or attempt.extra.kind is not Kind.PAGE or response.status >= 300:
        return None
    if not (scraper.redirects if attempt.task.extra.follow is None else attempt.task.extra.follow):
        return None
    return refresh_url(Page(attempt.url, response.body[:LOOKED_AT], headers=response.headers))
