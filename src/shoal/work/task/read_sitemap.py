"""A sitemap in the hands of a worker: what it lists is passed on in batches as it is read, and never held as a whole.

Pages go into the frontier before the sitemap's own task is settled. They are known by their keys, so that whoever has
to read it again after a crash doubles nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import IO, Protocol

import msgspec
import structlog

from shoal.api.request import Request
from shoal.api.scraper import Scraper
from shoal.api.sitemap import SitemapOrder
from shoal.core import log_events
from shoal.core.outcome import Blame, Dead, Done, Outcome, Snoozed
from shoal.core.storable import cleaned
from shoal.core.task import Kind, NewTask
from shoal.core.url import NormalURL, Resolver, without_credentials
from shoal.errors import BadScraper, BadURL, UsageError
from shoal.fetch.robots.cache import RobotsRules
from shoal.frontier.contract.frontier import Frontier
from shoal.intake.admission import OUTSIDE, TOO_MANY, Refusal, Refused, admit, may_lead_to
from shoal.intake.lastmod import latest
from shoal.intake.sitemap_file import SitemapReader
from shoal.intake.sitemap_xml import Listed, SitemapEntry, Unreadable
from shoal.work.store.task_budget import TaskBudget
from shoal.work.task.attempt import Attempt
from shoal.work.task.classify import because

CHUNK = 2**14
"""Bytes that are read before others get a turn. Unpacked they may be a thousand times as many."""

BATCH = 1000
"""Tasks that are enqueued in one transaction."""

MOST_NESTED = 5
"""How many indexes may lead to a sitemap. The protocol allows one."""

_HOUR = 3_600_000

log = structlog.get_logger("shoal")


class _Cancelled(Exception):
    """The run takes no more tasks: how this one ends is no longer ours to say."""


class Finds(Protocol):
    """What becomes of the pages that a sitemap lists: called with batches of them, in order."""

    async def __call__(
        self, attempt: Attempt, scraper: Scraper, order: SitemapOrder, entries: list[SitemapEntry]
    ) -> None: ...


class SitemapReading:
    """Reads sitemaps. `finds`: what becomes of pages; None = they become tasks of the run. `budget`: how many of them
    jobs may still have."""

    def __init__(self, frontier: Frontier, budget: TaskBudget, finds: Finds | None = None) -> None:
        self._frontier = frontier
        self._budget = budget
        self._finds = finds or self._as_tasks

    async def read(self, scraper: Scraper, attempt: Attempt, body: IO[bytes]) -> Outcome:
        """Pass on what a sitemap lists. One that is broken in places is done; one that cannot be read is dead, and what
        could be read of it before counts all the same."""
        reader = SitemapReader()
        try:
            await self._pass_on(scraper, attempt, reader, body)
        except Unreadable as error:
            taken = f"; the {reader.taken} entries before that were taken" if reader.taken else ""
            return Dead(because(Blame.URL, f"unreadable sitemap: {error}{taken}"))
        except BadScraper as error:
            return Dead(because(Blame.HANDLER, error))
        except _Cancelled:
            return Snoozed()
        _report(attempt, reader)
        return Done(url=attempt.url)

    async def read_robots(self, scraper: Scraper, attempt: Attempt, rules: RobotsRules) -> Outcome:
        """Follow the sitemaps that a robots.txt names."""
        if not rules.sitemaps:
            log.warning(log_events.SITEMAP_MISSING, scraper=scraper.name, url=without_credentials(attempt.url))
        try:
            await self._follow(scraper, attempt, _order(attempt), list(rules.sitemaps))
        except _Cancelled:
            return Snoozed()
        return Done(url=attempt.url)

    async def _pass_on(self, scraper: Scraper, attempt: Attempt, reader: SitemapReader, body: IO[bytes]) -> None:
        order = _order(attempt)
        pages: list[SitemapEntry] = []
        nested: list[str] = []
        broken: Unreadable | None = None
        body.seek(0)
        try:
            async for entry in _entries(reader, body):
                if order.since is not None and _is_older(entry, order.since):
                    continue
                if entry.listed is Listed.PAGE:
                    pages.append(entry)
                elif len(nested) <= order.files:
                    nested.append(entry.url)
                if len(pages) >= BATCH:
                    await self._finds(attempt, scraper, order, pages)
                    pages = []
        except Unreadable as error:
            broken = error
        if pages:
            await self._finds(attempt, scraper, order, pages)
        await self._follow(scraper, attempt, order, nested)
        if broken is not None:
            raise broken

    async def _follow(self, scraper: Scraper, attempt: Attempt, order: SitemapOrder, urls: list[str]) -> None:
        """Sitemaps that this one leads to, each with its share of how many more there may be.

        Those on other hosts are held against `allow`: a site may list what it likes, but not send us anywhere.
        """
        named = resolved(attempt, urls)
        urls = [url for url in named if may_lead_to(scraper, attempt.url, url)]
        self._refuse(
            attempt,
            [Refused(url, OUTSIDE, Refusal.OUTSIDE) for url in named if not may_lead_to(scraper, attempt.url, url)],
        )
        if not urls:
            return
        about = {"scraper": scraper.name, "url": without_credentials(attempt.url)}
        if order.nested >= MOST_NESTED:
            log.warning(log_events.SITEMAP_NESTED_TOO_DEEP, **about, left_out=len(urls), most=MOST_NESTED)
            attempt.refusals[Refusal.TOO_DEEP] += len(urls)
            return
        if len(urls) > order.files:
            log.warning(log_events.SITEMAP_LISTED_TOO_MANY, **about, most=order.files)
            del urls[order.files :]
        share = (order.files - len(urls)) // max(1, len(urls))
        data = msgspec.to_builtins(msgspec.structs.replace(order, nested=order.nested + 1, files=share))
        requests = [Request(url, attempt.task.handler, data, kind=Kind.SITEMAP) for url in urls]
        for begin in range(0, len(requests), BATCH):
            await self._enqueue(attempt, scraper, requests[begin : begin + BATCH])

    async def _as_tasks(
        self, attempt: Attempt, scraper: Scraper, order: SitemapOrder, entries: list[SitemapEntry]
    ) -> None:
        requests: list[Request] = []
        sitemap = without_credentials(attempt.url)
        for entry, url in zip(entries, resolved(attempt, [entry.url for entry in entries]), strict=True):
            newest = latest(entry.lastmod) if order.newest_first and entry.lastmod else None
            data = {"lastmod": entry.lastmod, "sitemap": sitemap} if order.lastmod else None
            priority = None if newest is None else max(0, newest // _HOUR)
            requests.append(Request(url, attempt.task.handler, data, priority=priority))
            if order.media and entry.media:
                requests += [Request(file, kind=Kind.FILE) for file in resolved(attempt, entry.media)]
        await self._enqueue(attempt, scraper, requests)

    @staticmethod
    def _refuse(attempt: Attempt, refused: list[Refused]) -> None:
        if refused:
            attempt.refusals.update(each.kind for each in refused)
            first, number = refused[0], len(refused)
            log.debug(log_events.SITEMAP_REFUSED_ENTRIES, count=number, first=cleaned(first.url), reason=first.reason)

    async def _enqueue(self, attempt: Attempt, scraper: Scraper, requests: list[Request]) -> None:
        extra = attempt.task.extra
        admitted = [admit(request, scraper, -1, extra.group, guarded=extra.guarded) for request in requests]
        tasks = [task for task in admitted if isinstance(task, NewTask)]
        self._refuse(attempt, [task for task in admitted if isinstance(task, Refused)])
        if extra.guarded and tasks:
            room = await self._budget.room(attempt.task.run_id, len(tasks))
            self._budget.take(attempt.task.run_id, room)
            self._refuse(attempt, [Refused(task.url, TOO_MANY, Refusal.TOO_MANY) for task in tasks[room:]])
            del tasks[room:]
        try:
            if tasks:
                await self._frontier.enqueue(attempt.task.run_id, tasks)
        except UsageError as error:
            raise _Cancelled from error


async def _entries(reader: SitemapReader, body: IO[bytes]) -> AsyncIterator[SitemapEntry]:
    while not reader.full and (chunk := body.read(CHUNK)):
        for entry in reader.feed(chunk):
            yield entry
        await asyncio.sleep(0)
    for entry in reader.close():
        yield entry


def _order(attempt: Attempt) -> SitemapOrder:
    return msgspec.convert(attempt.extra.data or {}, SitemapOrder)


def _is_older(entry: SitemapEntry, since: int) -> bool:
    changed = latest(entry.lastmod) if entry.lastmod else None
    return changed is not None and changed < since


def resolved(attempt: Attempt, urls: list[str]) -> list[str]:
    """Addresses as the sitemap means them, normalised. What cannot be one is left as it is, to be refused."""
    resolver = Resolver(attempt.url)
    return [_joined(resolver, url) for url in urls]


def _joined(resolver: Resolver, url: str) -> str:
    try:
        return NormalURL(resolver.join(url))
    except BadURL:
        return url


def _report(attempt: Attempt, reader: SitemapReader) -> None:
    about = {"scraper": attempt.task.scraper, "url": without_credentials(attempt.url), "taken": reader.taken}
    if reader.full:
        log.warning(log_events.SITEMAP_TRUNCATED, **about)
    if troubles := reader.troubles:
        log.warning(log_events.SITEMAP_BROKE, **about, places=len(troubles), first=troubles[0])
