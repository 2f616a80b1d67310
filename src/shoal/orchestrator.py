"""`shoal run` for programs: routes a scraper by its mode to the work here and now, or to workers wherever they are."""

from __future__ import annotations

import asyncio
import copy
import difflib
import logging
import sys
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec
import structlog

from shoal import facts
from shoal.changes import as_data, changes_since
from shoal.clock import millis
from shoal.engines import open_engine
from shoal.errors import BadTarget, UsageError
from shoal.fetch.guard import Guard
from shoal.frontier.engine import Engine
from shoal.frontier.protocol import Run
from shoal.intake.given import GivenURLs, check_file
from shoal.lanes import page_lanes
from shoal.loop import in_loop
from shoal.order import Order, handed_over
from shoal.overrides import configure
from shoal.patience import patient
from shoal.pools import pools_from, tor_from
from shoal.scraper import Scraper
from shoal.settings import Settings, mask_url
from shoal.settings_file import load
from shoal.target import load_scrapers, refuse_while_loading, target_of
from shoal.work.worker import Worker, WorkerOptions

Answer = TypeVar("Answer")
Mode = Literal["single", "distributed"]

log = structlog.get_logger("shoal")


def worker_on(engine: Engine, scraper: Scraper, run: Run, settings: Settings, *, revisit: bool = True) -> Worker:
    """A worker that works on one run until nothing is left for it. `revisit`: pages are visited again, where asked."""
    options = WorkerOptions(
        user_agent=settings.agent,
        concurrency=settings.concurrency,
        lanes=page_lanes([scraper]),
        queues=(run.queue,),
        drain=True,
        exits=pools_from(settings),
        tor=tor_from(settings),
        audit=settings.audit,
        revisit=revisit,
        cache_max_bytes=settings.cache_max_bytes,
        guard=Guard(settings.guard.networks),
        max_crawl_delay=millis(settings.max_crawl_delay),
    )
    return Worker(engine, [scraper], options)


class AsyncOrchestrator:
    """The Orchestrator for programs that have a loop: `async with AsyncOrchestrator(…) as orchestrator: await …`.

    The same arguments, methods and answers as Orchestrator, where each method is to be awaited.
    """

    def __init__(
        self,
        scrapers: Scraper | str | Iterable[Scraper | str],
        *,
        engine: str | None = None,
        config: str | Path | None = None,
    ) -> None:
        self._settings = load(None if config is None else Path(config), {"engine": engine})
        self._engine_given = engine is not None
        self._targets: dict[str, str] = {}
        self._scrapers: dict[str, Scraper] = {}
        for entry in [scrapers] if isinstance(scrapers, Scraper | str) else scrapers:
            for scraper in load_scrapers([entry]) if isinstance(entry, str) else [entry]:
                if self._scrapers.setdefault(scraper.name, scraper) is not scraper:
                    raise BadTarget(f"Two scrapers are called {scraper.name!r}; rename one.")
                self._targets[scraper.name] = target_of(scraper)
                configure(scraper, self._settings)
        _log_to_stderr(self._settings)

    async def __aenter__(self) -> AsyncOrchestrator:
        self._engine = await open_engine(self._settings.engine)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._engine.close()

    def scrapers(self) -> list[dict[str, Any]]:
        """As Orchestrator.scrapers; not to be awaited."""
        return [facts.of_scraper(scraper) for scraper in self._scrapers.values()]

    async def start(
        self,
        scraper: str | None = None,
        *,
        urls: Iterable[str] | AsyncIterable[str] | None = None,
        urls_file: str | Path | None = None,
        input: Mapping[str, Any] | bytes | None = None,  # noqa: A002 - the word of the API
        mode: Mode | None = None,
        run_id: str | None = None,
        resume: bool = False,
        once: bool = False,
    ) -> dict[str, Any]:
        """As Orchestrator.start; `urls` may also be an async iterator."""
        refuse_while_loading(f"start a run of {scraper or 'its scraper'}")
        chosen = self._named(scraper)
        given = _urls(urls, urls_file)
        raw = msgspec.json.encode(input) if isinstance(input, Mapping) else input
        order = Order(chosen, given, raw, mode, run_id, resume)
        engine = patient(self._engine)
        meant = await order.choose(engine.reader)
        seeded = await order.fill(engine, meant)
        refused = seeded.refusals + (given.refused if isinstance(given, GivenURLs) else 0)
        if refused:
            first = given.complaints[0] if isinstance(given, GivenURLs) and given.refused else seeded.refused[0]
            log.warning("URLs refused", scraper=chosen.name, run=meant.run_id, count=refused, first=first)
        if order.distributed:
            shown = mask_url(self._settings.engine) if self._engine_given else None
            return handed_over(meant.run_id, seeded.accepted, self._targets[chosen.name], shown)
        run = await engine.reader.run(meant.run_id)
        await worker_on(engine, chosen, run, self._settings, revisit=not once).run()
        ended = await engine.reader.run(meant.run_id)
        return {"status": ended.state.value, "enqueued": seeded.accepted, **facts.of_run(ended)}

    async def stats(self, run_id: str) -> dict[str, Any]:
        """As Orchestrator.stats."""
        return facts.of_run(await self._engine.reader.run(run_id))

    async def runs(self) -> list[dict[str, Any]]:
        """As Orchestrator.runs."""
        return [facts.of_run(run) for run in await self._engine.reader.runs()]

    async def items(self, run_id: str) -> AsyncIterator[Any]:
        """As Orchestrator.items, by `async for`."""
        cursor: int | None = 0
        while cursor is not None:
            items, cursor = await self.items_after(run_id, cursor)
            for item in items:
                yield item

    async def items_after(self, run_id: str, cursor: int) -> tuple[list[Any], int | None]:
        """Some items after a cursor (0 = from the first on), and the cursor that leads on; None = that was all."""
        page = await self._engine.reader.items(run_id, cursor)
        return [msgspec.json.decode(item.body) for item in page.items], page.cursor

    async def changes(
        self, scraper: str | None = None, *, since: str | None = None, run_id: str | None = None, limit: int = 1000
    ) -> dict[str, Any]:
        """As Orchestrator.changes."""
        reader = self._engine.reader
        names = list(self._scrapers) if scraper is None else [self._named(scraper).name]
        if run_id is not None:
            names = [(await reader.run(run_id)).scraper]
        found = await changes_since(reader, names, since, run_id, limit)
        return {
            "changes": [as_data(name, change) for name, change in found.changes],
            "cursor": found.cursor,
            "more": found.more,
        }

    async def pause(self, run_id: str) -> None:
        """As Orchestrator.pause."""
        await self._engine.frontier.pause_run(run_id)

    async def resume(self, run_id: str) -> None:
        """As Orchestrator.resume."""
        await self._engine.frontier.resume_run(run_id)

    async def cancel(self, run_id: str) -> None:
        """As Orchestrator.cancel."""
        await self._engine.frontier.cancel_run(run_id)

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


class Orchestrator:
    """Starts scrapers and tells where their runs stand. For plain scripts; in async code use AsyncOrchestrator.

    `scrapers`: one or several, each a Scraper or a target as on the command line: `"books.py"`, `"books.py:name"`,
    `"package.module:name"`. `engine`: the URL of the store (None = as the settings say). `config`: the settings file
    (None = `shoal.toml` of the current folder, if there is one). Settings and `SHOAL_…` variables count as they do
    for the command line, the mode of a scraper included.

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

    def scrapers(self) -> list[dict[str, Any]]:
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
        resume: bool = False,
        once: bool = False,
    ) -> dict[str, Any]:
        """Start a run of a scraper, by name (None = the only one there is), in the scraper's mode or in `mode`.

        `single`: works here and now until nothing is left, and answers what `stats` answers, with `status` and
        `enqueued`. Ctrl-C stops it; `resume=True` goes on.
        `distributed`: enqueues, and answers at once with `status` (`"queued"`), `run_id`, `enqueued` and
        `worker_command`, the command to start workers with, on as many machines as you like.

        `urls`: fetch these instead of what the scraper starts from; any iterable, read as a stream.
        `urls_file`: the same from a file, one per line; a file of millions of lines is never in memory.
        `input`: for a scraper with `input=`.
        `run_id`: a name for the run (None = made up). A distributed run that exists takes what it has not seen yet,
        so that the same call again adds nothing.
        `resume`: go on with the run `run_id`, or with the newest unfinished one of the scraper.
        `once`: visit each page once; without it, a scraper that visits its pages again (`every`) goes on until Ctrl-C.
        """
        given: dict[str, Any] = {"urls": urls, "urls_file": urls_file, "input": input}
        return self._do(lambda core: core.start(scraper, **given, mode=mode, run_id=run_id, resume=resume, once=once))

    def stats(self, run_id: str) -> dict[str, Any]:
        """Where a run stands: `pending`, `claimed`, `completed`, `failed`, `remaining`, every other count, and more."""
        return self._do(lambda core: core.stats(run_id))

    def runs(self) -> list[dict[str, Any]]:
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
    ) -> dict[str, Any]:
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


def _urls(
    urls: Iterable[str] | AsyncIterable[str] | None, file: str | Path | None
) -> GivenURLs | AsyncIterable[str] | None:
    if isinstance(urls, AsyncIterable):
        if file is not None:
            raise UsageError("URLs come from an async iterator or from a file, not from both.")
        return urls
    if file is not None:
        check_file(file)
    if urls is None and file is None:
        return None
    return GivenURLs([urls] if isinstance(urls, str) else urls or (), file)


def _log_to_stderr(settings: Settings) -> None:
    """What is logged goes to stderr as the settings say, unless the program has its own mind about logs."""
    if not structlog.is_configured():
        level = structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[settings.log_level.upper()])
        structlog.configure(wrapper_class=level, logger_factory=structlog.PrintLoggerFactory(sys.stderr))
