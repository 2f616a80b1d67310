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
from shoal.cli.lanes import left_for_pages
from shoal.cli.opening import opened
from shoal.cli.progress import display_for, follow_to_end
from shoal.cli.summary import as_json, summary
from shoal.cli.text import count, plain, print_json
from shoal.errors import UnknownRun, UsageError
from shoal.export import Output, export, items_of
from shoal.runs import Seeded, new_run_id, seed
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
            began, before = time.monotonic(), (await engine.reader.run(run_id)).counters.done
            crawl = Crawl(engine, self.scraper, self.settings, self.target, quiet=self.quiet)
            interrupted = await crawl.work(run_id, processes=self.workers)
            run = await engine.reader.run(run_id)
            if interrupted and left_for_pages(run):
                self._say_how_to_resume(run)
                return INTERRUPTED
            return await self._end(engine, run, time.monotonic() - began, before)

    async def _begin(self, engine: Engine) -> tuple[str, int]:
        """The run to work on, seeded: a new one, or one left unfinished. Answers its id and how much was enqueued."""
        run = await self._chosen(engine.reader)
        if run is None:
            return await self._seed(engine, self.run_id or new_run_id(self.scraper.name), self.input)
        await engine.frontier.resume_run(run.run_id)
        if run.state is RunState.OPEN:
            whence = "the URLs given" if self.urls else "where the scraper starts"
            say(f"The run {run.run_id} was interrupted while it was being filled; filling it again from {whence}.")
            return await self._seed(engine, run.run_id, self.input or run.input)
        if self.urls is not None:
            raise UsageError(
                f"The run {run.run_id} has its URLs already; with --resume leave --url and --urls-file away."
            )
        say(f"Going on with {run.run_id}: {count(run.counters.done, 'page')} done, {run.counters.remaining:,} left.")
        if run.policy != self.scraper.policy():
            say("The scraper's delay, timeout or lanes have changed since; this run keeps those it was started with.")
        return run.run_id, 0

    async def _seed(self, engine: Engine, run_id: str, given: bytes | None) -> tuple[str, int]:
        try:
            with interrupted_at_once():
                seeded = await seed(engine, self.scraper, run_id, urls=self.urls, input=given)
        except KeyboardInterrupt:
            say(
                f"Interrupted while the run was being filled. The same command with --resume --run-id {run_id} goes on."
            )
            raise
        self._report(seeded)
        if not seeded.accepted and not seeded.duplicates:
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
        return next((run for run in mine if left_for_pages(run) or run.state is RunState.OPEN), mine[0])

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
        return await self._end(engine, run, time.monotonic() - began, 0)

    async def _end(self, engine: Engine, run: Run, seconds: float, earlier: int) -> int:
        """The items go where they were asked for, the counts to the user. `earlier`: pages that were done before."""
        where = None
        if self.output is not None:
            number = await export(items_of(engine.reader, run.run_id), self.output)
            where = f"{self.output.path or 'standard output'} ({count(number, 'item')})"
        if self.as_data:
            print_json(as_json(run))
        elif not self.quiet:
            if where is None and run.counters.items:
                where = f"none; `shoal export {run.run_id} -o {self.scraper.name}.jsonl` writes the items"
            say(summary(run, seconds=seconds, earlier=earlier, output=where))
        if run.state is RunState.CANCELLED:
            complain(f"The run {run.run_id} was cancelled while it was under way.")
            return FAILURES
        if "browser" in run.lanes:
            complain(f"{count(run.lanes['browser'], 'task')} in the lane browser wait for a worker that has one.")
            return FAILURES
        return FAILURES if run.counters.dead else OK

    def _report(self, seeded: Seeded) -> None:
        if self.urls is not None:
            self.urls.report()
        if seeded.refusals:
            say(f"{count(seeded.refusals, 'start URL')} refused:")
            for url, reason in seeded.refused:
                say(f"  {plain(url)}: {reason}")

    def _say_how_to_resume(self, run: Run) -> None:
        command = ["shoal", "run", self.target, "--resume"]
        if self.engine_given:
            command += ["--engine", mask_url(self.settings.engine)]
        say(
            f"Stopped with {count(run.counters.done, 'page')} done and {left_for_pages(run):,} left. Nothing is lost. "
            f"Go on with: {shlex.join(command)}"
        )


def read_input(text: str | None) -> bytes | None:
    """What `--input` gives: JSON, or the content of `@file.json`. Raises UsageError if the file cannot be read."""
    if text is None or not text.startswith("@"):
        return None if text is None else text.encode()
    try:
        return Path(text[1:]).read_bytes()
    except OSError as error:
        raise UsageError(f"The input file {text[1:]!r} cannot be read: {error.strerror}.") from None
