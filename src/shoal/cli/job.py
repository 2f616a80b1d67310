"""`shoal run`, once it is clear what is meant: the Orchestrator's way, with words for the person who waits for it."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from shoal import facts
from shoal.cli.crawl import Crawl
from shoal.cli.estimate import estimate_by
from shoal.cli.frame import FAILURES, INTERRUPTED, OK, complain, say
from shoal.cli.interrupt import interrupted_at_once
from shoal.cli.opening import opened
from shoal.cli.progress import display_for, follow_to_end
from shoal.cli.summary import summary
from shoal.cli.text import count, duration, plain, print_json
from shoal.errors import EngineUnavailable, UsageError
from shoal.export import Output, export, items_of
from shoal.lanes import left_for_pages
from shoal.order import Chosen, Order, handed_over
from shoal.patience import patient
from shoal.settings import mask_url
from shoal.task import RunState

if TYPE_CHECKING:
    from shoal.frontier.engine import Engine
    from shoal.frontier.protocol import Run
    from shoal.intake.given import GivenURLs
    from shoal.runs import Seeded
    from shoal.settings import Settings


@dataclass(frozen=True, slots=True)
class Job:
    """One call of `shoal run`. `engine_given`: on the command line itself."""

    target: str
    order: Order
    urls: GivenURLs | None
    settings: Settings
    engine_given: bool
    output: Output | None
    workers: int
    wait: bool
    once: bool
    quiet: bool
    as_data: bool

    async def run(self) -> int:
        """Do it all; answers the exit code."""
        async with opened(self.settings, create=True) as store:
            engine = patient(store)
            chosen = await self.order.choose(engine.reader)
            self._say_what_is_chosen(chosen)
            seeded = await self._fill(engine, chosen)
            if self.order.distributed:
                return await self._hand_over(engine, chosen.run_id, seeded.accepted)
            began, before = time.monotonic(), (await engine.reader.run(chosen.run_id)).counters.done
            crawl = Crawl(engine, self.order.scraper, self.settings, self.target, quiet=self.quiet, once=self.once)
            self._say_if_endless()
            interrupted = await crawl.work(chosen.run_id, processes=self.workers)
            if interrupted:
                try:
                    run = await store.reader.run(chosen.run_id)
                except EngineUnavailable as error:
                    say(f"Stopped. {error} Nothing is lost. Go on with: {self._command_to_resume()}")
                    return INTERRUPTED
                if left_for_pages(run):
                    self._say_how_to_resume(run)
                    return INTERRUPTED
            run = await engine.reader.run(chosen.run_id)
            return await self._end(engine, run, time.monotonic() - began, before)

    async def _fill(self, engine: Engine, chosen: Chosen) -> Seeded:
        try:
            with interrupted_at_once():
                seeded = await self.order.fill(engine, chosen)
        except KeyboardInterrupt:
            say(
                "Interrupted while the run was being filled. "
                f"The same command with --resume --run-id {chosen.run_id} goes on."
            )
            raise
        finally:
            self._report_given()
        if seeded.refusals:
            say(f"{count(seeded.refusals, 'start URL')} refused:")
            for url, reason in seeded.refused:
                say(f"  {plain(url)}: {reason}")
        return seeded

    async def _hand_over(self, engine: Engine, run_id: str, enqueued: int) -> int:
        """Distributed mode: say where the work is and how to do it; with --wait, follow it."""
        if not (self.wait and self.as_data):
            print_json(handed_over(run_id, enqueued, self.target, self._engine_shown()))
        if not self.wait:
            return OK
        began = time.monotonic()
        estimate = estimate_by(engine, self.settings)
        run = await follow_to_end(engine.reader, run_id, display_for(quiet=self.quiet), estimate)
        return await self._end(engine, run, time.monotonic() - began, 0)

    async def _end(self, engine: Engine, run: Run, seconds: float, earlier: int) -> int:
        """The items go where they were asked for, the counts to the user. `earlier`: pages that were done before."""
        where = None
        if self.output is not None:
            number = await export(items_of(engine.reader, run.run_id), self.output)
            where = f"{self.output.path or 'standard output'} ({count(number, 'item')})"
        if self.as_data:
            print_json(facts.of_run(run))
        elif not self.quiet:
            if where is None and run.counters.items:
                where = f"none; `shoal export {run.run_id} -o {run.scraper}.jsonl` writes the items"
            say(summary(run, seconds=seconds, earlier=earlier, output=where))
        if run.state is RunState.CANCELLED:
            ended = "cancelled" if run.standing == run.state.value else run.standing
            complain(f"The run {run.run_id} was {ended} while it was under way.")
            return FAILURES
        if "browser" in run.lanes:
            complain(f"{count(run.lanes['browser'], 'task')} in the lane browser wait for a worker that has one.")
            return FAILURES
        return FAILURES if run.counters.dead else OK

    # Words

    def _say_what_is_chosen(self, chosen: Chosen) -> None:
        run = chosen.found
        if run is None:
            return
        if run.state is RunState.OPEN:
            whence = "the URLs given" if self.urls else "where the scraper starts"
            say(f"The run {run.run_id} was interrupted while it was being filled; filling it again from {whence}.")
        elif chosen.fill:
            say(f"The run {run.run_id} exists; what it has not seen yet is added to it.")
        elif run.state is RunState.FINISHED:
            say(
                f"The run {run.run_id} is finished: {count(run.counters.done, 'page')} done, and nothing is left to do."
            )
        else:
            left = f"{run.counters.remaining:,} left"
            say(f"Going on with {run.run_id}: {count(run.counters.done, 'page')} done, {left}.")
        if run.policy != self.order.scraper.policy():
            say("The scraper's delay, timeout or lanes have changed since; this run keeps those it was started with.")

    def _say_if_endless(self) -> None:
        every = self.order.scraper.every
        if every is not None and not self.once and not self.quiet:
            say(f"Pages are visited again every {duration(every)}: this goes on until Ctrl-C (--once: one visit each).")

    def _report_given(self) -> None:
        if self.urls is None or not self.urls.refused:
            return
        say(f"{count(self.urls.refused, 'URL')} refused:")
        for complaint in self.urls.complaints:
            say(f"  {plain(complaint)}")
        if self.urls.refused > len(self.urls.complaints):
            say(f"  … and {self.urls.refused - len(self.urls.complaints):,} more")

    def _command_to_resume(self) -> str:
        engine = self._engine_shown()
        return shlex.join(["shoal", "run", self.target, "--resume", *(() if engine is None else ("--engine", engine))])

    def _say_how_to_resume(self, run: Run) -> None:
        say(
            f"Stopped with {count(run.counters.done, 'page')} done and {left_for_pages(run):,} left. Nothing is lost. "
            f"Go on with: {self._command_to_resume()}"
        )

    def _engine_shown(self) -> str | None:
        return mask_url(self.settings.engine) if self.engine_given else None


def read_input(text: str | None) -> bytes | None:
    """What `--input` gives: JSON, or the content of `@file.json`. Raises UsageError if the file cannot be read."""
    if text is None or not text.startswith("@"):
        return None if text is None else text.encode()
    try:
        return Path(text[1:]).read_bytes()
    except OSError as error:
        raise UsageError(f"The input file {text[1:]!r} cannot be read: {error.strerror}.") from None
