"""What `shoal run` tells a person, step by step; and at the end, with what exit code it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.cli.output.exit_codes import FAILURES, INTERRUPTED, OK, complain, say
from shoal.cli.output.summary import summary
from shoal.cli.output.text import count, duration, plain, print_json, size
from shoal.core.task import RunState
from shoal.intake.url_lists import URLList
from shoal.runs.results import ResultStatus

if TYPE_CHECKING:
    from shoal.errors import EngineUnavailable
    from shoal.runs.results import RunResult
    from shoal.runs.run_request import ChosenRun, RunRequest
    from shoal.runs.seeding import Seeded


class RunReport:
    """The words of one call of `shoal run`: data on stdout, everything else on stderr."""

    def __init__(self, request: RunRequest, *, quiet: bool, as_data: bool) -> None:
        self._request = request
        self._quiet = quiet
        self._as_data = as_data
        self._run_id = ""

    def chosen(self, chosen: ChosenRun) -> None:
        """Which run it is, if it exists already."""
        self._run_id = chosen.run_id
        run = chosen.found
        if run is None:
            return
        if run.state is RunState.OPEN:
            whence = "the URLs given" if self._request.urls else "where the scraper starts"
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
        if run.policy != self._request.scraper.policy():
            say("The scraper's delay, timeout or lanes have changed since; this run keeps those it was started with.")

    def interrupted_while_filling(self, run_id: str) -> None:
        """The user did not wait until all URLs were in."""
        command = self._request.resume_command(run_id, filling=True)
        say(f"Interrupted while the run was being filled. Go on with: {command}")

    def stopped_following(self, run_id: str) -> None:
        """The user does not wait for the end of a run that is left to workers."""
        say(
            f"No longer following {run_id}, which its workers go on with. "
            f"Follow it with: {self._request.resume_command(run_id)}"
        )

    def refused_urls(self) -> None:
        """URLs that the user gave and that cannot be fetched."""
        given = self._request.urls
        if not isinstance(given, URLList) or not given.refused:
            return
        say(f"{count(given.refused, 'URL')} refused:")
        for complaint in given.complaints:
            say(f"  {plain(complaint)}")
        if given.refused > len(given.complaints):
            say(f"  … and {given.refused - len(given.complaints):,} more")

    def filled(self, seeded: Seeded) -> None:
        """URLs that the scraper starts from and does not allow."""
        if seeded.refusals:
            say(f"{count(seeded.refusals, 'start URL')} refused:")
            for url, reason in seeded.refused:
                say(f"  {plain(url)}: {reason}")

    def handed_over(self, result: RunResult) -> None:
        """Where the work is, and how to do it. Where the counts follow as JSON, only those are printed."""
        if not (self._request.wait and self._as_data):
            print_json(result.as_dict())

    def working(self) -> None:
        """That it will not end by itself, if it will not."""
        every = self._request.scraper.every
        if every is not None and not self._request.once and not self._quiet:
            say(f"Pages are visited again every {duration(every)}: this goes on until Ctrl-C (--once: one visit each).")

    def stopped_without_a_store(self, error: EngineUnavailable) -> None:
        """Interrupted while the store was away, so that nobody knows how far it came."""
        say(f"Stopped. {error} Nothing is lost. Go on with: {self._request.resume_command(self._run_id)}")

    def ended(self, result: RunResult) -> int:
        """What it came to. Answers the exit code."""
        if result.status is ResultStatus.QUEUED:
            return OK
        run = result.run
        if result.status is ResultStatus.INTERRUPTED:
            done = count(run.completed, "page")
            written = (
                ""
                if result.exported is None
                else f"Wrote the {count(result.exported, 'item')} so far to {self._places()}. "
            )
            say(
                f"Stopped with {done} done and {run.left_for_pages:,} left. {written}Nothing is lost. "
                f"Go on with: {self._request.resume_command(run.run_id)}"
            )
            return INTERRUPTED
        self._counts(result)
        if result.halted is not None:
            requeue = self._request.line.of("dead", "requeue", run.run_id)
            complain(f"{result.halted} Mend it, then: {requeue} && {self._request.resume_command(run.run_id)}")
            return FAILURES
        if run.state is RunState.CANCELLED:
            ended = "cancelled" if run.standing == run.state.value else run.standing
            complain(f"The run {run.run_id} was {ended} while it was under way.")
            return FAILURES
        self._nothing_found(result)
        return FAILURES if run.failed else OK

    def _counts(self, result: RunResult) -> None:
        run = result.run
        if self._as_data:
            print_json(run.as_dict())
        elif not self._quiet:
            where = None
            if result.exported is not None:
                where = self._outputs(result)
            elif run.items:
                command = self._request.line.of("export", run.run_id, "-o", f"{run.scraper}.jsonl")
                where = f"none; `{command}` writes the items"
            say(summary(run, self._request.line, result=result, seconds=result.seconds, output=where))

    def _outputs(self, result: RunResult) -> str:
        """Where the items went, and how many."""
        return f"{self._places()} ({count(result.exported or 0, 'item')})"

    def _places(self) -> str:
        return " and ".join(output.shown for output in self._request.outputs)

    def _nothing_found(self, result: RunResult) -> None:
        """A run that ended where it began: most likely its handler looks for what the page does not have."""
        page = result.barren_start
        if page is not None:
            complain(
                f"The start page {plain(page.url)} (HTTP {page.status}, {size(page.size)}) gave neither an item nor a "
                f"link. Compare its source with the selectors of {result.run.scraper!r}; "
                f"`{self._request.line.of('explain', page.url)}` says what is known of it."
            )
