"""Running a handler on its page: what it gives becomes the outcome, whatever it is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial

import structlog

from shoal.api.handler import Handler
from shoal.api.page import Page
from shoal.api.request import Request
from shoal.api.scraper import Scraper
from shoal.api.yields import Collected, collect, collect_at_once
from shoal.core import log_events
from shoal.core.clock import Clock
from shoal.core.outcome import Blame, Dead, Done, Outcome
from shoal.core.secret_box import SecretBox
from shoal.core.storable import MAX_ITEMS, cleaned
from shoal.core.task import Kind, NewTask
from shoal.core.url import without_credentials
from shoal.delivery.held_lease import HeldLease
from shoal.errors import BadScraper
from shoal.fetch.protocol import Response
from shoal.frontier.sealing import sealed_tasks
from shoal.intake.admission import Refusal, Refused, admit, to_request
from shoal.work.isolation.handler_pool import HandlerPool
from shoal.work.isolation.messages import PageWork, SentRequest
from shoal.work.process.fair_turns import FairTurns
from shoal.work.process.handler_threads import HandlerThreads
from shoal.work.process.run_halts import RunHalts
from shoal.work.store.known_links import KnownLinks
from shoal.work.store.task_budget import TaskBudget
from shoal.work.task.attempt import Attempt
from shoal.work.task.classify import Classifier
from shoal.work.task.handler_failure import FailureKind, HandlerFailure, failure_of
from shoal.work.task.recollection import GONE
from shoal.work.task.tally import Tally

log = structlog.get_logger("shoal")


class HandlerRunner:
    """Runs handlers. What a handler raises is an outcome; only KeyboardInterrupt and our own cancellation come through.

    `handling`: notes a task while its handler runs, so that a sudden death is charged to it. `halts`: is told how it
    ended. `budget`: how many links jobs may still have. `secrets`: what a handler sees of a task's headers is opened by
    it, what it asks for is sealed. `pool`: processes for those that do not run in this one.
    """

    def __init__(
        self,
        handling: Callable[[HeldLease], AbstractContextManager[None]],
        known_links: KnownLinks,
        clock: Clock,
        halts: RunHalts,
        tally: Tally,
        budget: TaskBudget,
        secrets: SecretBox,
        pool: HandlerPool,
    ) -> None:
        self.halts = halts
        self._budget = budget
        self._secrets = secrets
        self._pool = pool
        self._handling = handling
        self._known_links = known_links
        self._fair_turns = FairTurns(clock)
        self._threads = HandlerThreads()
        self._tally = tally

    async def run(
        self, handler: Handler, attempt: Attempt, scraper: Scraper, response: Response, classify: Classifier
    ) -> Outcome:
        """Hand the page to the handler, and sort what comes back."""
        task = attempt.task
        page = Page(
            attempt.url,
            response.body,
            status=response.status,
            headers=response.headers,
            request=to_request(task, self._secrets),
            depth=task.depth,
            history=attempt.extra.history,
        )
        apart = self._pool.takes(task, scraper)
        began = None if apart or handler.thread else await self._fair_turns.begin()
        with nullcontext() if apart else self._handling(attempt.held):
            try:
                if apart:
                    collected = await self._read_apart(handler, attempt, scraper, response, page)
                else:
                    collected = await self._read_here(handler, attempt, response, page)
                if isinstance(collected, HandlerFailure):
                    return self._failed(collected, attempt, scraper, classify)
                _check_size(collected.items)
                tasks = self._admit(scraper, attempt, collected.requests)
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                if isinstance(error, asyncio.CancelledError) and _is_cancelled():
                    raise
                return self._failed(failure_of(error, handler), attempt, scraper, classify)
            finally:
                if began is not None:
                    self._fair_turns.end(began)
        self.halts.read(task.run_id)
        if tasks and task.extra.guarded:
            tasks = await self._within_budget(attempt, tasks)
        self._tally.read(page, gave=bool(collected.items or collected.requests))
        return Done(tuple(collected.items), tasks, without_credentials(attempt.url), task.extra.group)

    async def _read_here(
        self, handler: Handler, attempt: Attempt, response: Response, page: Page
    ) -> Collected | HandlerFailure:
        """In this process: in the loop, or in a thread. Raises what the handler raises in the loop."""
        if attempt.recollection is not None:
            page.unchanged = attempt.recollection.compare(response)
        if handler.thread:
            ended = await self._threads.run(partial(collect_at_once, handler, page, attempt.url))
            if isinstance(ended, KeyboardInterrupt):
                raise ended
            if isinstance(ended, BaseException):  # not raised here: a coroutine cannot raise StopIteration
                return failure_of(ended, handler)
            collected = ended[0]
        else:
            collected = await collect(handler.function(page), handler, attempt.url)
        if page.refused:
            attempt.refusals[Refusal.NO_URL] += len(page.refused)
        return collected

    async def _read_apart(
        self, handler: Handler, attempt: Attempt, scraper: Scraper, response: Response, page: Page
    ) -> Collected | HandlerFailure:
        """In a process that can be killed. What it answers is data, and nothing of it is believed to be more."""
        known = attempt.recollection
        to_hash = known is not None and known.known_digest is None and response.status not in GONE
        read = await self._pool.read(
            PageWork(
                scraper.name, handler.label, page.url, page.status, list(page.headers.items()), page.body,
                SentRequest.of(page.request), page.depth,
                [(hop.url, hop.status, list(hop.headers.items())) for hop in page.history],
                volatile=scraper.volatile if to_hash else None,
                last=known.last_digest if known is not None else None,
                unchanged=known is not None and not to_hash and known.compare(response),
            )
        )  # fmt: skip
        if isinstance(read, HandlerFailure):
            return read
        if known is not None and read.digest is not None:
            known.learn(read.digest)
        if read.failure is not None:
            return read.failure
        if read.refused > 0:
            attempt.refusals[Refusal.NO_URL] += read.refused
        return Collected(read.items, [sent.received() for sent in read.requests])

    def _failed(self, failure: HandlerFailure, attempt: Attempt, scraper: Scraper, classify: Classifier) -> Outcome:
        outcome = failure.outcome(attempt.lease, classify, again=scraper.retry_handler_errors)
        asked_for = failure.kind is FailureKind.RETRY
        if isinstance(outcome, Dead) and outcome.reason.blame is Blame.HANDLER and not asked_for:
            self.halts.failed(attempt.task, failure.name, outcome.reason)
        return outcome

    def _admit(self, scraper: Scraper, attempt: Attempt, requests: list[Request]) -> tuple[NewTask, ...]:
        """The requests that become tasks; those the run is known to have are not even made into one."""
        task = attempt.task
        young, old = self._known_links.of(task.run_id)
        tasks: list[NewTask] = []
        for request in requests:
            url = request.url
            if isinstance(url, str) and (url in young or url in old) and _is_plain(request):
                attempt.duplicates += 1
                continue
            admitted = admit(request, scraper, task.depth, task.extra.group, guarded=task.extra.guarded)
            if isinstance(admitted, Refused):
                attempt.refusals[admitted.kind] += 1
                log.debug(
                    log_events.LINK_REFUSED,
                    scraper=scraper.name,
                    url=cleaned(without_credentials(admitted.url)),
                    reason=admitted.reason,
                )
            else:
                tasks.append(admitted)
        return tuple(sealed_tasks(tasks, self._secrets))

    async def _within_budget(self, attempt: Attempt, tasks: tuple[NewTask, ...]) -> tuple[NewTask, ...]:
        """As many as the job may still have. The rest is refused, and counted."""
        run_id = attempt.task.run_id
        room = await self._budget.room(run_id, len(tasks))
        self._budget.take(run_id, room, attempt.lease.token)
        if room < len(tasks):
            attempt.refusals[Refusal.TOO_MANY] += len(tasks) - room
        return tasks[:room]


def _check_size(items: list[bytes]) -> None:
    """Raises BadScraper if the items of one page are more than one transaction should hold."""
    size = sum(map(len, items))
    if size > MAX_ITEMS:
        raise BadScraper(f"The items of this page have {size:,} bytes together, and {MAX_ITEMS:,} is the limit.")


def _is_plain(request: Request) -> bool:
    return (
        request.dedup
        and request.kind is Kind.PAGE
        and request.method == "GET"
        and request.body is None
        and request.json is None
        and request.form is None
    )


def _is_cancelled() -> bool:
    """Whether it is we who are to end, and not something that a handler waited for."""
    current = asyncio.current_task()
    return current is None or current.cancelling() > 0
