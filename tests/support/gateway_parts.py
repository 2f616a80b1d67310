"""The gateway inside a test: a service on a real store, which the test listens to."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from shoal import Page, Request, Scraper
from shoal.frontier.contract.jobs import Backlog, JobStatus, NewJob, Submitted
from shoal.frontier.sqlite.engine import SqliteEngine
from shoal.gateway.limits.keys import ANYBODY
from shoal.gateway.service import GatewayService


class Word(BaseModel):
    word: str


def shop_scraper() -> Scraper:
    scraper = Scraper("shop", input=Word, delay=0)

    @scraper.start
    def begin(given: Word) -> Any:
        yield Request(f"https://shop.example/{given.word}", group=given.word)

    @scraper.page
    def read(page: Page) -> Any:
        yield {}

    return scraper


class Tap:
    """The jobs of a store, with every call noted, and stopped or failed if a test wants it."""

    def __init__(self, engine: SqliteEngine) -> None:
        self._jobs = engine.jobs
        self.reads: list[int] = []
        self.told = 0
        self.groups: list[int] = []
        self.named: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.trouble: Exception | None = None

    async def statuses(self, known: Mapping[str, int]) -> Sequence[JobStatus]:
        self.reads.append(len(known))
        if self.trouble:
            raise self.trouble
        found = await self._jobs.statuses(known)
        self.told += len(found)
        return found

    async def submit(self, jobs: Sequence[NewJob]) -> Sequence[Submitted]:
        self.groups.append(len(jobs))
        self.named += [job.run.run_id for job in jobs]
        await self.gate.wait()
        if self.trouble:
            raise self.trouble
        return await self._jobs.submit(jobs)

    async def backlogs(self) -> Sequence[Backlog]:
        if self.trouble:
            raise self.trouble
        return await self._jobs.backlogs()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._jobs, name)


async def submit(service: GatewayService, word: str) -> str:
    body = b'{"word": "%b"}' % word.encode()
    accepted = await service.submit(ANYBODY, "shop", body, None, None, body)
    return accepted.submitted.job_id
