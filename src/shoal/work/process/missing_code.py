"""Work that is left to others: tasks of scrapers whose code a worker does not have."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from typing import NoReturn

import structlog

from shoal.core import log_events
from shoal.core.clock import Clock, SystemClock
from shoal.errors import EngineError
from shoal.frontier.contract.reader import Reader

LOOK_EVERY = 30.0
"""Seconds between two looks. They are for people, and cost the store one small question each."""

log = structlog.get_logger("shoal")


async def report_missing_code(
    reader: Reader, scrapers: Collection[str], *, every: float = LOOK_EVERY, clock: Clock | None = None
) -> NoReturn:
    """Say of each scraper once that its tasks wait for workers that have its code. Until cancelled."""
    known, clock = set(scrapers), clock or SystemClock()
    while True:
        with suppress(EngineError):  # whoever works with the store says so
            found = await reader.scrapers()
            for name in sorted(found.keys() - known):
                known.add(name)
                log.warning(log_events.CODE_MISSING, scraper=name, tasks=found[name])
        await clock.sleep(every)
