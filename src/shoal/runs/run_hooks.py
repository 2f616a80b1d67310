"""Hooks: what whoever starts a run wants to know, or to do differently, at each of its steps."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import structlog

from shoal.core import log_events
from shoal.core.clock import Clock, SystemClock
from shoal.intake.url_lists import URLList
from shoal.runs.follow import followed_to_end

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from shoal.fetch.protocol import Fetcher
    from shoal.frontier.contract.engine import Engine
    from shoal.frontier.contract.frontier import Run
    from shoal.runs.results import RunResult
    from shoal.runs.run_request import ChosenRun, RunRequest
    from shoal.runs.seeding import Seeded
    from shoal.work.worker import Worker

log = structlog.get_logger("shoal")


class RunHooks:
    """Called by RunFlow in this order: chosen, filling, filled; then handed_over and, with `wait`, follow; or work.

    This one is for programs: it works and follows without a word, and logs what was refused.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock = clock or SystemClock()
        self.around: Callable[[Fetcher], Fetcher] | None = None
        """What stands between the tasks that are worked on here and the network; None = nothing."""

    def chosen(self, request: RunRequest, chosen: ChosenRun) -> None:
        """The run is known."""

    @contextmanager
    def filling(self, request: RunRequest, chosen: ChosenRun) -> Iterator[None]:
        """Around the time in which the run is made and filled."""
        yield

    def filled(self, request: RunRequest, chosen: ChosenRun, seeded: Seeded) -> None:
        """The run has what it begins with."""
        given = request.urls if isinstance(request.urls, URLList) else None
        refused = seeded.refusals + (given.refused if given else 0)
        if refused:
            first = given.complaints[0] if given and given.refused else seeded.refused[0]
            log.warning(
                log_events.RUN_REFUSED_URLS, scraper=request.scraper.name, run=chosen.run_id, count=refused, first=first
            )

    def handed_over(self, request: RunRequest, result: RunResult) -> None:
        """The run is left to workers."""

    async def follow(self, engine: Engine, run_id: str) -> Run:
        """Answer the run when it has ended."""
        return await followed_to_end(engine.reader, run_id, self.clock)

    async def work(self, engine: Engine, run: Run, worker: Worker) -> bool:
        """Let the worker work until nothing is left for it. True = the user has interrupted it."""
        await worker.run()
        return False
