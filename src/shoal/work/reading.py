"""A page in the hands of its handler: what that gives becomes the outcome, whatever it is."""

from __future__ import annotations

import asyncio
import math

import structlog

from shoal.clock import Clock, Millis, millis
from shoal.errors import BadScraper, Drop, Retry
from shoal.fetch.protocol import Response
from shoal.handler import Handler, where
from shoal.intake.admission import Refused, to_request, to_task
from shoal.outcome import Blame, Dead, Done, Dropped, Outcome
from shoal.page import Page
from shoal.presence import Notebook
from shoal.request import Request
from shoal.scraper import Scraper
from shoal.task import Kind, Lease, NewTask
from shoal.url import NormalURL
from shoal.work.recent import RecentLinks
from shoal.work.turns import Turns
from shoal.work.verdict import Judge, because, readable
from shoal.work.visit import Visit
from shoal.yields import collect

LONGEST_RETRY: Millis = 366 * 24 * 3600 * 1000
"""A handler that asks to be tried again later than this is tried again then."""

log = structlog.get_logger("shoal")


class Reading:
    """Runs handlers. What a handler raises is an outcome; only KeyboardInterrupt and our own cancellation come through.

    Tasks are noted in the notebook while their handler runs, so that a sudden death is charged to them.
    """

    def __init__(self, notebook: Notebook, recent: RecentLinks, clock: Clock) -> None:
        self._notebook = notebook
        self._recent = recent
        self._turns = Turns(clock)

    async def read(
        self, lease: Lease, scraper: Scraper, handler: Handler, visit: Visit, response: Response, judge: Judge
    ) -> Outcome:
        """Hand the page to the handler, and sort what comes back."""
        task = lease.task
        page = Page(
            visit.url,
            response.body,
            status=response.status,
            headers=response.headers,
            request=to_request(task),
            depth=task.depth,
        )
        if visit.recollection is not None:
            page.unchanged = visit.recollection.compare(response)
        began = await self._turns.begin()
        with self._notebook.holding(task.id):
            try:
                collected = await collect(handler.function(page), handler, visit.url)
                tasks = self._admit(scraper, visit, collected.requests)
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                if isinstance(error, asyncio.CancelledError) and _is_cancelled():
                    raise
                return _failed(error, lease, handler, judge)
            finally:
                self._turns.end(began)
        visit.refused += len(page.refused)
        return Done(tuple(collected.items), tasks, visit.url, task.extra.group)

    def _admit(self, scraper: Scraper, visit: Visit, requests: list[Request]) -> tuple[NewTask, ...]:
        """The requests that become tasks; those the run is known to have are not even made into one."""
        task = visit.task
        young, old = self._recent.of(task.run_id)
        tasks: list[NewTask] = []
        for request in requests:
            url = request.url
            if type(url) is NormalURL and (url in young or url in old) and _is_plain(request):
                visit.duplicates += 1
                continue
            admitted = to_task(request, scraper, task.depth, task.extra.group, guarded=task.extra.guarded)
            if isinstance(admitted, Refused):
                visit.refused += 1
                log.debug("link refused", scraper=scraper.name, url=readable(admitted.url), reason=admitted.reason)
            else:
                tasks.append(admitted)
        return tuple(tasks)


def _is_plain(request: Request) -> bool:
    return request.dedup and request.kind is Kind.PAGE and request.method == "GET" and request.body is None


def _is_cancelled() -> bool:
    """Whether it is we who are to end, and not something that a handler waited for."""
    current = asyncio.current_task()
    return current is None or current.cancelling() > 0


def _failed(error: BaseException, lease: Lease, handler: Handler, judge: Judge) -> Outcome:
    """What a handler raised, as an outcome."""
    match error:
        case Drop():
            return Dropped(because(Blame.HANDLER, error.reason))
        case Retry(after=None):
            return judge.failure(lease, because(Blame.HANDLER, error.reason))
        case Retry(after=int() | float() as after) if not math.isnan(after):
            wait = millis(min(max(after, 0), LONGEST_RETRY / 1000))
            return judge.failure(lease, because(Blame.HANDLER, error.reason), wait=wait)
        case Retry():
            text = f"raised Retry with a {type(error.after).__name__} for `after`, which is a number of seconds"
            return judge.failure(lease, because(Blame.HANDLER, text, where(error, handler)))
        case BadScraper():
            return Dead(because(Blame.HANDLER, error, where(error, handler)))
        case _:
            name, text = type(error).__name__, readable(error)
            told = f"{name}: {text}" if text else name
            return judge.failure(lease, because(Blame.HANDLER, told, where(error, handler)))
