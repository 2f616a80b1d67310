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

from shoal.errors import BadScraper, BadURL, UsageError
from shoal.fetch.robots import RobotsRules
from shoal.frontier.protocol import Frontier
from shoal.intake.admission import Refused, to_task
from shoal.intake.lastmod import latest
from shoal.intake.sitemap_file import SitemapReader
from shoal.intake.sitemap_xml import Entry, Listed, Unreadable
from shoal.outcome import Blame, Dead, Done, Outcome, Snoozed
from shoal.request import Request
from shoal.scraper import Scraper
from shoal.sitemap import SitemapOrder
from shoal.task import Kind, NewTask
from shoal.url import NormalURL, Resolver, without_credentials
from shoal.work.verdict import because, readable
from shoal.work.visit import Visit

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

    async def __call__(self, visit: Visit, scraper: Scraper, order: SitemapOrder, entries: list[Entry]) -> None: ...


class SitemapReading:
    """Reads sitemaps. `finds`: what becomes of pages; None = they become tasks of the run."""

    def __init__(self, frontier: Frontier, finds: Finds | None = None) -> None:
        self._frontier = frontier
        self._finds = finds or self._as_tasks

    async def read(self, scraper: Scraper, visit: Visit, body: IO[bytes]) -> Outcome:
        """Pass on what a sitemap lists. One that is broken in places is done; one that cannot be read is dead, and what
        could be read of it before counts all the same."""
        reader = SitemapReader()
        try:
            await self._pass_on(scraper, visit, reader, body)
        except Unreadable as error:
            taken = f"; the {reader.taken} entries before that were taken" if reader.taken else ""
            return Dead(because(Blame.URL, f"unreadable sitemap: {error}{taken}"))
        except BadScraper as error:
            return Dead(because(Blame.HANDLER, error))
        except _Cancelled:
            return Snoozed()
        _report(visit, reader)
        return Done(url=visit.url)

    async def read_robots(self, scraper: Scraper, visit: Visit, rules: RobotsRules) -> Outcome:
        """Follow the sitemaps that a robots.txt names."""
        if not rules.sitemaps:
            log.warning("robots.txt names no sitemap", scraper=scraper.name, url=without_credentials(visit.url))
        try:
            await self._follow(scraper, visit, _order(visit), list(rules.sitemaps))
        except _Cancelled:
            return Snoozed()
        return Done(url=visit.url)

    async def _pass_on(self, scraper: Scraper, visit: Visit, reader: SitemapReader, body: IO[bytes]) -> None:
        order = _order(visit)
        pages: list[Entry] = []
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
                    await self._finds(visit, scraper, order, pages)
                    pages = []
        except Unreadable as error:
            broken = error
        if pages:
            await self._finds(visit, scraper, order, pages)
        await self._follow(scraper, visit, order, nested)
        if broken is not None:
            raise broken

    async def _follow(self, scraper: Scraper, visit: Visit, order: SitemapOrder, urls: list[str]) -> None:
        """Sitemaps that this one leads to, each with its share of how many more there may be."""
        if not urls:
            return
        about = {"scraper": scraper.name, "url": without_credentials(visit.url)}
        if order.nested >= MOST_NESTED:
            log.warning("sitemaps nested too deep are left out", **about, left_out=len(urls), most=MOST_NESTED)
            visit.refused += len(urls)
            return
        if len(urls) > order.files:
            log.warning("more sitemaps than are read of one index", **about, most=order.files)
            del urls[order.files :]
        share = (order.files - len(urls)) // max(1, len(urls))
        data = msgspec.to_builtins(msgspec.structs.replace(order, nested=order.nested + 1, files=share))
        requests = [Request(url, visit.task.handler, data, kind=Kind.SITEMAP) for url in resolved(visit, urls)]
        for begin in range(0, len(requests), BATCH):
            await self._enqueue(visit, scraper, requests[begin : begin + BATCH])

    async def _as_tasks(self, visit: Visit, scraper: Scraper, order: SitemapOrder, entries: list[Entry]) -> None:
        requests: list[Request] = []
        sitemap = without_credentials(visit.url)
        for entry, url in zip(entries, resolved(visit, [entry.url for entry in entries]), strict=True):
            newest = latest(entry.lastmod) if order.newest_first and entry.lastmod else None
            data = {"lastmod": entry.lastmod, "sitemap": sitemap} if order.lastmod else None
            priority = None if newest is None else max(0, newest // _HOUR)
            requests.append(Request(url, visit.task.handler, data, priority=priority))
            if order.media and entry.media:
                requests += [Request(file, kind=Kind.FILE) for file in resolved(visit, entry.media)]
        await self._enqueue(visit, scraper, requests)

    async def _enqueue(self, visit: Visit, scraper: Scraper, requests: list[Request]) -> None:
        extra = visit.task.extra
        admitted = [to_task(request, scraper, -1, extra.group, guarded=extra.guarded) for request in requests]
        tasks = [task for task in admitted if isinstance(task, NewTask)]
        if len(tasks) < len(admitted):
            first = next(task for task in admitted if isinstance(task, Refused))
            refused = len(admitted) - len(tasks)
            visit.refused += refused
            log.debug("entries refused", count=refused, first=readable(first.url), reason=first.reason)
        try:
            if tasks:
                await self._frontier.enqueue(visit.task.run_id, tasks)
        except UsageError as error:
            raise _Cancelled from error


async def _entries(reader: SitemapReader, body: IO[bytes]) -> AsyncIterator[Entry]:
    while not reader.full and (chunk := body.read(CHUNK)):
        for entry in reader.feed(chunk):
            yield entry
        await asyncio.sleep(0)
    for entry in reader.close():
        yield entry


def _order(visit: Visit) -> SitemapOrder:
    return msgspec.convert(visit.extra.data or {}, SitemapOrder)


def _is_older(entry: Entry, since: int) -> bool:
    changed = latest(entry.lastmod) if entry.lastmod else None
    return changed is not None and changed < since


def resolved(visit: Visit, urls: list[str]) -> list[str]:
    """Addresses as the sitemap means them, normalised. What cannot be one is left as it is, to be refused."""
    resolver = Resolver(visit.url)
    return [_joined(resolver, url) for url in urls]


def _joined(resolver: Resolver, url: str) -> str:
    try:
        return NormalURL(resolver.join(url))
    except BadURL:
        return url


def _report(visit: Visit, reader: SitemapReader) -> None:
    about = {"scraper": visit.task.scraper, "url": without_credentials(visit.url), "taken": reader.taken}
    if reader.full:
        log.warning("sitemap with more entries than are taken of one file", **about)
    if troubles := reader.troubles:
        log.warning("broken sitemap, read as far as possible", **about, places=len(troubles), first=troubles[0])
