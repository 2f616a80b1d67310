"""One task from lease to outcome: robots, fetch, redirects, handler."""

from __future__ import annotations

import random
from collections.abc import Mapping
from tempfile import SpooledTemporaryFile
from typing import IO

import msgspec
import structlog

from shoal.api.blocked import LOOKED_AT
from shoal.api.handler import Handler
from shoal.api.scraper import Scraper
from shoal.api.webhook_signature import DELIVERIES
from shoal.core import log_events
from shoal.core.clock import Clock, Millis, millis
from shoal.core.outcome import Blame, Dead, Done, Dropped, Outcome, Reason, Retried, Settlement, Snoozed
from shoal.core.politeness import MAX_BACKOFF
from shoal.core.secret_box import SecretBox
from shoal.core.task import Kind, Task
from shoal.core.url import join, same_site, site_of, without_credentials
from shoal.errors import (
    BadScraper,
    BadSettings,
    BadURL,
    CannotUnseal,
    EngineError,
    NeedsAnotherLease,
    TooLate,
    Unstorable,
)
from shoal.fetch.protocol import Fetch, Fetcher, FetchError, Response
from shoal.fetch.robots.cache import RobotsRules, robots_url
from shoal.frontier.contract.cache import Cache
from shoal.insight.audit import Robots
from shoal.intake.admission import Refused
from shoal.intake.sitemap_file import MOST_BYTES as LARGEST_SITEMAP
from shoal.work.exits.adaptive_pace import Paces
from shoal.work.exits.exit_blame import ExitBlame
from shoal.work.options import WorkTiming
from shoal.work.task.attempt import Attempt, Trouble
from shoal.work.task.authorization import Authorizations
from shoal.work.task.classify import WORTH_RETRYING, Classifier, because, trouble_of
from shoal.work.task.handler_failure import HandlerStopped
from shoal.work.task.onward import accepts, onward
from shoal.work.task.page_history import PageHistory
from shoal.work.task.read_sitemap import SitemapReading
from shoal.work.task.recollection import every_of, headers_of, jar_of
from shoal.work.task.robots_permission import Permission
from shoal.work.task.run_handler import HandlerRunner
from shoal.work.task.setbacks import Setbacks
from shoal.work.task.tally import Tally

MOST_REDIRECTS = 10

HELD_IN_MEMORY = 2**20
"""Bytes of a sitemap beyond which it goes through a temporary file."""

log = structlog.get_logger("shoal")


class Executor:
    """Turns leases into settlements.

    `revisit`: pages that are to be visited again become tasks again. `tally`: counts why tasks and links were left out.
    Raises nothing but cancellation, KeyboardInterrupt, and EngineError if the store fails: all else is an outcome.
    """

    def __init__(
        self,
        scrapers: Mapping[str, Scraper],
        fetcher: Fetcher,
        permission: Permission,
        handlers: HandlerRunner,
        sitemaps: SitemapReading,
        history: PageHistory,
        cache: Cache,
        setbacks: Setbacks,
        *,
        clock: Clock,
        chance: random.Random,
        timing: WorkTiming,
        tally: Tally,
        revisit: bool = True,
        secrets: SecretBox,
        max_backoff: Millis = MAX_BACKOFF,
    ) -> None:
        self._scrapers = scrapers
        self._fetcher = fetcher
        self._clock = clock
        self._classify = {
            name: Classifier(
                scraper.attempts, chance, scraper.blocked, timing.retry_first, timing.backoff_first, max_backoff
            )
            for name, scraper in scrapers.items()
        }
        self._permission = permission
        self._sitemaps = sitemaps
        self._history = history
        self._cache = cache
        self._setbacks = setbacks
        self._revisit = revisit
        self._secrets = secrets
        self._tally = tally
        self._paces = Paces()
        self._exit_blame = ExitBlame()
        self._authorizations = Authorizations()
        self._handlers = handlers
        for scraper in scrapers.values():
            if not scraper.obey_robots and scraper.name != DELIVERIES:  # these are wanted where they go
                log.warning(log_events.ROBOTS_IGNORED, scraper=scraper.name, reason="obey_robots=False")

    async def execute(self, attempt: Attempt) -> Settlement:
        """Do what its lease is for, and say how it ended."""
        task = attempt.task
        try:
            outcome = await self._weighed(attempt)
        except Unstorable as error:
            outcome = Dead(because(Blame.HANDLER, error))
        except EngineError:
            raise
        except HandlerStopped as error:  # not in its handler: in what the scraper says of pages, or in reading them
            outcome = self._classify[task.scraper].failure(attempt.lease, because(Blame.HANDLER, error))
        except Exception as error:
            # A mistake of ours must not take the worker and all its other tasks along.
            log.exception(log_events.TASK_BROKE, scraper=task.scraper, url=without_credentials(task.url))
            reason = because(Blame.WORKER, f"internal error: {type(error).__name__}: {error}")
            outcome = self._classify[task.scraper].failure(attempt.lease, reason)
        outcome = self._patiently(task, outcome)
        self._tally.ended(outcome, attempt)
        _report(task, outcome)
        return attempt.settlement(outcome)

    async def _weighed(self, attempt: Attempt) -> Outcome:
        """What came of it; and if it was not the page's own doing, what that makes of it."""
        task = attempt.task
        try:
            outcome = await self._outcome(attempt)
        except (TooLate, NeedsAnotherLease):
            outcome = Snoozed()
        except FetchError as error:
            resolved = self._exit_blame.resolve(attempt.lease, error)
            outcome = self._classify[task.scraper].no_answer(attempt, resolved)
            if attempt.exits_failed:
                log.warning(log_events.EXIT_FAILED, exit=attempt.lease.exit, reason=resolved.text)
            attempt.trouble = trouble_of(resolved, outcome)
            if error.blame is Blame.HOST and self._scrapers[task.scraper].adaptive:
                self._pace(attempt, self._scrapers[task.scraper], None)
        except (BadSettings, CannotUnseal) as error:  # this worker does not have the key of a secret
            outcome = self._classify[task.scraper].failure(attempt.lease, because(Blame.WORKER, error))
        return await self._setbacks.weigh(attempt, outcome, self._scrapers[task.scraper])

    def _patiently(self, task: Task, outcome: Outcome) -> Outcome:
        """A page that was visited before is not given up because its site fails at one visit: the next one tells."""
        if isinstance(outcome, Dead) and outcome.reason.blame is Blame.HOST and task.extra.visits and self._revisit:
            every = every_of(task, self._scrapers[task.scraper])
            return outcome if every is None else Retried(every, outcome.reason)
        return outcome

    async def _outcome(self, attempt: Attempt) -> Outcome:
        task = attempt.lease.task
        scraper, classify = self._scrapers[task.scraper], self._classify[task.scraper]
        if self._handlers.halts.is_halted(task.run_id):
            return Snoozed()
        try:
            handler = scraper.handler(task.handler)
        except BadScraper as error:  # the code has changed since the task was enqueued
            reason = because(Blame.HANDLER, error)
            self._handlers.halts.failed(task, "no handler", reason)
            return Dead(reason)
        await attempt.resume(self._cache)
        await self._history.recall(attempt, scraper)
        remembered = attempt.recollection and attempt.recollection.use()
        if remembered:
            attempt.land(remembered.url)
            return await self._read(attempt, scraper, handler, remembered, classify)
        if scraper.routes is not None and not _paced(attempt, scraper.routes.delay_of(site_of(task.url))):
            return Snoozed()
        if task.extra.kind is Kind.ROBOTS:
            return await self._permission.run_errand(attempt, scraper, classify)
        if task.extra.kind is Kind.SITEMAP:
            return await self._sitemap(attempt, scraper, classify)
        answer = await self._answer(attempt, scraper, classify)
        if not isinstance(answer, Response):
            if attempt.recollection is not None:
                attempt.recollection.end_without(answer)
            return answer
        return await self._read(attempt, scraper, handler, answer, classify)

    async def _read(
        self,
        attempt: Attempt,
        scraper: Scraper,
        handler: Handler,
        answer: Response,
        classify: Classifier,
    ) -> Outcome:
        """Have a page read. If that went well it is remembered, where pages are, and visited again, if it is to be."""
        outcome = await self._handlers.run(handler, attempt, scraper, answer, classify)
        if isinstance(outcome, Done):
            if attempt.recollection is not None:
                attempt.recollection.remember(answer, attempt.pages_asked, attempt.held.now)
            outcome = self._again(attempt, scraper, outcome)
        return outcome

    def _again(self, attempt: Attempt, scraper: Scraper, done: Done) -> Done:
        every = every_of(attempt.task, scraper) if self._revisit else None
        return (
            done if every is None else msgspec.structs.replace(done, tasks=(*done.tasks, attempt.again(every, scraper)))
        )

    async def _answer(
        self,
        attempt: Attempt,
        scraper: Scraper,
        classify: Classifier,
        spool: IO[bytes] | None = None,
    ) -> Response | Outcome:
        """The answer that is to be read, after redirects; or how the task ends without one."""
        while True:
            if scraper.obey_robots:
                refusal = await self._permission.refusal(attempt, scraper, classify)
                if refusal is not None:
                    return refusal
            await attempt.held.next_start()
            asked_at = self._clock.elapsed()
            robots = self._permission.witnessed(attempt) if scraper.obey_robots else Robots.IGNORED
            response = await attempt.fetch(self._fetcher, self._request(attempt, scraper, spool), robots)
            if response.status == 401 and self._authorizations.can_answer(attempt, scraper, response):
                continue
            if attempt.recollection is not None:
                response = attempt.recollection.confirmed(response)
            leads_to = onward(scraper, attempt, response)
            if leads_to is None:
                break
            end = _follow(scraper, attempt, response, leads_to)
            if end is not None:
                return end
        outcome = self._meaning(attempt, scraper, classify, response, spool)
        self._exit_blame.answered(attempt.lease)
        _learn_of_exits(attempt)
        if scraper.adaptive:
            took = None if response.status >= 500 else self._clock.elapsed() - asked_at
            self._pace(attempt, scraper, took)
        return outcome or response

    def _meaning(
        self,
        attempt: Attempt,
        scraper: Scraper,
        classify: Classifier,
        response: Response,
        spool: IO[bytes] | None,
    ) -> Outcome | None:
        """How the task ends by the answer itself; None = it is to be read."""
        accepted = response.status >= 300 and accepts(scraper, attempt, response)
        outcome = classify.answer(
            attempt.lease, response.status, response.headers, self._clock.now(), accepted=accepted
        )
        if not isinstance(outcome, Snoozed):
            outcome = classify.looks_blocked(attempt.lease, _beginning(response, spool)) or outcome
        if isinstance(outcome, Snoozed):
            attempt.trouble = Trouble.LIMIT
        elif not accepted and response.status >= 500 and response.status in WORTH_RETRYING:
            attempt.trouble = Trouble.DOUBT
        if isinstance(outcome, Dead) and attempt.recollection is not None:
            attempt.recollection.miss(response.status, attempt.held.now)
        return outcome

    async def _sitemap(self, attempt: Attempt, scraper: Scraper, classify: Classifier) -> Outcome:
        if attempt.url == robots_url(attempt.origin):
            rules = await self._permission.rules(attempt, scraper, classify)
            if not isinstance(rules, RobotsRules):
                return rules
            return await self._sitemaps.read_robots(scraper, attempt, rules)
        with SpooledTemporaryFile(max_size=HELD_IN_MEMORY) as body:
            answer = await self._answer(attempt, scraper, classify, body)
            if not isinstance(answer, Response):
                return answer
            outcome = await self._sitemaps.read(scraper, attempt, body)
            return self._again(attempt, scraper, outcome) if isinstance(outcome, Done) else outcome

    def _request(self, attempt: Attempt, scraper: Scraper, spool: IO[bytes] | None) -> Fetch:
        extra = attempt.extra
        headers = headers_of(extra, scraper) if scraper.headers or extra.headers else {}
        if attempt.recollection is not None:
            headers |= attempt.recollection.validators(attempt.url, headers)
        if extra.headers:
            headers = self._secrets.open_headers(headers)
        if scraper.auth:
            headers |= self._authorizations.header(attempt, scraper, headers)
        return Fetch(
            attempt.url,
            extra.method,
            headers,
            extra.body,
            scraper.timeout if extra.timeout is None else extra.timeout / 1000,
            scraper.max_bytes if spool is None else LARGEST_SITEMAP,
            attempt.lease.exit,
            jar_of(attempt.task),
            spool,
        )

    def _pace(self, attempt: Attempt, scraper: Scraper, took: float | None) -> None:
        asked_for = max(millis(scraper.delay), attempt.crawl_delay or 0)
        attempt.pace = self._paces.advise(attempt.lease.task.site, asked_for, attempt.lease.delay, took)


def _beginning(response: Response, spool: IO[bytes] | None) -> bytes:
    if spool is None:
        return response.body
    spool.seek(0)
    return spool.read(LOOKED_AT)


def _learn_of_exits(attempt: Attempt) -> None:
    """There was an answer: this exit works, if that was in question, and those that failed before were to blame."""
    if attempt.lease.exit_failures:
        attempt.exits_ok = (attempt.lease.exit,)
    if attempt.task.extra.detours and attempt.task.attempts == 0:
        attempt.exits_failed = tuple(sorted({*attempt.task.extra.detours} - {attempt.lease.exit}))


def _paced(attempt: Attempt, delay: Millis | None) -> bool:
    """Take on the delay that a route asks for. False = the lease was granted at a faster pace, together with others: it
    is given back, and the next one will be right."""
    attempt.least_delay = delay or 0
    if attempt.least_delay <= attempt.held.delay:
        return True
    attempt.crawl_delay = delay
    if not attempt.lease.exclusive:
        return False
    attempt.held.delay = attempt.least_delay
    return True


def _follow(scraper: Scraper, attempt: Attempt, response: Response, leads_to: str) -> Outcome | None:
    """One step of a redirect: on the same host the attempt goes on (None), elsewhere it becomes a task of its own."""
    here = attempt.url
    try:
        url = join(here, leads_to)
    except BadURL as error:
        return Dead(because(Blame.URL, f"redirected to an address that cannot be fetched: {error.reason}"))
    if attempt.extra.redirects >= MOST_REDIRECTS:
        return Dead(Reason(Blame.URL, f"more than {MOST_REDIRECTS} redirects"))
    attempt.move(url, response)
    if same_site(here, url):
        if attempt.extra.kind is Kind.PAGE and not scraper.allowed(url):
            return Dropped(
                Reason(Blame.POLICY, f"redirected to {without_credentials(url)}, which the scraper does not allow")
            )
        return None
    elsewhere = attempt.continued(scraper, here)
    if isinstance(elsewhere, Refused):
        return Dropped(Reason(Blame.POLICY, f"redirected to {without_credentials(url)}: {elsewhere.reason}"))
    return Done(tasks=(elsewhere,), url=here)


def _report(task: Task, outcome: Outcome) -> None:
    """A line for everything that a user would want to know about."""
    if type(outcome) is Done:
        return
    url = without_credentials(task.url)
    about = {"scraper": task.scraper, "url": url, "handler": task.handler or "(default)"}
    match outcome:
        case Dead(reason=reason):
            log.warning(
                log_events.TASK_DEAD,
                **about,
                reason=reason.text,
                where=reason.detail,
                blame=reason.blame.value,
                exception=reason.traceback,
            )
        case Retried(wait=wait, reason=reason):
            attempt, seconds = task.attempts + 1, round(wait / 1000, 1)
            log.warning(
                log_events.TASK_RETRIED,
                **about,
                reason=reason.text,
                where=reason.detail,
                attempt=attempt,
                seconds=seconds,
                exception=reason.traceback,
            )
        case Snoozed(wait=wait, reason=Reason(text=text)) if wait:
            log.warning(log_events.TASK_SNOOZED, site=task.site, url=url, reason=text, seconds=round(wait / 1000, 1))
        case Dropped(reason=reason):
            log.info(log_events.TASK_DROPPED, **about, reason=reason.text)
        case _:
            pass
