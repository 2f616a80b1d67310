"""Running a handler on its page: what it gives becomes the outcome, whatever it is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial

import msgspec
import structlog

from shoal.api.handler import Handler
from shoal.api.page import Page
from shoal.api.request import Request
from shoal.api.scraper import Scraper
from shoal.api.yields import collect, collect_at_once
from shoal.core import log_events
from shoal.core.clock import Clock, Millis, millis
from shoal.core.duration import MOST_SECONDS, seconds_from
from shoal.core.outcome import Blame, Dead, Done, Dropped, Outcome, Reason
from shoal.core.storable import MAX_ITEMS, cleaned
from shoal.core.task import Kind, Lease, NewTask
from shoal.core.url import NormalURL
from shoal.delivery.held_lease import HeldLease
from shoal.errors import BadScraper, Drop, Retry
from shoal.fetch.protocol import Response
from shoal.intake.admission import Refusal, Refused, admit, to_request
from shoal.work.process.fair_turns import FairTurns
from shoal.work.process.handler_threads import HandlerThreads
from shoal.work.process.run_halts import RunHalts
from shoal.work.store.known_links import KnownLinks
from shoal.work.store.task_budget import TaskBudget
from shoal.work.task.attempt import Attempt
from shoal.work.task.classify import Classifier, because
from shoal.work.task.failure_report import MOST_BYTES, traceback_of, where
from shoal.work.task.tally import Tally

log = structlog.get_logger("shoal")


class HandlerRunner:
    """Runs handlers. What a handler raises is an outcome; only KeyboardInterrupt and our own cancellation come through.

    `handling`: notes a task while its handler runs, so that a sudden death is charged to it. `halts`: is told how it
    ended. `budget`: how many links jobs may still have.
    """

    def __init__(
        self,
        handling: Callable[[HeldLease], AbstractContextManager[None]],
        known_links: KnownLinks,
        clock: Clock,
        halts: RunHalts,
        tally: Tally,
        budget: TaskBudget,
    ) -> None:
        self.halts = halts
        self._budget = budget
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
            request=to_request(task),
            depth=task.depth,
        )
        if attempt.recollection is not None:
            page.unchanged = attempt.recollection.compare(response)
        began = None if handler.thread else await self._fair_turns.begin()
        with self._handling(attempt.held):
            try:
                if handler.thread:
                    ended = await self._threads.run(partial(collect_at_once, handler, page, attempt.url))
                    if isinstance(ended, BaseException):
                        raise ended  # noqa: TRY301 - what a handler raises is an outcome, wherever it ran
                    collected = ended[0]
                else:
                    collected = await collect(handler.function(page), handler, attempt.url)
                _check_size(collected.items)
                tasks = self._admit(scraper, attempt, collected.requests)
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                if isinstance(error, asyncio.CancelledError) and _is_cancelled():
                    raise
                outcome = _failed(error, attempt.lease, handler, classify, again=scraper.retry_handler_errors)
                if isinstance(outcome, Dead) and not isinstance(error, Retry):
                    self.halts.failed(task, type(error).__name__, outcome.reason)
                return outcome
            finally:
                if began is not None:
                    self._fair_turns.end(began)
        self.halts.read(task.run_id)
        if page.refused:
            attempt.refusals[Refusal.NO_URL] += len(page.refused)
        if tasks and task.extra.guarded:
            tasks = await self._within_budget(attempt, tasks)
        self._tally.read(page, gave=bool(collected.items or collected.requests))
        return Done(tuple(collected.items), tasks, attempt.url, task.extra.group)

    def _admit(self, scraper: Scraper, attempt: Attempt, requests: list[Request]) -> tuple[NewTask, ...]:
        """The requests that become tasks; those the run is known to have are not even made into one."""
        task = attempt.task
        young, old = self._known_links.of(task.run_id)
        tasks: list[NewTask] = []
        for request in requests:
            url = request.url
            if type(url) is NormalURL and (url in young or url in old) and _is_plain(request):
                attempt.duplicates += 1
                continue
            admitted = admit(request, scraper, task.depth, task.extra.group, guarded=task.extra.guarded)
            if isinstance(admitted, Refused):
                attempt.refusals[admitted.kind] += 1
                log.debug(
                    log_events.LINK_REFUSED, scraper=scraper.name, url=cleaned(admitted.url), reason=admitted.reason
                )
            else:
                tasks.append(admitted)
        return tuple(tasks)

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
    return request.dedup and request.kind is Kind.PAGE and request.method == "GET" and request.body is None


def _is_cancelled() -> bool:
    """Whether it is we who are to end, and not something that a handler waited for."""
    current = asyncio.current_task()
    return current is None or current.cancelling() > 0


def _asked_wait(after: object) -> Millis:
    """A number that was worked out may lie in the past or too far away, and means the nearest that can be."""
    if isinstance(after, int | float):
        after = min(max(after, 0.0), MOST_SECONDS) if after == after else None
    return millis(seconds_from(after))


def _failed(
    error: BaseException, lease: Lease, handler: Handler, classify: Classifier, *, again: bool = False
) -> Outcome:
    """What a handler raised, as an outcome. `again`: a mistake is worth another attempt."""
    match error:
        case Drop():
            return Dropped(because(Blame.HANDLER, error.reason))
        case Retry(after=None):
            return classify.failure(lease, because(Blame.HANDLER, error.reason))
        case Retry():
            try:
                wait = _asked_wait(error.after)
            except ValueError as wrong:
                text = f"raised Retry with after={error.after!r}, which must be {wrong}"
                return classify.failure(lease, _reason(text, error, handler), permanent=not again)
            return classify.failure(lease, because(Blame.HANDLER, error.reason), wait=wait)
        case BadScraper():
            return Dead(_reason(str(error), error, handler))
        case _:
            name, text = type(error).__name__, cleaned(error)
            told = f"{name}: {text}" if text else name
            return classify.failure(lease, _reason(told, error, handler), permanent=not again)


def _reason(text: str, error: BaseException, handler: Handler) -> Reason:
    reason = because(Blame.HANDLER, text, where(error, handler))
    traceback = traceback_of(error, handler)
    return reason if traceback is None else msgspec.structs.replace(reason, traceback=cleaned(traceback, MOST_BYTES))
