"""Runs as a whole: giving them an id, creating them, and filling them with what they start from."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from shoal.api.request import Request
from shoal.api.scraper import Scraper
from shoal.api.sitemap import Sitemap, sitemap_request
from shoal.core.clock import Clock
from shoal.core.storable import check_run_id
from shoal.core.task import NewTask, RunState
from shoal.core.url import join, without_credentials
from shoal.errors import BadURL
from shoal.frontier.contract.engine import Engine
from shoal.frontier.contract.frontier import NewRun
from shoal.intake.admission import Refused, admit

if TYPE_CHECKING:
    from pydantic import BaseModel

BATCH = 1000
"""Tasks that are enqueued in one transaction while seeding."""

REFUSALS_SHOWN = 20


@dataclass(slots=True)
class Seeded:
    """What a run was filled with. `refused` holds the first few; `refusals` counts them all."""

    accepted: int = 0
    duplicates: int = 0
    refusals: int = 0
    refused: list[tuple[str, str]] = field(default_factory=list)


def new_run_id(scraper: str, clock: Clock) -> str:
    """Readable, sortable by time, unique, and not to be guessed: `books-20261116-013501-5d0c2a9be41f`."""
    now = datetime.fromtimestamp(clock.now() / 1000, UTC)
    return f"{scraper}-{now:%Y%m%d-%H%M%S}-{secrets.token_hex(6)}"


async def seed(
    engine: Engine,
    scraper: Scraper,
    run_id: str,
    *,
    urls: AsyncIterable[str] | Iterable[str] | None = None,
    input: bytes | None = None,  # noqa: A002 - the word of the API
    mode: str | None = None,
    queue: str | None = None,
    add: bool = False,
) -> Seeded:
    """Create the run if it does not exist, enqueue what it starts from as a stream, and seal it.

    `urls`: instead of what the scraper starts from. Interrupted and called again, it ends with the same tasks: what has
    been let in before is a duplicate. A run that is sealed already is left as it is, unless `add`: then it takes what
    it has not seen, and is under way again if it was finished.
    """
    check_run_id(run_id)
    model = scraper.parse_input(input) if urls is None else None
    run = await engine.frontier.create_run(
        NewRun(run_id, scraper.name, scraper.policy(), mode or scraper.mode, queue, input)
    )
    seeded = Seeded()
    if run.state is not RunState.OPEN and not add:
        return seeded
    requests = at_start(scraper, model) if urls is None else _plain(urls)
    batch: list[NewTask] = []
    position = 0
    async for request in requests:
        position += 1
        task = admit(request, scraper)
        if isinstance(task, Refused):
            seeded.refusals += 1
            if len(seeded.refused) < REFUSALS_SHOWN:
                seeded.refused.append((without_credentials(task.url), task.reason))
            continue
        batch.append(_once(task, position))
        if len(batch) >= BATCH:
            await _enqueue(engine, run_id, batch, seeded)
            batch = []
    if batch:
        await _enqueue(engine, run_id, batch, seeded)
    await engine.frontier.seal_run(run_id)
    return seeded


async def _enqueue(engine: Engine, run_id: str, batch: list[NewTask], seeded: Seeded) -> None:
    enqueued = await engine.frontier.enqueue(run_id, batch)
    seeded.accepted += enqueued.accepted
    seeded.duplicates += enqueued.duplicates


def _once(task: NewTask, position: int) -> NewTask:
    """A start request with `dedup=False` is let in however often its URL occurs, but only once per place in the list:
    so that seeding can be interrupted and repeated."""
    if task.key is not None:
        return task
    key = hashlib.sha256(f"start {position} {task.url}".encode()).digest()
    return msgspec.structs.replace(task, key=key)


async def at_start(scraper: Scraper, model: BaseModel | None) -> AsyncIterator[Request]:
    """What the scraper begins with; with `sitemaps=True` also the robots.txt of each site, once it is first met."""
    met: set[str] = set()
    async for request in scraper.requests_at_start(model):
        yield request
        if scraper.sitemaps is True and (named := _robots_of(request.url)) not in met:
            met.add(named)
            if named:
                yield sitemap_request(Sitemap(named), 0)


def _robots_of(url: str) -> str:
    """Where the robots.txt of this URL's site is; empty for what is no URL, which is refused elsewhere."""
    try:
        return join(url, "/robots.txt")
    except BadURL:
        return ""


async def _plain(urls: AsyncIterable[str] | Iterable[str]) -> AsyncIterator[Request]:
    if isinstance(urls, AsyncIterable):
        async for url in urls:
            yield Request(url)
    else:
        for url in urls:
            yield Request(url)
