"""A pool of handler processes: pages of scrapers with `isolate=True`, and of web clients, are parsed and read there."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence

import structlog

from shoal.api.scraper import Scraper
from shoal.api.webhook_signature import DELIVERIES
from shoal.config.target import targets_of
from shoal.core import log_events
from shoal.core.task import Task
from shoal.errors import BadScraper
from shoal.work.isolation.handler_process import HandlerProcess
from shoal.work.isolation.messages import Hello, PageRead, PageWork
from shoal.work.options import IsolationOptions
from shoal.work.task.handler_failure import FailureKind, HandlerFailure

PATIENCE = 0.5
"""Seconds in which not one process has ended a page: then they are busy for long, and there is one more."""

MOST_PROCESSES = 8
"""At once, however many are busy for long."""

MOST_PAGES = 5000
"""After so many pages a process is replaced: what its handlers have kept goes with it."""

log = structlog.get_logger("shoal")


class HandlerPool:
    """Processes are started when they are first needed: one for each core, and more while these are busy for long.

    Raises BadScraper if a scraper has `isolate=True` that another process cannot load.
    """

    def __init__(self, scrapers: Mapping[str, Scraper], options: IsolationOptions) -> None:
        self._options = options
        self._targets: dict[str, Sequence[str]] = {}
        for scraper in scrapers.values():
            targets = targets_of(scraper)
            if targets:
                self._targets[scraper.name] = targets
            elif scraper.isolate:
                raise BadScraper(
                    f"Scraper {scraper.name!r} has isolate=True, but no other process could load it: make it at the "
                    "top of a file, and its handlers there or in files that name it."
                )
        self._scrapers = scrapers
        self._places: asyncio.LifoQueue[HandlerProcess | None] = asyncio.LifoQueue()
        self._number = min(os.cpu_count() or 1, MOST_PROCESSES)
        for _ in range(self._number):
            self._places.put_nowait(None)
        self._ended = 0
        self._processes: set[HandlerProcess] = set()
        self._warned: set[str] = set()

    def takes(self, task: Task, scraper: Scraper) -> bool:
        """Whether the pages of this task are read in a process of their own."""
        if not scraper.isolate and not (self._options.jobs and task.extra.guarded):
            return False
        if scraper.name in self._targets:
            return True
        if scraper.name not in self._warned and scraper.name != DELIVERIES:
            self._warned.add(scraper.name)
            log.warning(log_events.ISOLATION_MISSING, scraper=scraper.name)
        return False

    async def read(self, work: PageWork) -> PageRead | HandlerFailure:
        """Have a page read by the next process that is free. Cancelled, it is killed."""
        process = await self._free_place()
        try:
            if process is None:
                process = await self._start()
            return await process.read(work)
        except BadScraper as error:
            return HandlerFailure(FailureKind.STOPPED, type(error).__name__, str(error))
        finally:
            if process is not None and (process.is_over or process.pages >= MOST_PAGES):
                self._processes.discard(process)
                await process.kill()
                process = None
            self._ended += 1
            self._places.put_nowait(process)

    async def close(self) -> None:
        """End all of them."""
        for process in list(self._processes):
            await process.kill()
        self._processes.clear()

    async def _free_place(self) -> HandlerProcess | None:
        """A process that is free, or None for one that is to be started."""
        while self._number < MOST_PROCESSES:
            before = self._ended
            try:
                async with asyncio.timeout(PATIENCE):
                    return await self._places.get()
            except TimeoutError:
                if self._ended == before and self._number < MOST_PROCESSES:
                    self._number += 1
                    return None
        return await self._places.get()

    async def _start(self) -> HandlerProcess:
        names = sorted(self._targets)
        process = await HandlerProcess.start(
            Hello(
                tuple(dict.fromkeys(target for name in names for target in self._targets[name])),
                {name: list(self._scrapers[name].handlers) for name in names},
                tuple(sys.path),
                self._options.memory,
                self._options.timeout,
            )
        )
        self._processes.add(process)
        return process
