"""A line of the log for each request (`shoal run -v`)."""

from __future__ import annotations

import structlog

from shoal.core import log_events
from shoal.core.url import without_credentials
from shoal.fetch.observing.observed_fetcher import ObservedRequest

log = structlog.get_logger("shoal")


class RequestLines:
    """An observer that logs."""

    async def observe(self, made: ObservedRequest) -> None:
        fetch, seconds = made.fetch, round(made.took / 1000, 3)
        url = without_credentials(fetch.url)
        if made.response is not None:
            log.info(
                log_events.REQUEST_ANSWERED,
                status=made.response.status,
                method=fetch.method,
                url=url,
                bytes=made.response.received,
                seconds=seconds,
                exit=fetch.exit,
            )
        elif made.error is not None:
            log.info(
                log_events.REQUEST_FAILED,
                reason=made.error.text,
                method=fetch.method,
                url=url,
                seconds=seconds,
                exit=fetch.exit,
            )
