"""`shoal run` for plain scripts: the AsyncOrchestrator, each call in a loop and on a store of its own."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from shoal.api.scraper import Scraper
from shoal.config.sections import Mode
from shoal.errors import UsageError
from shoal.insight.changes import Changes
from shoal.runs.event_loop import in_loop
from shoal.runs.orchestrator import AsyncOrchestrator, Existing, Resume
from shoal.runs.results import RunResult, RunStatus, ScraperInfo

Answer = TypeVar("Answer")


class Orchestrator:
    """Starts scrapers and tells where their runs stand. For plain scripts; in async code use AsyncOrchestrator.

    `scrapers`: one or several, each a Scraper or a target as on the command line: `"books.py"`, `"books.py:name"`,
    `"package.module:name"`. `engine`: the URL of the store (None = as the settings say). `config`: the settings file
    (None = `shoal.toml` of the current folder or, if it has none, of a target's). Settings and `SHOAL_…` variables
    count as they do for the command line, the mode of a scraper included.

    Raises UsageError or EngineError (`shoal.errors`) with one sentence for what cannot be done.
    """

    def __init__(
        self,
        scrapers: Scraper | str | Iterable[Scraper | str],
        *,
        engine: str | None = None,
        config: str | Path | None = None,
    ) -> None:
        self._core = AsyncOrchestrator(scrapers, engine=engine, config=config)

    def scrapers(self) -> list[ScraperInfo]:
        """Each scraper with its `name`, its `mode` and its other options, as the settings make them."""
        return self._core.scrapers()

    def start(
        self,
        scraper: str | None = None,
        *,
        urls: Iterable[str] | None = None,
        urls_file: str | Path | None = None,
        input: Mapping[str, Any] | bytes | None = None,  # noqa: A002 - the word of the API
        mode: Mode | None = None,
        run_id: str | None = None,
        resume: Resume = False,
        once: bool = False,
        wait: bool = False,
        output: str | Path | Sequence[str | Path] | None = None,
        if_exists: Existing = "refuse",
    ) -> RunResult:
        """Start a run of a scraper, by name (None = the only one there is), in the scraper's mode or in `mode`.

        `single`: works here and now until nothing is left; the `run` of the answer is what `stats` answers.
        Ctrl-C stops it; `resume=True` goes on.
        `distributed`: enqueues, and answers at once with the status `"queued"` and the `worker_command` to start
        workers with, on as many machines as you like.

        `urls`: fetch these instead of what the scraper starts from; any iterable, read as a stream.
        `urls_file`: the same from a file, one per line; a file of millions of lines is never in memory.
        `input`: for a scraper with `input=`.
        `run_id`: a name for the run (None = made up). A distributed run that exists takes what it has not seen yet,
        so that the same call again adds nothing.
        `resume`: go on with the run `run_id`, or with the newest unfinished one of the scraper; "or_start": and if
        there is none, start one.
        `once`: visit each page once; without it, a scraper that visits its pages again (`every`) goes on until Ctrl-C.
        `wait`: in mode distributed, return when the run has ended, whoever works on it.
        `output`: where the items go when the run has ended: a file (`.jsonl`, `.json`, `.csv`, `.xml`, `.parquet`, each
        but the last also with `.gz` or `.zst`), an object (`s3://…`), a table (`sqlite:///…#name`), or several.
        `if_exists`: what becomes of a file that is there already: "refuse" (an error before anything is fetched),
        "replace" or "append".
        """
        return self._do(
            lambda core: core.start(
                scraper,
                urls=urls,
                urls_file=urls_file,
                input=input,
                mode=mode,
                run_id=run_id,
                resume=resume,
                once=once,
                wait=wait,
                output=output,
                if_exists=if_exists,
            )
        )

    def stats(self, run_id: str) -> RunStatus:
        """Where a run stands: `pending`, `claimed`, `completed`, `failed`, `remaining`, every other count, and more."""
        return self._do(lambda core: core.stats(run_id))

    def runs(self) -> list[RunStatus]:
        """The same of all runs in the store, newest first."""
        return self._do(lambda core: core.runs())

    def items(self, run_id: str) -> Iterator[Any]:
        """The items that a run has given so far, one after the other, as they were yielded."""
        cursor: int | None = 0
        while cursor is not None:
            page, cursor = self._do(_items_after(run_id, cursor))
            yield from page

    def changes(
        self, scraper: str | None = None, *, since: str | None = None, run_id: str | None = None, limit: int = 1000
    ) -> Changes:
        """Which pages are new, have changed or are gone: `changes` (each with `scraper`, `kind`, `url`, `at`, `hash`
        and `run_id`), `cursor` and `more`.

        `scraper`: of that one only. `since`: the `cursor` of an earlier answer; None = from the oldest on.
        `run_id`: only what that run saw. `limit`: at most so many; `more`: there may be more already.
        """
        return self._do(lambda core: core.changes(scraper, since=since, run_id=run_id, limit=limit))

    def pause(self, run_id: str) -> None:
        """Begin nothing more of a run until it is resumed."""
        self._do(lambda core: core.pause(run_id))

    def resume(self, run_id: str) -> None:
        """Let workers go on with a paused run. (To work here, use `start` with `resume=True`.)"""
        self._do(lambda core: core.resume(run_id))

    def cancel(self, run_id: str) -> None:
        """End a run for good. Items that are stored stay."""
        self._do(lambda core: core.cancel(run_id))

    def _do(self, work: Callable[[AsyncOrchestrator], Awaitable[Answer]]) -> Answer:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:
            raise UsageError("An Orchestrator cannot be used where a loop is running; use AsyncOrchestrator there.")

        async def main() -> Answer:
            async with copy.copy(self._core) as core:  # a copy: each call has an engine of its own, in any thread
                return await work(core)

        return in_loop(main())


def _items_after(run_id: str, cursor: int) -> Callable[[AsyncOrchestrator], Awaitable[tuple[list[Any], int | None]]]:
    return lambda core: core.items_after(run_id, cursor)
