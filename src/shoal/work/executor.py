"""One task from lease to outcome: robots, fetch, redirects, handler."""

from __future__ import annotations

import random
from collections.abc import Mapping
from tempfile import SpooledTemporaryFile
from typing import IO

import msgspec
import structlog

from shoal.audit import Robots
from shoal.blocked import LOOKED_AT
from shoal.clock import Clock, Millis, millis
from shoal.errors import BadScraper, BadURL, EngineError
from shoal.fetch.protocol import Fetch, Fetcher, FetchError, Response, TooLate
from shoal.fetch.robots import RobotsRules, robots_url
from shoal.handler import Handler
from shoal.intake.admission import Refused
from shoal.intake.sitemap_file import MOST_BYTES as LARGEST_SITEMAP
from shoal.outcome import Blame, Dead, Done, Dropped, Outcome, Reason, Retried, Settlement, Snoozed
from shoal.presence import Notebook
from shoal.scraper import Scraper
from shoal.task import Kind, Task
from shoal.url import join, same_site, without_credentials
from shoal.webhook import DELIVERIES
from shoal.work.doubts import Doubts
from shoal.work.held import HeldLease, NeedsAnotherLease
from shoal.work.memory import Memory, every_of, jar_of
from shoal.work.pace import Paces
from shoal.work.permission import Permission
from shoal.work.reading import Reading
from shoal.work.recent import RecentLinks
from shoal.work.sitemaps import SitemapReading
from shoal.work.verdict import REDIRECTS, Judge, because
from shoal.work.visit import Visit, settlement

MOST_REDIRECTS = 10

HELD_IN_MEMORY = 2**20
"""Bytes of a sitemap beyond which it goes through a temporary file."""

log = structlog.get_logger("shoal")


class Executor:
    """Turns leases into settlements.

    `revisit`: pages that are to be visited again become tasks again.
    Raises nothing but cancellation, KeyboardInterrupt, and EngineError if the store fails: all else is an outcome.
    """

    def __init__(
        self,
        scrapers: Mapping[str, Scraper],
        fetcher: Fetcher,
        permission: Permission,
        notebook: Notebook,
        clock: Clock,
        chance: random.Random,
        sitemaps: SitemapReading,
        memory: Memory,
        *,
        revisit: bool = True,
    ) -> None:
        self._scrapers = scrapers
        self._fetcher = fetcher
        self._clock = clock
        self._judges = {name: Judge(scraper.retries, chance, scraper.blocked) for name, scraper in scrapers.items()}
        self._permission = permission
        self._sitemaps = sitemaps
        self._memory = memory
        self._revisit = revisit
        self._paces = Paces()
        self._doubts = Doubts()
        self.recent = RecentLinks()
        for scraper in scrapers.values():
            if not scraper.obey_robots and scraper.name != DELIVERIES:  # these are wanted where they go
                log.warning("robots.txt is not asked", scraper=scraper.name, reason="obey_robots=False")
        self._reading = Reading(notebook, self.recent, clock)

    async def execute(self, held: HeldLease) -> Settlement:
        """Do what the lease is for, and say how it ended."""
        task = held.lease.task
        visit: Visit | None = None
        try:
            visit = Visit(task)
            outcome = await self._outcome(held, visit)
        except TooLate:
            outcome = Snoozed()
        except NeedsAnotherLease:
            moved = visit is not None and visit.moved_to is not None
            outcome = Snoozed(url=visit.moved_to, extra=visit.extra) if visit is not None and moved else Snoozed()
        except FetchError as error:
            outcome = self._judges[task.scraper].no_answer(held.lease, self._doubts.resolve(held.lease, error), visit)
            if visit is not None and error.blame is Blame.HOST and self._scrapers[task.scraper].adaptive:
                self._pace(held, visit, self._scrapers[task.scraper], None)
        except EngineError:
            raise
        except Exception as error:
            # A mistake of ours must not take the worker and all its other tasks along.
            log.exception("this should not have happened", scraper=task.scraper, url=without_credentials(task.url))
            reason = because(Blame.WORKER, f"internal error: {type(error).__name__}: {error}")
            outcome = self._judges[task.scraper].failure(held.lease, reason)
        outcome = self._patiently(task, outcome)
        _report(task, outcome)
        return settlement(held, outcome, visit)

    def _patiently(self, task: Task, outcome: Outcome) -> Outcome:
        """A page that was visited before is not given up because its site fails at one visit: the next one tells."""
        if isinstance(outcome, Dead) and outcome.reason.blame is Blame.HOST and task.extra.visits and self._revisit:
            every = every_of(task, self._scrapers[task.scraper])
            return outcome if every is None else Retried(every, outcome.reason)
        return outcome

    async def _outcome(self, held: HeldLease, visit: Visit) -> Outcome:
        task = held.lease.task
        scraper, judge = self._scrapers[task.scraper], self._judges[task.scraper]
        try:
            handler = scraper.handler(task.handler)
        except BadScraper as error:  # the code has changed since the task was enqueued
            return Dead(because(Blame.HANDLER, error))
        visit.recollection = await self._memory.recall(held, scraper)
        remembered = visit.recollection and visit.recollection.use()
        if remembered:
            visit.land(remembered.url)
            return await self._read(held, visit, scraper, handler, remembered, judge)
        if scraper.routes is not None and not _paced(held, visit, scraper.routes.delay_of(task.site)):
            return Snoozed()
        if task.extra.kind is Kind.ROBOTS:
            return await self._permission.run_errand(held, visit, scraper, judge)
        if task.extra.kind is Kind.SITEMAP:
            return await self._sitemap(held, visit, scraper, judge)
        answer = await self._answer(held, visit, scraper, judge)
        if not isinstance(answer, Response):
            if visit.recollection is not None:
                visit.recollection.end_without(answer)
            return answer
        return await self._read(held, visit, scraper, handler, answer, judge)

    async def _read(
        self, held: HeldLease, visit: Visit, scraper: Scraper, handler: Handler, answer: Response, judge: Judge
    ) -> Outcome:
        """Have a page read. If that went well it is remembered, where pages are, and visited again, if it is to be."""
        outcome = await self._reading.read(held.lease, scraper, handler, visit, answer, judge)
        if isinstance(outcome, Done):
            if visit.recollection is not None:
                visit.recollection.remember(answer, held.pages_asked, held.now)
            outcome = self._again(visit, scraper, outcome)
        return outcome

    def _again(self, visit: Visit, scraper: Scraper, done: Done) -> Done:
        every = every_of(visit.task, scraper) if self._revisit else None
        return (
            done if every is None else msgspec.structs.replace(done, tasks=(*done.tasks, visit.again(every, scraper)))
        )

    async def _answer(
        self, held: HeldLease, visit: Visit, scraper: Scraper, judge: Judge, spool: IO[bytes] | None = None
    ) -> Response | Outcome:
        """The answer that is to be read, after redirects; or how the task ends without one."""
        while True:
            if scraper.obey_robots:
                refusal = await self._permission.refusal(held, visit, scraper, judge)
                if refusal is not None:
                    return refusal
            await held.next_start()
            asked_at = self._clock.elapsed()
            robots = self._permission.witnessed(visit) if scraper.obey_robots else Robots.IGNORED
            response = await held.fetch(self._fetcher, _request(visit, held, scraper, spool), robots)
            if visit.recollection is not None:
                response = visit.recollection.confirmed(response)
            if response.status not in REDIRECTS or "Location" not in response.headers:
                break
            end = _follow(scraper, visit, response)
            if end is not None:
                return end
        outcome = judge.answer(held.lease, response.status, response.headers, self._clock.now())
        if not isinstance(outcome, Snoozed):
            outcome = judge.looks_blocked(held.lease, _beginning(response, spool)) or outcome
        if isinstance(outcome, Dead) and visit.recollection is not None:
            visit.recollection.miss(response.status, held.now)
        self._doubts.answered(held.lease)
        _learn_of_exits(held, visit)
        if scraper.adaptive:
            took = None if response.status >= 500 else self._clock.elapsed() - asked_at
            self._pace(held, visit, scraper, took)
        return outcome or response

    async def _sitemap(self, held: HeldLease, visit: Visit, scraper: Scraper, judge: Judge) -> Outcome:
        if visit.url == robots_url(visit.origin):
            rules = await self._permission.rules(held, visit, scraper, judge)
            if not isinstance(rules, RobotsRules):
                return rules
            return await self._sitemaps.read_robots(scraper, visit, rules)
        with SpooledTemporaryFile(max_size=HELD_IN_MEMORY) as body:
            answer = await self._answer(held, visit, scraper, judge, body)
            if not isinstance(answer, Response):
                return answer
            outcome = await self._sitemaps.read(scraper, visit, body)
            return self._again(visit, scraper, outcome) if isinstance(outcome, Done) else outcome

    def _pace(self, held: HeldLease, visit: Visit, scraper: Scraper, took: float | None) -> None:
        asked_for = max(millis(scraper.delay), visit.crawl_delay or 0)
        visit.pace = self._paces.advise(held.lease.task.site, asked_for, held.lease.delay, took)


def _beginning(response: Response, spool: IO[bytes] | None) -> bytes:
    if spool is None:
        return response.body
    spool.seek(0)
    return spool.read(LOOKED_AT)


def _learn_of_exits(held: HeldLease, visit: Visit) -> None:
    """There was an answer: this exit works, if that was in question, and those that failed before were to blame."""
    if held.lease.exit_failures:
        visit.exits_ok = (held.lease.exit,)
    if visit.task.extra.detours and visit.task.attempts == 0:
        visit.exits_failed = tuple(sorted({*visit.task.extra.detours} - {held.lease.exit}))


def _paced(held: HeldLease, visit: Visit, delay: Millis | None) -> bool:
    """Take on the delay that a route asks for. False = the lease was granted at a faster pace, together with others: it
    is given back, and the next one will be right."""
    visit.least_delay = delay or 0
    if visit.least_delay <= held.delay:
        return True
    visit.crawl_delay = delay
    if not held.lease.exclusive:
        return False
    held.delay = visit.least_delay
    return True


def _request(visit: Visit, held: HeldLease, scraper: Scraper, spool: IO[bytes] | None) -> Fetch:
    extra = visit.extra
    headers = {**scraper.headers, **(extra.headers or {})} if scraper.headers or extra.headers else {}
    if visit.recollection is not None:
        headers |= visit.recollection.validators(visit.url, headers)
    return Fetch(
        visit.url,
        extra.method,
        headers,
        extra.body,
        scraper.timeout,
        scraper.max_bytes if spool is None else LARGEST_SITEMAP,
        held.lease.exit,
        jar_of(visit.task),
        spool,
    )


def _follow(scraper: Scraper, visit: Visit, response: Response) -> Outcome | None:
    """One step of a redirect: within the site the visit goes on (None), elsewhere it becomes a task of its own."""
    here = visit.url
    try:
        url = join(here, response.headers["Location"])
    except BadURL as error:
        return Dead(because(Blame.URL, f"redirected to an address that cannot be fetched: {error.reason}"))
    if visit.extra.redirects >= MOST_REDIRECTS:
        return Dead(Reason(Blame.URL, f"more than {MOST_REDIRECTS} redirects"))
    visit.move(url, response.status)
    if same_site(here, url):
        if visit.extra.kind is Kind.PAGE and not scraper.allowed(url):
            return Dropped(Reason(Blame.POLICY, f"redirected to {url}, which the scraper does not allow"))
        return None
    elsewhere = visit.continued(scraper)
    if isinstance(elsewhere, Refused):
        return Dropped(Reason(Blame.POLICY, f"redirected to {url}: {elsewhere.reason}"))
    return Done(tasks=(elsewhere,), url=here)


def _report(task: Task, outcome: Outcome) -> None:
    """A line for everything that a user would want to know about."""
    if type(outcome) is Done:
        return
    url = without_credentials(task.url)
    about = {"scraper": task.scraper, "url": url, "handler": task.handler or "(default)"}
    match outcome:
        case Dead(reason=reason):
            log.warning("dead letter", **about, reason=reason.text, where=reason.detail, blame=reason.blame.value)
        case Retried(wait=wait, reason=reason):
            attempt, seconds = task.attempts + 1, round(wait / 1000, 1)
            log.warning(
                "will retry", **about, reason=reason.text, where=reason.detail, attempt=attempt, seconds=seconds
            )
        case Snoozed(wait=wait, reason=Reason(text=text)) if wait:
            log.warning("backing off", site=task.site, url=url, reason=text, seconds=round(wait / 1000, 1))
        case Dropped(reason=reason):
            log.info("dropped", **about, reason=reason.text)
        case _:
            pass
