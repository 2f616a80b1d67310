"""`shoal run` for programs, and for `shoal run` itself: scrapers, their settings and a store, put together."""

from __future__ import annotations

import difflib
import logging
import sys
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import structlog

from shoal.api.scraper import Scraper
from shoal.config.apply import check_names, configure
from shoal.config.load import load
from shoal.config.sections import Mode
from shoal.config.settings import Settings
from shoal.config.target import folders_of, load_scrapers, refuse_while_loading, target_of
from shoal.core import log_events
from shoal.errors import BadTarget, UsageError
from shoal.insight.changes import Changes, changes_since
from shoal.intake.url_lists import URLList, check_file
from shoal.runs.command_line import command_line
from shoal.runs.export.output import OutputOptions, outputs_for
from shoal.runs.export.places.local_file import IfExists
from shoal.runs.open_store import open_store
from shoal.runs.results import RunResult, RunStatus, ScraperInfo, info_of, status_of
from shoal.runs.run_flow import RunFlow
from shoal.runs.run_request import RunRequest

if TYPE_CHECKING:
    from shoal.frontier.contract.engine import Engine
    from shoal.runs.run_hooks import RunHooks


Resume = bool | Literal["or_start"]
"""Whether to go on with a run that is there. "or_start": and to start one, where there is none."""

Existing = Literal["refuse", "replace", "append"]
"""What becomes of an output file that is there already."""


class AsyncOrchestrator:
    """The Orchestrator for programs that have a loop: `async with AsyncOrchestrator(…) as orchestrator: await …`.

    The same arguments, methods and answers as Orchestrator, where each method is to be awaited.
    `settings`: those that were loaded already, instead of what `engine` and `config` lead to.
    """

    def __init__(
        self,
        scrapers: Scraper | str | Iterable[Scraper | str],
        *,
        engine: str | None = None,
        config: str | Path | None = None,
        settings: Settings | None = None,
    ) -> None:
        entries = [scrapers] if isinstance(scrapers, Scraper | str) else list(scrapers)
        folders = folders_of(entry for entry in entries if isinstance(entry, str))
        file = None if config is None else Path(config)
        self._settings = settings or load(file, {"engine": engine}, folders=folders)
        self._line = command_line(self._settings, engine)
        self._open: Engine | None = None
        self._scrapers: dict[str, Scraper] = {}
        for entry in entries:
            for scraper in load_scrapers([entry]) if isinstance(entry, str) else [entry]:
                if self._scrapers.setdefault(scraper.name, scraper) is not scraper:
                    raise BadTarget(f"Two scrapers are called {scraper.name!r}; rename one.")
                configure(scraper, self._settings)
        check_names(self._settings, self._scrapers)
        _log_to_stderr(self._settings)

    async def __aenter__(self) -> AsyncOrchestrator:
        self._open = await open_store(self._settings)
        return self

    async def __aexit__(self, *_: object) -> None:
        store, self._open = self._store, None
        await store.close()

    @property
    def _store(self) -> Engine:
        if self._open is None:
            raise UsageError(
                "An AsyncOrchestrator has its store open within `async with AsyncOrchestrator(…) as orchestrator:` "
                "only; call it in there."
            )
        return self._open

    def scrapers(self) -> list[ScraperInfo]:
        """As Orchestrator.scrapers; not to be awaited."""
        return [info_of(scraper) for scraper in self._scrapers.values()]

    async def start(
        self,
        scraper: str | None = None,
        *,
        urls: Iterable[str] | AsyncIterable[str] | None = None,
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
        """As Orchestrator.start; `urls` may also be an async iterator."""
        refuse_while_loading(f"start a run of {scraper or 'its scraper'}")
        chosen = self._named(scraper)
        named = [output] if isinstance(output, str | Path) else output or ()
        return await self.carry_out(
            RunRequest(
                chosen,
                target_of(chosen),
                urls=_urls(urls, urls_file),
                input=msgspec.json.encode(input) if isinstance(input, Mapping) else input,
                mode=mode,
                run_id=run_id,
                resume=bool(resume),
                or_start=resume == "or_start",
                once=once,
                wait=wait,
                outputs=outputs_for(named, OutputOptions(if_exists=IfExists(if_exists))),
                line=self._line,
            )
        )

    async def carry_out(self, request: RunRequest, hooks: RunHooks | None = None) -> RunResult:
        """What `start` does, once it is clear what is meant, for those who want to have a say in it: `shoal run` does.

        `hooks`: called at each step (`shoal.runs.run_hooks`); None = those of `start`.
        """
        return await RunFlow(self._store, self._settings, hooks).carry_out(request)

    async def stats(self, run_id: str) -> RunStatus:
        """As Orchestrator.stats."""
        reader = self._store.reader
        return status_of(await reader.run(run_id), await reader.workers())

    async def runs(self) -> list[RunStatus]:
        """As Orchestrator.runs."""
        reader = self._store.reader
        workers = await reader.workers()
        return [status_of(run, workers) for run in await reader.runs()]

    async def items(self, run_id: str) -> AsyncIterator[Any]:
        """As Orchestrator.items, by `async for`."""
        cursor: int | None = 0
        while cursor is not None:
            items, cursor = await self.items_after(run_id, cursor)
            for item in items:
                yield item

    async def items_after(self, run_id: str, cursor: int) -> tuple[list[Any], int | None]:
        """Some items after a cursor (0 = from the first on), and the cursor that leads on; None = that was all."""
        page = await self._store.reader.items(run_id, cursor)
        return [msgspec.json.decode(item.body) for item in page.items], page.cursor

    async def changes(
        self, scraper: str | None = None, *, since: str | None = None, run_id: str | None = None, limit: int = 1000
    ) -> Changes:
        """As Orchestrator.changes."""
        reader = self._store.reader
        names = list(self._scrapers) if scraper is None else [self._named(scraper).name]
        if run_id is not None:
            names = [(await reader.run(run_id)).scraper]
        return await changes_since(reader, names, since, run_id, limit)

    async def pause(self, run_id: str) -> None:
        """As Orchestrator.pause."""
        await self._store.frontier.pause_run(run_id)

    async def resume(self, run_id: str) -> None:
        """As Orchestrator.resume."""
        await self._store.frontier.resume_run(run_id)

    async def cancel(self, run_id: str) -> None:
        """As Orchestrator.cancel."""
        await self._store.frontier.cancel_run(run_id)

    def _named(self, name: str | None) -> Scraper:
        known = ", ".join(self._scrapers)
        if name is None:
            if len(self._scrapers) != 1:
                raise UsageError(f"Say which scraper to start; there are {known or 'none'}.")
            return next(iter(self._scrapers.values()))
        if name not in self._scrapers:
            near = difflib.get_close_matches(name, self._scrapers, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {known or 'none'}."
            raise UsageError(f"This orchestrator has no scraper {name!r}; {hint}")
        return self._scrapers[name]


def _urls(
    urls: Iterable[str] | AsyncIterable[str] | None, file: str | Path | None
) -> URLList | AsyncIterable[str] | None:
    if isinstance(urls, AsyncIterable):
        if file is not None:
            raise UsageError("URLs come from an async iterator or from a file, not from both.")
        return urls
    if file is not None:
        check_file(file)
    if urls is None and file is None:
        return None
    return URLList([urls] if isinstance(urls, str) else urls or (), file)


def _log_to_stderr(settings: Settings) -> None:
    """What is logged goes to stderr as the settings say, unless the program has its own mind about logs."""
    if not structlog.is_configured():
        level = structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[settings.log_level.upper()])
        quiet = [] if settings.log_level == "debug" else [log_events.without_traceback]
        *before, shown = structlog.get_config()["processors"]
        structlog.configure(
            processors=[*quiet, *before, log_events.with_sentence, shown],
            wrapper_class=level,
            logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        )
