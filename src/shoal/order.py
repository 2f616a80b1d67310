"""From a wish to a run: a new one, one that goes on, or one that is given more; and filled, if it is not yet."""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from shoal.errors import UnknownRun, UsageError
from shoal.frontier.engine import Engine
from shoal.frontier.moving import MoveState
from shoal.frontier.protocol import Run
from shoal.frontier.reading import Reader
from shoal.lanes import left_for_pages
from shoal.runs import Seeded, new_run_id, seed
from shoal.scraper import Scraper
from shoal.task import RunState

ENDED = (RunState.FINISHED, RunState.CANCELLED)


class Chosen(NamedTuple):
    """The run that is meant. `found`: as it was when it was chosen; None = it is to be made. `fill`: it takes URLs."""

    run_id: str
    found: Run | None
    fill: bool


@dataclass(frozen=True, slots=True)
class Order:
    """One wish to have a scraper run.

    `urls` and `input`: None = none given. `mode`: None = the scraper's own. `run_id`: None = a new one or, with
    `resume`, the newest unfinished run of the scraper. A distributed run can be given more under its id, and takes
    what it has not seen; one of mode single is only gone on with.
    """

    scraper: Scraper
    urls: AsyncIterable[str] | Iterable[str] | None = None
    input: bytes | None = None
    mode: str | None = None
    run_id: str | None = None
    resume: bool = False

    @property
    def distributed(self) -> bool:
        """Whether the work is left to workers."""
        return (self.mode or self.scraper.mode) == "distributed"

    async def choose(self, reader: Reader) -> Chosen:
        """Find the run that is meant, or a name for a new one. Raises UsageError if what was asked for cannot be."""
        if self.resume:
            run = await (self._unfinished(reader) if self.run_id is None else self._named(reader, self.run_id))
            if self.urls is not None and run.state is not RunState.OPEN:
                raise UsageError(
                    f"The run {run.run_id} has its URLs already; resume it without giving URLs, or add some to a "
                    "distributed run under its id without resuming."
                )
            return Chosen(run.run_id, run, fill=run.state is RunState.OPEN)
        if self.run_id is None:
            return Chosen(new_run_id(self.scraper.name), None, fill=True)
        try:
            run = await self._named(reader, self.run_id)
        except UnknownRun:
            return Chosen(self.run_id, None, fill=True)
        if not self.distributed:
            raise UsageError(
                f"There is a run {self.run_id!r} already; add --resume to go on with it (in Python: resume=True), "
                "or choose another id."
            )
        if self.input is not None and self.input != run.input:
            raise UsageError(f"The run {self.run_id!r} was started with another input; choose another id.")
        return Chosen(self.run_id, run, fill=True)

    async def fill(self, engine: Engine, chosen: Chosen) -> Seeded:
        """Make the run if need be, let it go on if it was paused, and enqueue what it lacks, as a stream.

        The same again adds nothing. Raises UsageError if the run has nothing to begin with.
        """
        if self.resume:
            await engine.frontier.resume_run(chosen.run_id)
        if not chosen.fill:
            return Seeded()
        given = self.input if self.input is not None or chosen.found is None else chosen.found.input
        mode = self.mode or self.scraper.mode
        seeded = await seed(engine, self.scraper, chosen.run_id, urls=self.urls, input=given, mode=mode, add=True)
        if not seeded.accepted and not seeded.duplicates:
            raise UsageError(
                f"There is nothing to fetch: {self.scraper.name!r} begins nowhere that can be fetched. "
                "Give it start=[…] in its code, or give the run URLs."
            )
        return seeded

    async def _named(self, reader: Reader, run_id: str) -> Run:
        run = await reader.run(run_id)
        if run.scraper != self.scraper.name:
            raise UsageError(f"The run {run_id!r} is one of the scraper {run.scraper!r}, not of {self.scraper.name!r}.")
        if run.move is not None and run.move.state is MoveState.LEFT:
            raise UsageError(f"The run {run_id!r} was moved to {run.move.other}: resume it there, with that --engine.")
        if run.state is RunState.CANCELLED:
            raise UsageError(f"The run {run_id!r} was cancelled and cannot be resumed; start a new one.")
        return run

    async def _unfinished(self, reader: Reader) -> Run:
        mine = [run for run in await reader.runs() if run.scraper == self.scraper.name and run.state not in ENDED]
        if not mine:
            raise UsageError(f"There is no unfinished run of {self.scraper.name!r} to resume. Start a new one.")
        return next((run for run in mine if left_for_pages(run) or run.state is RunState.OPEN), mine[0])


def handed_over(run_id: str, enqueued: int, target: str, engine: str | None) -> dict[str, Any]:
    """What is known of a run that was left to workers. `engine`: None = workers find it in their settings."""
    command = ["shoal", "worker", target, "--run-id", run_id, *(() if engine is None else ("--engine", engine))]
    return {"status": "queued", "run_id": run_id, "enqueued": enqueued, "worker_command": shlex.join(command)}
