"""`shoal.Client`: jobs over HTTP for plain programs."""

from __future__ import annotations

import http.client
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Self, TypeVar

from shoal.client.address import address_of
from shoal.client.job import Job, JobItem
from shoal.client.protocol import GatewayRequest, NoAnswer, Pause, Reply, Talk, Talker
from shoal.core.clock import SystemClock
from shoal.core.duration import Duration

Result = TypeVar("Result")


class Client:
    """Submits jobs to a gateway (`shoal serve`) and waits for their results. In async code use AsyncClient.

    `url`: of the gateway, or of the proxy in front of several.
    `api_key`: as `shoal keys create` printed it, where one is needed.
    `patience`: how long to try again when nobody answers, or only "not now" (429, 503, …).

    A Duration is a number of seconds, or a text such as "500ms", "30s", "10m".

    Trying again is always safe: a submission carries an idempotency key. Threads may share a client.
    Raises GatewayError: RequestRefused with what the gateway says is wrong, UnknownJob,
    GatewayUnavailable when patience is over, JobFailed, JobUnfinished.
    """

    def __init__(
        self, url: str = "http://127.0.0.1:8000", *, api_key: str | None = None, patience: Duration = 60.0
    ) -> None:
        self._address = address_of(url)
        self._talker = Talker(SystemClock(), api_key=api_key, patience=patience)
        self._idle: list[http.client.HTTPConnection] = []

    def submit(
        self,
        scraper: str,
        input: Any = None,  # noqa: A002 - the word of the API
        *,
        urls: list[str] | None = None,
        idempotency_key: str | None = None,
        callback: str | None = None,
    ) -> Job:
        """Submit a job for a scraper: with its input (a mapping or a pydantic model), or with URLs.

        When this returns, the job is stored, and survives the death of any process.

        `idempotency_key`: what makes the submission the same one when it is made again, later or by another program
        (None = this call makes one up). `callback`: a URL that is told when the job has ended (see `verify_webhook`).
        """
        return self._do(self._talker.submit(scraper, input, urls, idempotency_key or str(uuid.uuid4()), callback))

    def wait(
        self, job_id: str, *, within: Duration | None = None, on_news: Callable[[Job], object] | None = None
    ) -> Job:
        """Wait until the job is complete, and return it with its results.

        Raises JobFailed if it fails or is cancelled. The connection is held open until there is something to say.
        `within`: after this long JobUnfinished is raised; the job goes on. None = as long as it takes.
        `on_news`: called with the job at first, when its progress changes and, while it is queued, as often as the
        gateway suggests.
        """
        return self._do(self._talker.wait(job_id, within, on_news))

    def result(self, job_id: str) -> Job:
        """How the job stands now, with its results if it has ended."""
        return self._do(self._talker.result(job_id))

    def items(self, job_id: str) -> Iterator[JobItem]:
        """All items that the job has given so far, however many, read page by page."""
        cursor: int | None = 0
        while cursor is not None:
            page = self._do(self._talker.records_after(job_id, cursor))
            yield from page.items
            cursor = page.next if page.items else None

    def cancel(self, job_id: str) -> Job:
        """End the job: nothing more is fetched for it. The second time: nothing."""
        return self._do(self._talker.cancel(job_id))

    def jobs(self) -> Iterator[Job]:
        """The jobs of this API key, newest first; with the scope `admin` those of all."""
        page = self._do(self._talker.jobs_before(None))
        yield from page.jobs
        while page.next is not None:
            page = self._do(self._talker.jobs_before(page.next))
            yield from page.jobs

    def close(self) -> None:
        """Close what is open. The client can still be used."""
        while self._idle:
            self._idle.pop().close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _do(self, talk: Talk[Result]) -> Result:
        try:
            step = next(talk)
            while True:
                if isinstance(step, Pause):
                    time.sleep(step.seconds)
                    step = talk.send(None)
                else:
                    step = talk.send(self._send(step))
        except StopIteration as end:
            result: Result = end.value
            return result

    def _send(self, ask: GatewayRequest) -> Reply | NoAnswer:
        """A connection that was idle may have been closed meanwhile: that is no trouble worth a pause."""
        with suppress(IndexError, OSError, http.client.HTTPException):
            return self._send_by(self._idle.pop(), ask)
        try:
            return self._send_by(self._new_connection(), ask)
        except (OSError, http.client.HTTPException) as error:
            return NoAnswer(str(error) or type(error).__name__)

    def _send_by(self, connection: http.client.HTTPConnection, ask: GatewayRequest) -> Reply:
        connection.timeout = ask.timeout
        if connection.sock is not None:
            connection.sock.settimeout(ask.timeout)
        try:
            connection.request(ask.method, self._address.path + ask.path, ask.body, dict(ask.headers))
            answer = connection.getresponse()
            reply = Reply(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)
        return reply

    def _new_connection(self) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self._address.secure else http.client.HTTPConnection
        return kind(self._address.host, self._address.port)
