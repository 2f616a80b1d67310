"""The gateway without HTTP: jobs in, documents out, for any number of clients."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial

import msgspec

from shoal.api.scraper import Scraper
from shoal.api.webhook_signature import DELIVERIES
from shoal.core.clock import Clock, Millis, SystemClock, millis
from shoal.delivery.supervised import supervised
from shoal.errors import UsageError
from shoal.frontier.contract.jobs import Admission, Backlog, JobState, JobStatus, Store, Submitted
from shoal.frontier.contract.reader import DeadLetter, Item, ItemPage
from shoal.gateway.http import job_documents
from shoal.gateway.http.answer import Problem, encode, unavailable
from shoal.gateway.jobs.estimates import ask_again, estimate, own_work
from shoal.gateway.jobs.finished_cache import FinishedCache
from shoal.gateway.jobs.group_commit import GroupCommit
from shoal.gateway.jobs.item_pages import bounded_page
from shoal.gateway.jobs.long_poll import LongPolls
from shoal.gateway.jobs.prepare import Prepared, ServedScraper, fingerprint
from shoal.gateway.jobs.shared_reads import SharedReads
from shoal.gateway.jobs.start_threads import StartThreads
from shoal.gateway.jobs.webhooks import Webhooks, checked_callback
from shoal.gateway.limits.keyring import KeyRing, may_see, require
from shoal.gateway.limits.keys import ApiKey, Scope
from shoal.gateway.limits.read_quota import ReadQuota
from shoal.gateway.limits.read_turns import ReadTurns
from shoal.gateway.limits.store_breaker import StoreBreaker
from shoal.gateway.options import GatewayOptions
from shoal.gateway.perimeter.caller import Caller

RESULTS_AT_ONCE = 64
EXPIRE_EVERY = 2.0
LOOK_FOR_ENDS = 0.5
SHARE = 10.0
"""Seconds between two looks for jobs that have ended and want to be told of; and so many times as long as one takes."""

LOOK_FOR_OVERDUE = 10.0
"""Seconds between two looks for jobs that have had their time, at the most."""

WORKER_SEEN = 60_000
SHORTEST_ANONYMOUS_KEY = 16


class AcceptedJob(msgspec.Struct, frozen=True):
    """A submission that was taken: what the store said, and what to expect."""

    submitted: Submitted
    prepared: Prepared
    estimated: float
    poll_after: float


class GatewayService:
    """Everything that routes need. Made inside the event loop; `running` keeps it going."""

    def __init__(
        self, store: Store, scrapers: Sequence[Scraper], options: GatewayOptions, clock: Clock | None = None
    ) -> None:
        if any(scraper.name == DELIVERIES for scraper in scrapers):
            raise UsageError(
                f"A scraper that is served cannot be called {DELIVERIES!r}: the gateway has one of that name."
            )
        self.store = store
        self.options = options
        self.clock = clock or SystemClock()
        self.served = {scraper.name: ServedScraper(scraper, options) for scraper in scrapers}
        self.backlogs: Mapping[str, Backlog] = {}
        self.workers = 0
        self.breaker = StoreBreaker(self._look_around, options.store_patience)
        self.polls = LongPolls(store.jobs, self.breaker, self.clock)
        self.keys = KeyRing(store.registry, self.breaker, self.clock, self.polls.dismiss, box=options.worker.secrets)
        self.submissions = GroupCommit(store.jobs, self.breaker, options, self.clock)
        self.webhooks = Webhooks(store, self.breaker, options, self.keys.webhook_secret, self.clock)
        self.read_quota = ReadQuota(self.clock)
        self.closing = False
        self._start_threads = StartThreads(self.clock)
        self._read_turns = ReadTurns()
        self._items = SharedReads(self._read_items, RESULTS_AT_ONCE, self.clock)
        self._finished = FinishedCache(self.clock)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Within the block, requests are answered."""
        await self.keys.load()
        async with asyncio.TaskGroup() as group:
            loops = {
                "look at the store": self.breaker.run,
                "API keys": self.keys.run,
                "long polls": self.polls.run,
                "submissions": self.submissions.run,
                "results": self._items.run,
                "webhooks": self.webhooks.run,
                "deadlines": self._keep_deadlines,
                "housekeeping": self._keep_house,
            }
            chores = [group.create_task(supervised(name, loop, self.clock)) for name, loop in loops.items()]
            yield
            for chore in chores:
                chore.cancel()
        self._start_threads.close()

    def close(self) -> None:
        """No more waiting: answer everybody with what is known."""
        self.closing = True
        self.polls.release()

    # Submitting

    async def submit(
        self,
        key: ApiKey,
        scraper: str,
        body: bytes | None,
        urls: list[str] | None,
        idempotency_key: str | None,
        asked: bytes,
        callback: str | None = None,
        client: str = "",
    ) -> AcceptedJob:
        """Create a job. `asked`: the bytes that tell whether an idempotency key is used for the same thing.

        `callback`: where to say that it has ended. `client`: where it comes from, of those who have no key: shares of
        preparation and admission are by key, or by this.
        """
        chosen = self.served.get(scraper)
        if chosen is None:
            known = ", ".join(sorted(name for name in self.served if key.scrapers is None or name in key.scrapers))
            raise Problem(404, "unknown-scraper", f"There is no scraper {scraper[:100]!r} here; there are {known}.")
        require(key, Scope.SUBMIT, scraper)
        client = key.key_id or client
        self._check_room(chosen, client)
        if idempotency_key is not None:
            _check_idempotency_key(idempotency_key, key)
        called = None if callback is None else checked_callback(callback, key, self.options.guard)
        prepared = await chosen.prepare(self._start_threads, body, urls, client)
        print_ = fingerprint(scraper, asked + (called or b""))
        job = msgspec.structs.replace(
            prepared.job,
            owner=key.key_id,
            key=idempotency_key,
            fingerprint=print_,
            quota=key.quota,
            callback=called,
        )
        submitted = await self.submissions.submit(job, client)
        if submitted.admission is Admission.REPEATED and submitted.fingerprint != print_:
            raise Problem(
                422, "idempotency-key-reused", "This Idempotency-Key was used before, for something else.",
                job_id=submitted.job_id,
            )  # fmt: skip
        own = own_work(len(job.tasks), chosen.policy.delay, chosen.policy.concurrency)
        estimated = estimate(submitted.position, own, self.backlogs.get(chosen.queue))
        return AcceptedJob(submitted, prepared, estimated, ask_again(estimated))

    def _check_room(self, chosen: ServedScraper, client: str) -> None:
        self.submissions.check(client)
        backlog = self.backlogs.get(chosen.queue)
        if backlog is not None and backlog.unfinished >= self.options.max_queue:
            raise unavailable("queue-full", f"{backlog.unfinished:,} jobs of this scraper are waiting already.", 30)

    # Looking

    async def see(self, key: ApiKey, job_id: str) -> JobStatus:
        """How a job stands, if whoever has this key may see it. Raises Problem 404 and 410."""
        require(key, Scope.READ)
        kept = self._finished.get(job_id)
        status = kept.status if kept is not None else await self.polls.look(job_id)
        if status is None:
            raise job_documents.unknown(job_id)
        return self._seen(key, status)

    def check_waiting(self) -> None:
        """Raise Problem 503 if as many clients wait as may."""
        if self.polls.waiting >= self.options.max_waiting:
            raise unavailable("too-many-waiting", "As many clients wait for news as can. Poll, or come back.", 5)

    async def wait(
        self, key: ApiKey, status: JobStatus, known: int | None, seconds: float, caller: Caller | None = None
    ) -> JobStatus:
        """The job when it has ended, or, with `known`, when its version is another; or after so many seconds.

        At once where as many wait as may. Raises ClientGone when the `caller` goes, and Problem 401 if its key does.
        """
        if self.closing or seconds <= 0 or self.polls.waiting >= self.options.max_waiting:
            return status
        if status.has_ended or (known is not None and status.version != known):
            return status
        if known is None:
            news = await self.polls.wait(status, _has_ended, seconds, caller, key.key_id)
        else:
            news = await self.polls.wait(status, lambda now: now.version != known, seconds, caller, key.key_id)
        self.keys.check(key)
        return self._seen(key, news)

    async def document(self, status: JobStatus) -> bytes:
        """The job as JSON, with its results if it has ended."""
        if not status.has_ended:
            expected = self.expected(status)
            return encode(job_documents.waiting(status, expected, ask_again(expected)))
        kept = self._finished.get(status.job_id)
        if kept is not None and kept.status.version == status.version:
            return kept.body
        items: Sequence[Item] | None = None if status.counters.items else ()
        if 0 < status.counters.items <= self.options.max_inline:
            items = await self._items.get(status.job_id)
        body = encode(job_documents.ended(status, items, await self._letters(status)))
        self._finished.put(status, body)
        return body

    def expected(self, status: JobStatus) -> float:
        """Seconds until the job ends, as far as can be told."""
        found = self.served.get(status.scraper)
        delay, concurrency = (found.policy.delay, found.policy.concurrency) if found else (1000, 1)
        own = own_work(status.counters.remaining, delay, concurrency)
        return estimate(status.position, own, self.backlogs.get(f"jobs:{status.scraper}"))

    async def listed(self, key: ApiKey, before: int | None, limit: int) -> Sequence[JobStatus]:
        """The newest jobs that whoever has this key may see."""
        require(key, Scope.READ)
        owner = None if Scope.ADMIN in key.scopes else key.key_id
        return await self.breaker.ask(lambda: self.store.jobs.listed(owner, before, limit))

    async def items(self, key: ApiKey, job_id: str, cursor: int, limit: int) -> ItemPage:
        """Items of a job that was seen to be the client's own: about `limit`, and fewer if they are large."""
        async with self._read_turns.turn(key.key_id):
            return await bounded_page(self._item_page, job_id, cursor, limit, self.options.max_answer)

    async def cancel(self, key: ApiKey, job_id: str) -> JobStatus:
        """End a job. The second time: nothing."""
        require(key, Scope.SUBMIT)
        found = await self.polls.look(job_id)
        if found is None:
            raise job_documents.unknown(job_id)
        self._seen(key, found)
        self._finished.drop(job_id)
        await self.breaker.ask(lambda: self.store.frontier.cancel_run(job_id))
        return await self.polls.look(job_id) or found

    def _seen(self, key: ApiKey, status: JobStatus) -> JobStatus:
        if not may_see(key, status.owner):
            raise job_documents.unknown(status.job_id)
        if status.state is JobState.EXPIRED:
            raise job_documents.expired(status)
        return status

    # Reading and chores

    async def _item_page(self, job_id: str, cursor: int, limit: int) -> ItemPage:
        return await self.breaker.ask(lambda: self.store.reader.items(job_id, cursor, limit))

    async def _read_items(self, job_ids: Sequence[str]) -> Mapping[str, Sequence[Item]]:
        options = self.options
        return await self.breaker.ask(lambda: self.store.jobs.results(job_ids, options.max_inline, options.max_answer))

    async def _letters(self, status: JobStatus) -> Sequence[DeadLetter]:
        if not status.counters.dead:
            return ()
        return await self.breaker.ask(lambda: self.store.reader.dead(status.job_id, limit=job_documents.MORE_ERRORS))

    async def _look_around(self) -> None:
        self.backlogs = {each.queue: each for each in await self.store.jobs.backlogs()}
        if DELIVERIES in self.backlogs:
            self.webhooks.look()
        workers = [each for each in await self.store.reader.workers() if DELIVERIES not in each.info.duties.scrapers]
        newest = max((worker.seen_at for worker in workers), default=0)
        self.workers = sum(worker.seen_at > newest - WORKER_SEEN for worker in workers)

    async def _keep_deadlines(self) -> None:
        """Jobs that have not ended in their time are ended, with that reason."""
        seconds = self.options.deadline
        if not seconds:
            return
        reason = f"It had not ended {seconds:g} seconds after it came, which is as long as a job may take here."
        while True:
            with suppress(Problem):
                for served in self.served.values():
                    await self._end_overdue(served.queue, millis(seconds), reason)
            await self.clock.sleep(min(LOOK_FOR_OVERDUE, seconds / 10))

    async def _end_overdue(self, queue: str, age: Millis, reason: str) -> None:
        overdue = await self.breaker.ask_patiently(lambda: self.store.jobs.give_up(queue, age, reason))
        for job_id in overdue:
            with suppress(UsageError):  # it is gone, or on its way to another store
                await self.breaker.ask_patiently(partial(self.store.frontier.cancel_run, job_id))

    async def _keep_house(self) -> None:
        """Callbacks first: a job is not forgotten before its end was told."""
        expire_at = 0.0
        while True:
            began = self._seconds()
            busy = False
            try:
                busy = bool(await self.webhooks.dispatch())
                took = self._seconds() - began
                if not busy and began >= expire_at:
                    expired = await self.breaker.ask_patiently(lambda: self.store.jobs.expire(self.options.remember))
                    expire_at = began + (0.0 if expired.more else EXPIRE_EVERY)
                    busy = expired.more
            except Problem:
                took = 0.0
            await self.clock.sleep(0.05 if busy else max(LOOK_FOR_ENDS, SHARE * took))

    def _seconds(self) -> float:
        return self.clock.elapsed() / 1000


def _has_ended(status: JobStatus) -> bool:
    return status.has_ended


def _check_idempotency_key(text: str, key: ApiKey) -> None:
    least = 1 if key.key_id else SHORTEST_ANONYMOUS_KEY
    if not least <= len(text) <= 255 or not text.isascii() or not text.isprintable():
        raise Problem(
            400, "bad-idempotency-key",
            f"An Idempotency-Key has {least} to 255 printable ASCII characters; a UUID is a good one.",
        )  # fmt: skip
