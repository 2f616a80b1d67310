"""One task from lease to outcome: robots, fetch, redirects, handler."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping

import msgspec
import structlog

from shoal.clock import Clock, Millis
from shoal.errors import BadScraper, BadURL, Drop, Retry
from shoal.fetch.protocol import Fetch, Fetcher, FetchError, Response, TooLate
from shoal.fetch.robots import KEPT_WITHOUT_ANSWER, RobotsBook, RobotsRules, origin_of, robots_url
from shoal.handler import where
from shoal.intake.admission import Refused, to_request, to_task
from shoal.outcome import Blame, Dead, Done, Dropped, Outcome, Reason, Retried, Settlement, Snoozed
from shoal.page import Page
from shoal.presence import Notebook
from shoal.request import Request
from shoal.scraper import Scraper
from shoal.task import Extra, Kind, NewTask, Task
from shoal.url import NormalURL, join, same_site
from shoal.work.held import HeldLease, NeedsAnotherLease
from shoal.work.recent import RecentLinks
from shoal.work.verdict import REDIRECTS, Judge
from shoal.yields import collect

MOST_REDIRECTS = 10
ROBOTS_MAX_BYTES = 1024 * 1024

log = structlog.get_logger("shoal")


class Executor:
    """Turns leases into settlements. Raises nothing but cancellation: whatever goes wrong is an outcome."""

    def __init__(
        self,
        scrapers: Mapping[str, Scraper],
        fetcher: Fetcher,
        robots: RobotsBook,
        notebook: Notebook,
        clock: Clock,
        chance: random.Random,
    ) -> None:
        self._scrapers = scrapers
        self._fetcher = fetcher
        self._robots = robots
        self._notebook = notebook
        self._clock = clock
        self._judges = {name: Judge(scraper.retries, chance) for name, scraper in scrapers.items()}
        self._asking: dict[str, asyncio.Lock] = {}
        self.recent = RecentLinks()

    async def execute(self, held: HeldLease) -> Settlement:
        """Do what the lease is for, and say how it ended."""
        task = held.lease.task
        visit = _Visit(task)
        try:
            outcome = await self._outcome(held, visit)
        except TooLate:
            outcome = Snoozed()
        except NeedsAnotherLease:
            outcome = Snoozed(url=visit.moved_to, extra=visit.extra if visit.moved_to else None)
        except FetchError as error:
            outcome = self._judges[task.scraper].no_answer(held.lease, error, visit.doing)
        self._report(task, outcome)
        return settlement(held, outcome, visit)

    async def _outcome(self, held: HeldLease, visit: _Visit) -> Outcome:
        scraper = self._scrapers[held.lease.task.scraper]
        while True:
            if scraper.obey_robots and (refusal := await self._refused_by_robots(held, visit)) is not None:
                return refusal
            await held.next_start()
            response = await self._fetch(held, scraper, visit)
            if response.status not in REDIRECTS or "Location" not in response.headers:
                break
            end = self._follow(scraper, visit, held.lease.task, response)
            if end is not None:
                return end
        judge = self._judges[scraper.name]
        outcome = judge.answer(held.lease, response.status, response.headers, self._clock.now())
        return await self._handle(held, scraper, visit, response) if outcome is None else outcome

    # Robots

    async def _refused_by_robots(self, held: HeldLease, visit: _Visit) -> Outcome | None:
        rules = self._robots.remembered(visit.origin)
        if rules is None:
            rules = await self._learn_robots(held, visit)
        if rules.allowed(visit.url):
            return None
        if rules.unavailable:
            reason = Reason(Blame.HOST, "robots.txt could not be had (server error)")
            judge = self._judges[held.lease.task.scraper]
            return judge.failure(held.lease, reason, wait=KEPT_WITHOUT_ANSWER)
        return Dropped(Reason(Blame.POLICY, "disallowed by robots.txt"))

    async def _learn_robots(self, held: HeldLease, visit: _Visit) -> RobotsRules:
        """Rules that this process does not know: from the shared cache, or from the site itself, asked once."""
        origin = visit.origin
        lock = self._asking.setdefault(origin, asyncio.Lock())
        async with lock:
            rules = await self._robots.known(origin)
            if rules is None:
                rules = await self._fetch_robots(held, visit, origin)
        self._asking.pop(origin, None)
        if rules.crawl_delay:
            visit.crawl_delay = rules.crawl_delay
        return rules

    async def _fetch_robots(self, held: HeldLease, visit: _Visit, origin: str) -> RobotsRules:
        """One request like any other. Redirects are followed within the lease as far as it allows that."""
        visit.doing = "robots.txt: "
        scraper = self._scrapers[held.lease.task.scraper]
        url = robots_url(origin)
        for _ in range(6):
            await held.next_start()
            request = Fetch(url, timeout=scraper.timeout, max_bytes=ROBOTS_MAX_BYTES, exit=held.lease.exit)
            response = await self._fetcher.fetch(request, held)
            held.answered(response.received)
            if response.status not in REDIRECTS or "Location" not in response.headers or not held.lease.exclusive:
                break
            try:
                url = join(url, response.headers["Location"])
            except BadURL:
                break
            if not same_site(url, origin):
                break
        visit.doing = ""
        return await self._robots.learn(origin, response.status, response.body)

    # Fetching

    async def _fetch(self, held: HeldLease, scraper: Scraper, visit: _Visit) -> Response:
        extra = visit.extra
        headers = {**scraper.headers, **(extra.headers or {})} if scraper.headers or extra.headers else {}
        request = Fetch(
            visit.url,
            extra.method,
            headers,
            extra.body,
            scraper.timeout,
            scraper.max_bytes,
            held.lease.exit,
            scraper.name,
        )
        response = await self._fetcher.fetch(request, held)
        held.answered(response.received)
        return response

    def _follow(self, scraper: Scraper, visit: _Visit, task: Task, response: Response) -> Outcome | None:
        """One step of a redirect: within the site the visit goes on (None), elsewhere it becomes a task of its own."""
        location = response.headers["Location"]
        try:
            url = join(visit.url, location)
        except BadURL as error:
            return Dead(Reason(Blame.URL, f"redirected to an address that cannot be fetched: {error.reason}"))
        if visit.extra.redirects >= MOST_REDIRECTS:
            return Dead(Reason(Blame.URL, f"more than {MOST_REDIRECTS} redirects"))
        here = visit.url
        visit.move(url, response.status)
        if same_site(here, url):
            if not scraper.allowed(url):
                return Dropped(Reason(Blame.POLICY, f"redirected to {url}, which the scraper does not allow"))
            return None
        elsewhere = _continued(scraper, visit, task)
        if isinstance(elsewhere, Refused):
            return Dropped(Reason(Blame.POLICY, f"redirected to {url}: {elsewhere.reason}"))
        return Done(tasks=(elsewhere,), url=here)

    # The handler

    async def _handle(self, held: HeldLease, scraper: Scraper, visit: _Visit, response: Response) -> Outcome:
        task = held.lease.task
        handler = scraper.handler(task.handler)
        page = Page(
            visit.url,
            response.body,
            status=response.status,
            headers=response.headers,
            request=to_request(task),
            depth=task.depth,
        )
        judge = self._judges[scraper.name]
        with self._notebook.holding(task.id):
            try:
                collected = await collect(handler.function(page), handler, visit.url)
                tasks = self._admit(scraper, visit, task, collected.requests)
            except Retry as signal:
                wait: Millis | None = None if signal.after is None else max(0, round(signal.after * 1000))
                return judge.failure(held.lease, Reason(Blame.HANDLER, signal.reason), wait=wait)
            except Drop as signal:
                return Dropped(Reason(Blame.HANDLER, signal.reason))
            except BadScraper as error:
                return Dead(Reason(Blame.HANDLER, str(error), where(error, handler)))
            except Exception as error:  # noqa: BLE001 - the user's code may raise anything; it is reported, not hidden
                text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
                return judge.failure(held.lease, Reason(Blame.HANDLER, text, where(error, handler)))
        visit.refused += len(page.refused)
        return Done(tuple(collected.items), tasks, visit.url, task.extra.group)

    def _admit(self, scraper: Scraper, visit: _Visit, task: Task, requests: list[Request]) -> tuple[NewTask, ...]:
        """The requests that become tasks; those the run is known to have are not even made into one."""
        young, old = self.recent.of(task.run_id)
        tasks: list[NewTask] = []
        for request in requests:
            url = request.url
            if type(url) is NormalURL and (url in young or url in old) and _is_plain(request):
                visit.duplicates += 1
                continue
            admitted = to_task(request, scraper, task.depth, task.extra.group)
            if isinstance(admitted, Refused):
                visit.refused += 1
                log.debug("link refused", scraper=scraper.name, url=admitted.url, reason=admitted.reason)
            else:
                tasks.append(admitted)
        return tuple(tasks)

    def _report(self, task: Task, outcome: Outcome) -> None:
        """A line for everything that a user would want to know about."""
        about = {"scraper": task.scraper, "url": task.url, "handler": task.handler or "(default)"}
        match outcome:
            case Dead(reason=reason):
                log.warning("dead letter", **about, reason=reason.text, where=reason.detail, blame=reason.blame.value)
            case Retried(wait=wait, reason=reason):
                attempt = f"{task.attempts + 1}"
                seconds = round(wait / 1000, 1)
                log.warning(
                    "will retry", **about, reason=reason.text, where=reason.detail, attempt=attempt, seconds=seconds
                )
            case Snoozed(wait=wait, reason=Reason(text=text)) if wait:
                log.warning("backing off", site=task.site, url=task.url, reason=text, seconds=round(wait / 1000, 1))
            case Dropped(reason=reason):
                log.info("dropped", **about, reason=reason.text)
            case _:
                pass


class _Visit:
    """What happens while a lease is held: where the redirects have led, and what is to be counted."""

    __slots__ = ("crawl_delay", "doing", "duplicates", "extra", "moved_to", "origin", "refused", "url")

    def __init__(self, task: Task) -> None:
        self.url = task.url
        self.extra = task.extra
        self.origin = origin_of(task.url)
        self.moved_to: str | None = None
        self.crawl_delay: Millis | None = None
        self.doing = ""
        self.refused = 0
        self.duplicates = 0

    def move(self, url: str, status: int) -> None:
        """Go on at another address. 307 and 308 keep method and body; the others make it a GET, as browsers do."""
        keeps = status in (307, 308) or self.extra.method in ("GET", "HEAD")
        changes: dict[str, object] = {} if keeps else {"method": "GET", "body": None}
        first = self.extra.first_url or self.url
        self.extra = msgspec.structs.replace(self.extra, redirects=self.extra.redirects + 1, first_url=first, **changes)
        self.url = self.moved_to = str(url)
        self.origin = origin_of(url)


def settlement(held: HeldLease, outcome: Outcome, visit: _Visit | None = None) -> Settlement:
    """The end of a held lease. Without a visit: it is given back."""
    task = held.lease.task
    return Settlement(
        task.run_id,
        task.id,
        held.lease.token,
        outcome,
        held.started_at,
        held.starts,
        held.received,
        visit.refused if visit else 0,
        visit.duplicates if visit else 0,
        visit.crawl_delay if visit else None,
    )


def _is_plain(request: Request) -> bool:
    return request.dedup and request.kind is Kind.PAGE and request.method == "GET" and request.body is None


def _continued(scraper: Scraper, visit: _Visit, task: Task) -> NewTask | Refused:
    """The task that a redirect to another site leads to: the same request, at the same depth."""
    extra: Extra = visit.extra
    request = Request(
        visit.url,
        task.handler,
        extra.data,
        extra.group,
        task.priority,
        task.lane,
        method=extra.method,
        headers=extra.headers,
        body=extra.body,
        kind=extra.kind,
    )
    admitted = to_task(request, scraper, task.depth - 1, extra.group)
    return admitted if isinstance(admitted, Refused) else msgspec.structs.replace(admitted, extra=extra)
