"""`shoal.AsyncClient`: jobs over HTTP for programs that have a loop."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from typing import Any, Self, TypeVar

import aiohttp
from yarl import URL

from shoal.client.address import address_of
from shoal.client.job import Job, JobItem
from shoal.client.protocol import GatewayRequest, NoAnswer, Pause, Reply, Talk, Talker
from shoal.core.clock import SystemClock
from shoal.core.duration import Duration

Result = TypeVar("Result")


class AsyncClient:
    """The Client for programs that have a loop: `async with AsyncClient(…) as client: await client.submit(…)`.

    The same arguments, methods and errors as Client, where each method is to be awaited; any number of calls at once.
    """

    def __init__(
        self, url: str = "http://127.0.0.1:8000", *, api_key: str | None = None, patience: Duration = 60.0
    ) -> None:
        self._address = address_of(url)
        self._talker = Talker(SystemClock(), api_key=api_key, patience=patience)
        self._session: aiohttp.ClientSession | None = None

    async def submit(
        self,
        scraper: str,
        input: Any = None,  # noqa: A002 - the word of the API
        *,
        urls: list[str] | None = None,
        idempotency_key: str | None = None,
        callback: str | None = None,
    ) -> Job:
        """As Client.submit."""
        return await self._do(self._talker.submit(scraper, input, urls, idempotency_key or str(uuid.uuid4()), callback))

    async def wait(
        self, job_id: str, *, within: Duration | None = None, on_news: Callable[[Job], object] | None = None
    ) -> Job:
        """As Client.wait."""
        return await self._do(self._talker.wait(job_id, within, on_news))

    async def result(self, job_id: str) -> Job:
        """As Client.result."""
        return await self._do(self._talker.result(job_id))

    async def items(self, job_id: str) -> AsyncIterator[JobItem]:
        """As Client.items, by `async for`."""
        cursor: int | None = 0
        while cursor is not None:
            page = await self._do(self._talker.records_after(job_id, cursor))
            for record in page.items:
                yield record
            cursor = page.next if page.items else None

    async def cancel(self, job_id: str) -> Job:
        """As Client.cancel."""
        return await self._do(self._talker.cancel(job_id))

    async def jobs(self) -> AsyncIterator[Job]:
        """As Client.jobs, by `async for`."""
        page = await self._do(self._talker.jobs_before(None))
        while True:
            for job in page.jobs:
                yield job
            if page.next is None:
                return
            page = await self._do(self._talker.jobs_before(page.next))

    async def close(self) -> None:
        """As Client.close."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _do(self, talk: Talk[Result]) -> Result:
        try:
            step = next(talk)
            while True:
                if isinstance(step, Pause):
                    await asyncio.sleep(step.seconds)
                    step = talk.send(None)
                else:
                    step = talk.send(await self._send(step))
        except StopIteration as end:
            result: Result = end.value
            return result

    async def _send(self, ask: GatewayRequest) -> Reply | NoAnswer:
        if self._session is None:
            self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        url = URL(self._address.origin + self._address.path + ask.path, encoded=True)
        timeout = aiohttp.ClientTimeout(total=ask.timeout)
        try:
            async with self._session.request(
                ask.method, url, data=ask.body, headers=ask.headers, timeout=timeout, allow_redirects=False
            ) as answer:
                headers = {name.lower(): value for name, value in answer.headers.items()}
                return Reply(answer.status, headers, await answer.read())
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            return NoAnswer(str(error) or type(error).__name__)
