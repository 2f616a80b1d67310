"""What `shoal run` does once it is clear what is meant: choose a run, seed it, have it worked, hand over its items."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.cli.crawl import Crawl
from shoal.cli.frame import FAILURES, INTERRUPTED, OK, complain, say
from shoal.cli.interrupt import interrupted_at_once
from shoal.cli.lanes import FILES_LANE
from shoal.cli.opening import opened
from shoal.cli.progress import display_for, follow_to_end
from shoal.cli.summary import as_json, summary
from shoal.cli.text import count, print_json
from shoal.errors import UnknownRun, UsageError
from shoal.export import Output, export, items_of
from shoal.runs import new_run_id, seed
from shoal.settings import mask_url
from shoal.task import RunState

if TYPE_CHECKING:
    from shoal.cli.urls import GivenURLs
    from shoal.frontier.protocol import Engine, Reader, Run
    from shoal.scraper import Scraper
    from shoal.settings import Settings

ENDED = (RunState.FINISHED, RunState.CANCELLED)


@dataclass(frozen=True, slots=True)
class Job:
    """One call of `shoal run`. `urls` and `input`: None = none given. `engine_given`: on the command line itself."""

    target: str
    scraper: Scraper
    settings: Settings
    engine_given: bool
    urls: GivenURLs | None
    input: bytes | None
    run_id: str | None
    resume: bool
    output: Output | None
    workers: int
    wait: bool
    quiet: bool
    as_data: bool

    async def run(self) -> int:
        """Do it all; answers the exit code."""
        async with opened(self.settings, create=True) as engine:
            run_id, enqueued = await self._begin(engine)
            if self.scraper.mode == "distributed":
                return await self._hand_over(engine, run_id, enqueued)
            began = time.monotonic()
            crawl = Crawl(engine, self.scraper, self.settings, self.target, quiet=self.quiet)
            interrupted = await crawl.work(run_id, processes=self.workers)
            run = await engine.reader.run(run_id)
            if interrupted and _left(run):
                self._say_how_to_resume(run)
                return INTERRUPTED
            return await self._end(engine, run, time.monotonic() - began)

    async def _begin(self, engine: Engine) -> tuple[str, int]:
        """The run to work on, seeded: a new one, or one left unfinished. Answers its id and how much was enqueued."""
        run = await self._chosen(engine.reader)
        run_id = run.run_id if run is not None else self.run_id or new_run_id(self.scraper.name)
        if run is not None:
            await engine.frontier.resume_run(run_id)
            if run.state is not RunState.OPEN and self.urls is None:
                say(f"Going on with {run_id}: {count(run.counters.done, 'page')} done, {_left(run):,} left.")
                return run_id, 0
        try:
            with interrupted_at_once():
                seeded = await seed(engine, self.scraper, run_id, urls=self.urls, input=self.input)
        except KeyboardInterrupt:
            say(
                f"Interrupted while the run was being filled. The same command with --resume --run-id {run_id} goes on."
            )
            raise
        self._report(seeded.refused)
        if not seeded.accepted and not seeded.duplicates and run is None:
            raise UsageError(
                f"There is nothing to fetch: {self.scraper.name!r} begins nowhere that can be fetched. "
                "Give it start=[…] in its code, or a --url."
            )
        return run_id, seeded.accepted

    async def _chosen(self, reader: Reader) -> Run | None:
        """The run that exists and is meant; None = a new one is. Raises UsageError if what was asked for cannot be."""
        if self.resume:
            return await (self._unfinished(reader) if self.run_id is None else self._named(reader, self.run_id))
        if self.run_id is not None:
            try:
                await reader.run(self.run_id)
            except UnknownRun:
                return None
            raise UsageError(
                f"There is a run {self.run_id!r} already; add --resume to go on with it, or choose another id."
            )
        return None

    async def _named(self, reader: Reader, run_id: str) -> Run:
        run = await reader.run(run_id)
        if run.scraper != self.scraper.name:
            raise UsageError(f"The run {run_id!r} is one of the scraper {run.scraper!r}, not of {self.scraper.name!r}.")
        if run.state is RunState.CANCELLED:
            raise UsageError(f"The run {run_id!r} was cancelled and cannot be resumed; start a new one.")
        return run

    async def _unfinished(self, reader: Reader) -> Run:
        mine = [run for run in await reader.runs() if run.scraper == self.scraper.name and run.state not in ENDED]
        if not mine:
            raise UsageError(
                f"There is no unfinished run of {self.scraper.name!r} to resume. "
                f"Start a new one with `shoal run {self.target}`."
            )
        return next((run for run in mine if _left(run) or run.state is RunState.OPEN), mine[0])

    async def _hand_over(self, engine: Engine, run_id: str, enqueued: int) -> int:
        """Distributed mode: say where the work is and how to do it; with --wait, follow it."""
        command = ["shoal", "worker", self.target, "--run-id", run_id]
        if self.engine_given:
            command += ["--engine", mask_url(self.settings.engine)]
        if not (self.wait and self.as_data):
            print_json(
                {"status": "queued", "run_id": run_id, "enqueued": enqueued, "worker_command": shlex.join(command)}
            )
        if not self.wait:
            return OK
        began = time.monotonic()
        run = await follow_to_end(engine.reader, run_id, display_for(quiet=self.quiet))
        return await self._end(engine, run, time.monotonic() - began)

    async def _end(self, engine: Engine, run: Run, seconds: float) -> int:
        """The items go where they were asked for, the counts to the user."""
        where = None
        if self.output is not None:
            number = await export(items_of(engine.reader, run.run_id), self.output)
            where = f"{self.output.path or 'standard output'} ({count(number, 'item')})"
        if self.as_data:
            print_json(as_json(run))
        elif not self.quiet:
            if where is None and run.counters.items:
                where = f"none; `shoal export {run.run_id} -o {self.scraper.name}.jsonl` writes the items"
            say(summary(run, seconds=seconds, output=where))
        if run.state is RunState.CANCELLED:
            complain(f"The run {run.run_id} was cancelled while it was under way.")
            return FAILURES
        if _left(run):
            complain(f"{count(_left(run), 'task')} could not be worked on here; see `shoal stats {run.run_id}`.")
            return FAILURES
        return FAILURES if run.counters.dead else OK

    def _report(self, refused: list[tuple[str, str]]) -> None:
        if self.urls is not None:
            self.urls.report()
        if refused:
            say(f"{count(len(refused), 'start URL')} refused:")
            for url, reason in refused[:20]:
                say(f"  {url}: {reason}")

    def _say_how_to_resume(self, run: Run) -> None:
        command = ["shoal", "run", self.target, "--resume"]
        if self.engine_given:
            command += ["--engine", mask_url(self.settings.engine)]
        say(
            f"Stopped with {count(run.counters.done, 'page')} done and {_left(run):,} left. Nothing is lost. "
            f"Go on with: {shlex.join(command)}"
        )


def _left(run: Run) -> int:
    """Tasks that page workers have still to do."""
    return run.counters.remaining - run.lanes.get(FILES_LANE, 0)


def read_input(scraper: Scraper, text: str | None) -> bytes | None:
    """The input of a run as JSON, held against the scraper's model. `@file.json` is read. Raises UsageError."""
    raw: bytes | None = None
    if text is not None and text.startswith("@"):
        try:
            raw = Path(text[1:]).read_bytes()
        except OSError as error:
            raise UsageError(f"The input file {text[1:]!r} cannot be read: {error.strerror}.") from None
    elif text is not None:
        raw = text.encode()
    scraper.parse_input(raw)
    return raw
