"""One page at a time, fetched as a run would fetch it, on a store that is thrown away afterwards.

It is a worker that does it: with robots.txt, the delay of the scraper, its headers and exits, and redirects as always.
What differs is patience: the first answer is the answer, and nobody waits for a site that is down or limits us.
"""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from multidict import CIMultiDict

from shoal.api.handler import Handler
from shoal.api.page import Page
from shoal.api.scraper import Scraper
from shoal.cli.running.trying.site_turn import wait_for_site
from shoal.core.clock import SystemClock
from shoal.errors import UsageError
from shoal.fetch.observing.observed_fetcher import ObservedFetcher, ObservedRequest
from shoal.frontier.contract.frontier import NewRun
from shoal.frontier.open import open_engine
from shoal.intake.admission import Refused, admit
from shoal.runs.seeding import new_run_id
from shoal.runs.worker_options import worker_options
from shoal.work.worker import Worker

if TYPE_CHECKING:
    from shoal.api.request import Request
    from shoal.config.settings import Settings
    from shoal.frontier.contract.engine import Engine

LIMITS = (429, 503)
"""Statuses that ask for patience, which a person at a terminal is asked for instead."""

Read = Callable[[Page], Awaitable[None]]


@dataclass(slots=True)
class Tried:
    """What came of it. `page`: None = there was no answer that a handler would be given; `reason` says why.

    `requests`: all that were made, robots.txt included. `answer`: the last page that was answered, whatever its status.
    """

    request: Request
    page: Page | None = None
    reason: str | None = None
    disallowed: bool = False
    requests: list[ObservedRequest] = field(default_factory=list)

    @property
    def answer(self) -> Page | None:
        """The page, or what was answered in its place."""
        last = next((made.response for made in reversed(self.hops) if made.response is not None), None)
        if self.page is not None or last is None:
            return self.page
        return Page(last.url, last.body, status=last.status, headers=CIMultiDict(last.headers), request=self.request)

    @property
    def hops(self) -> list[ObservedRequest]:
        """The requests for the page itself."""
        return [made for made in self.requests if not is_robots(made)]


def is_robots(made: ObservedRequest) -> bool:
    """Whether it was a robots.txt that was asked for."""
    return made.fetch.cut


class Trial:
    """Fetches pages for one scraper, one after the other, all on one clock."""

    def __init__(self, settings: Settings, scraper: Scraper, folder: Path) -> None:
        self._settings = settings
        self._scraper = _impatient(scraper)
        self._store = f"sqlite:///{folder / 'trial.db'}"
        self._clock = SystemClock()

    async def fetch(self, request: Request, read: Read | None = None) -> Tried:
        """Have it fetched and, if it was, read while its lease is held. Raises UsageError for what is no URL."""
        tried = Tried(request)

        async def keep(page: Page) -> None:
            tried.page = page
            if read is not None:
                await read(page)

        reading = Handler(self._scraper.name, None, keep)
        self._scraper.handlers = dict.fromkeys([None, *self._scraper.handlers], reading)
        task = admit(request, self._scraper)
        if isinstance(task, Refused):
            raise UsageError(f"{task.url!r} cannot be fetched: {task.reason}.")
        await wait_for_site(self._settings, task.site, task.url, self._clock)
        engine = await open_engine(self._store, create=True)
        try:
            run_id = new_run_id(self._scraper.name, self._clock)
            await engine.frontier.create_run(NewRun(run_id, self._scraper.name, self._scraper.policy(), "single"))
            await engine.frontier.enqueue(run_id, [task])
            await engine.frontier.seal_run(run_id)
            await self._work(engine, run_id, tried)
            if tried.page is None:
                await self._explain(engine, run_id, tried)
        finally:
            await engine.close()
        return tried

    async def _work(self, engine: Engine, run_id: str, tried: Tried) -> None:
        options = worker_options(self._settings, drain=True, queues=(run_id,), revisit=False)

        class Stopping:
            """Sees each request, and stops the worker at the first that would have to be tried again."""

            async def observe(self, made: ObservedRequest) -> None:
                tried.requests.append(made)
                if made.error is not None:
                    tried.reason = made.error.text
                elif made.response is not None and made.response.status in LIMITS:
                    tried.reason = _limited(made.response.status, made.response.headers.get("Retry-After"))
                if tried.reason is not None:
                    worker.stop()

        worker = Worker(
            engine, [self._scraper], options,
            around=lambda fetcher: ObservedFetcher(fetcher, [Stopping()], self._clock, first_byte=True),
        )  # fmt: skip
        await worker.run()
        tried.disallowed = "robots.txt" in worker.tally.dropped

    async def _explain(self, engine: Engine, run_id: str, tried: Tried) -> None:
        dead = await engine.reader.dead(run_id)
        if dead:
            tried.reason = dead[0].reason.text
        elif tried.disallowed:
            tried.reason = "robots.txt disallows it"
        elif tried.reason is None:
            tried.reason = "it was dropped"


@contextmanager
def opened_trial(settings: Settings, scraper: Scraper) -> Iterator[Trial]:
    """A trial whose store is gone when the block has ended."""
    with TemporaryDirectory(prefix="shoal-trial-") as folder:
        yield Trial(settings, scraper, Path(folder))


def _impatient(scraper: Scraper) -> Scraper:
    """The same scraper, for whom the first answer counts, and who may go anywhere."""
    tried = copy.copy(scraper)
    tried.attempts, tried.site_down_after, tried.max_rate_limits = 1, 0.0, 1
    tried.allow, tried.max_depth, tried.every, tried.cache = None, None, None, None
    tried.isolate = False  # what it reads is wanted in this process
    return tried


def _limited(status: int, after: str | None) -> str:
    wait = f", and asks to wait {after}{' s' if after.isdigit() else ''}" if after else ""
    return f"the site answers HTTP {status}{wait}"
