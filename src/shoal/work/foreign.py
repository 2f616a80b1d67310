"""Work that is left to others: tasks of scrapers whose code a worker does not have."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from contextlib import suppress
from typing import NoReturn

import structlog

from shoal.errors import EngineError
from shoal.frontier.reading import Reader

LOOK_EVERY = 30.0
"""Seconds between two looks. They are for people, and cost the store one small question each."""

log = structlog.get_logger("shoal")


async def report_foreign_work(reader: Reader, scrapers: Collection[str], *, every: float = LOOK_EVERY) -> NoReturn:
    """Say of each scraper once that its tasks wait for workers that have its code. Until cancelled."""
    known = set(scrapers)
    while True:
        with suppress(EngineError):  # whoever works with the store says so
            found = await reader.scrapers()
            for name in sorted(found.keys() - known):
                known.add(name)
                log.warning("left for workers that have the code of this scraper", scraper=name, tasks=found[name])
        await asyncio.sleep(every)
