"""Webhooks: a client that named a callback is told when its job has ended, at least once.

A delivery is a task like any other: a POST in a lane of its own, with leases, retries and dead letters. It is made when
the end of a job is seen, and only then is the callback cleared: whoever dies in between, the next one makes it again,
which is a duplicate and has no effect. All deliveries of a day are one run, `webhooks-20261116`.
"""

from __future__ import annotations

import asyncio
import secrets
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256

import msgspec
import structlog

from shoal.api.page import Page
from shoal.api.request import Request
from shoal.api.scraper import Scraper
from shoal.api.webhook_signature import DELIVERIES as NAME
from shoal.api.webhook_signature import signed
from shoal.core import log_events
from shoal.core.clock import Clock, iso, millis
from shoal.core.outcome import Blame
from shoal.core.task import DIRECT, NewTask
from shoal.core.url import credentials_of, normalise, without_credentials
from shoal.errors import BadURL, CannotUnseal, EngineError, UsageError
from shoal.fetch.guard.rules import Guard
from shoal.fetch.protocol import Fetch, Fetcher, FetchError, Gate, Response
from shoal.frontier.contract.exits import NewExit
from shoal.frontier.contract.frontier import NewRun
from shoal.frontier.contract.jobs import ANY, Admission, Callback, JobStatus, NewJob, Store
from shoal.gateway.http import job_documents
from shoal.gateway.http.answer import Problem, encode
from shoal.gateway.limits.keys import ApiKey
from shoal.gateway.limits.store_breaker import StoreBreaker
from shoal.gateway.options import GatewayOptions
from shoal.intake.admission import Refused, to_task
from shoal.work.options import WorkerOptions
from shoal.work.worker import Worker

AT_ONCE = 100
KEPT = 7 * 24 * 3600.0
"""Seconds for which dead letters are kept after the last delivery of their day."""

WORTH_TRYING = 3 * 24 * 3600.0
TIMEOUT = 15.0
LARGEST_ANSWER = 1024 * 1024
PAUSE = 5.0

_KEY = "shoal-key"
"""A header of the task that says whose secret it is to be signed with, and is never sent."""

log = structlog.get_logger("shoal")


def checked_callback(url: str, key: ApiKey, guard: Guard) -> bytes:
    """A callback as it is stored with its job. Raises Problem 4xx if it cannot be one."""
    if not key.key_id:
        raise Problem(
            403, "not-allowed",
            "A callback needs an API key, which its messages are signed with; this service has none yet. "
            "Its operator makes one with `shoal keys create NAME`.",
        )  # fmt: skip
    if not key.webhook:
        raise Problem(
            403, "not-allowed",
            "A callback needs an API key with a webhook secret, and this one was made before there were any. "
            "Its operator makes another with `shoal keys create NAME`.",
        )  # fmt: skip
    try:
        place = normalise(url)
    except BadURL as error:
        raise Problem(422, "bad-callback", f"The callback cannot be called: {error.reason}.") from None
    reason = guard.refuses_url(place)
    if reason is not None:
        raise Problem(422, "bad-callback", f"The callback cannot be called: {reason}.")
    return place.encode()


class Webhooks:
    """Makes deliveries for jobs that have ended, and sees to it that they are made good."""

    def __init__(
        self,
        store: Store,
        breaker: StoreBreaker,
        options: GatewayOptions,
        secret_of: Callable[[str], str | None],
        clock: Clock,
    ) -> None:
        self._clock = clock
        self._store = store
        self._breaker = breaker
        self._options = options
        self._secret_of = secret_of
        self._scraper = _scraper(options.webhook_attempts)
        self._some = asyncio.Event()

    def look(self) -> None:
        """There are deliveries to be made: of this process, or of others that may be gone."""
        self._some.set()

    async def dispatch(self) -> int:
        """Turn callbacks of jobs that have ended into deliveries, some at a time. Answers how many. Raises Problem."""
        callbacks = await self._breaker.ask(lambda: self._store.jobs.callbacks(AT_ONCE))
        if not callbacks:
            return 0
        ids = [callback.job_id for callback in callbacks]
        found = await self._breaker.ask(lambda: self._store.jobs.statuses(dict.fromkeys(ids, ANY)))
        statuses = {status.job_id: status for status in found}
        made = [self._task(each, statuses[each.job_id]) for each in callbacks if each.job_id in statuses]
        tasks = [task for task in made if isinstance(task, NewTask)]
        if tasks:
            await self._breaker.ask_patiently(lambda: self._enqueue(tasks))
        await self._breaker.ask_patiently(lambda: self._store.jobs.clear_callbacks(ids))
        self.look()
        return len(callbacks)

    async def run(self) -> None:
        """Deliver whenever there is something to deliver, until cancelled."""
        while True:
            await self._some.wait()
            self._some.clear()
            worker = Worker(self._store, [self._scraper], self._worker_options(), around=self._signing)
            try:
                await worker.run()
            except EngineError as error:
                log.warning(log_events.WEBHOOK_STALLED, reason=str(error))
                await self._clock.sleep(PAUSE)

    async def _enqueue(self, tasks: Sequence[NewTask]) -> None:
        day = datetime.fromtimestamp(await self._store.reader.now() / 1000, UTC)
        policy = msgspec.structs.replace(self._scraper.policy(), results_ttl=millis(KEPT))
        today = f"{NAME}-{day:%Y%m%d}"
        for run_id in (today, f"{today}-{secrets.token_hex(4)}"):
            run = NewRun(run_id, NAME, policy, "distributed", NAME)
            (submitted,) = await self._store.jobs.submit([NewJob(run, tasks, owner=NAME)])
            if submitted.admission is Admission.CREATED:
                return
            try:
                await self._store.frontier.enqueue(run_id, tasks)
            except UsageError:  # that run was cancelled, or is on its way to another store
                continue
            return

    def _task(self, callback: Callback, status: JobStatus) -> NewTask | Refused:
        document = {
            "type": f"job.{status.state.value}",
            "timestamp": iso(status.ended_at),
            "data": {**job_documents.summary(status), "location": f"/results/{status.job_id}"},
        }
        place = callback.body.decode()
        headers = {"Content-Type": "application/json", "webhook-id": status.job_id, _KEY: status.owner}
        login = credentials_of(place)
        if login is not None:  # as a header it is sealed, and never part of an address that is shown
            headers["Authorization"] = f"Basic {b64encode(':'.join(login).encode()).decode()}"
        request = Request(without_credentials(place), method="POST", headers=headers, body=encode(document))
        task = to_task(request, self._scraper, guarded=True)
        if isinstance(task, Refused):
            log.warning(log_events.WEBHOOK_REFUSED, job=status.job_id, reason=task.reason)
            return task
        # A clock of its own: whoever wants to be told does not wait because the same host is being crawled, nor because
        # it has had enough of somebody else's messages.
        key = sha256(f"{NAME} {status.job_id}".encode()).digest()
        return msgspec.structs.replace(task, site=f"{NAME}:{status.owner}:{task.site}", key=key)

    def _worker_options(self) -> WorkerOptions:
        return replace(
            self._options.worker,
            concurrency=32,
            lanes=(NAME,),
            queues=(NAME,),
            drain=True,
            exits={DIRECT: NewExit(DIRECT, DIRECT, (NAME,))},
            audit=False,
            guard=self._options.guard,
        )

    def _signing(self, fetcher: Fetcher) -> Fetcher:
        return Signing(fetcher, self._secret_of, self._store)


class Signing:
    """A fetcher that signs what it sends, at each attempt anew, and takes nothing but success for one."""

    def __init__(self, fetcher: Fetcher, secret_of: Callable[[str], str | None], store: Store) -> None:
        self._fetcher = fetcher
        self._secret_of = secret_of
        self._store = store

    async def fetch(self, fetch: Fetch, gate: Gate) -> Response:
        headers = dict(fetch.headers)
        try:
            secret = self._secret_of(headers.pop(_KEY, ""))
        except CannotUnseal as error:
            raise FetchError(str(error), Blame.WORKER) from None
        if secret is None:
            raise FetchError("the API key of this job is not known here", Blame.WORKER)
        now = await self._store.reader.now() // 1000
        headers |= signed(secret, headers["webhook-id"], now, fetch.body or b"")
        response = await self._fetcher.fetch(replace(fetch, headers=headers), gate)
        limited = response.status == 429 or (response.status == 503 and "Retry-After" in response.headers)
        if not limited and not 200 <= response.status < 300:
            raise FetchError(f"HTTP {response.status}", Blame.HOST)
        return response

    async def close(self) -> None:
        await self._fetcher.close()


def _scraper(attempts: int) -> Scraper:
    scraper = Scraper(
        NAME,
        delay=0,
        concurrency=8,
        attempts=attempts,
        timeout=TIMEOUT,
        obey_robots=False,
        exits=NAME,
        lane=NAME,
        lanes={NAME: {"ttl": WORTH_TRYING}},
        max_bytes=LARGEST_ANSWER,
        max_rate_limits=attempts,
        site_down_after=0,  # each webhook is tried as often as it was promised
        adaptive=True,  # and a receiver that fails is asked ever more seldom, however many wait for it
    )

    @scraper.page
    def delivered(page: Page) -> None:
        """What the receiver answers is its own business."""

    return scraper
