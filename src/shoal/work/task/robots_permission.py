"""May this page be fetched? What robots.txt says about it, asked for once and under the same lease."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from weakref import WeakValueDictionary

import msgspec

from shoal.api.routes import MOST_PRIORITY
from shoal.api.scraper import Scraper
from shoal.core.clock import Clock
from shoal.core.outcome import Blame, Dead, Done, Dropped, Outcome, Reason, Snoozed
from shoal.core.task import REDIRECTS, Extra, Kind, Lease, NewTask, Task
from shoal.core.url import join, site_of
from shoal.errors import BadURL, NeedsAnotherLease, TooLate, UsageError
from shoal.fetch.protocol import Fetch, Fetcher, FetchError, Response, Stage
from shoal.fetch.robots.cache import RobotsCache, RobotsRules, robots_url
from shoal.fetch.robots.parser import MAX_BYTES
from shoal.frontier.contract.frontier import Frontier
from shoal.insight.audit import Robots
from shoal.intake.admission import pool_of
from shoal.work.options import WorkTiming
from shoal.work.task.attempt import Attempt, Trouble
from shoal.work.task.classify import Classifier, because

MOST_REDIRECTS = 5
"""So many are followed to a robots.txt, also to other sites. One that is further away is taken not to be there."""

MOST_HALFWAY = 1000


class Permission:
    """Holds attempts against robots.txt. Of those that want to know about one origin at once, one asks.

    A redirect to another site becomes an errand: a task in the line of that site, so that its clock is kept too.
    """

    def __init__(
        self, fetcher: Fetcher, robots: RobotsCache, clock: Clock, frontier: Frontier, timing: WorkTiming
    ) -> None:
        self._timing = timing
        self._frontier = frontier
        self._fetcher = fetcher
        self._robots = robots
        self._clock = clock
        self._questions: WeakValueDictionary[str, _Question] = WeakValueDictionary()
        self._halfway: OrderedDict[tuple[str, str], tuple[str, int]] = OrderedDict()

    async def refusal(self, attempt: Attempt, scraper: Scraper, classify: Classifier) -> Outcome | None:
        """How the attempt ends before it began; None = the page may be fetched, at the pace that its lease now has.

        Raises NeedsAnotherLease or TooLate, and EngineError if the shared cache fails.
        """
        rules = self._robots.remembered(attempt.origin) or await self._learn(attempt, scraper, classify)
        if not isinstance(rules, RobotsRules):
            return rules
        if rules.crawl_delay and rules.crawl_delay > attempt.held.delay:
            attempt.crawl_delay = rules.crawl_delay
        if not _allows(rules, attempt):
            if rules.unavailable:
                attempt.trouble = Trouble.SITE
                reason = Reason(Blame.HOST, "robots.txt could not be had")
                return classify.failure(attempt.lease, reason, wait=self._timing.robots_retry)
            return Dropped(Reason(Blame.POLICY, "robots.txt disallows it"))
        if attempt.crawl_delay is not None and attempt.crawl_delay > attempt.held.delay:
            if not attempt.lease.exclusive:
                return Snoozed()  # it was granted at a pace that is too fast; the next one will be right
            attempt.held.delay = attempt.crawl_delay
        return None

    def witnessed(self, attempt: Attempt) -> Robots:
        """What robots.txt says about a request that is made now, for the log: whatever was decided before."""
        rules = self._robots.remembered(attempt.origin)
        return Robots.ALLOWED if rules is None or _allows(rules, attempt) else Robots.DISALLOWED

    async def rules(self, attempt: Attempt, scraper: Scraper, classify: Classifier) -> RobotsRules | Outcome:
        """What the robots.txt of the visited origin says; or how the attempt ends because that cannot be told now."""
        return self._robots.remembered(attempt.origin) or await self._learn(attempt, scraper, classify)

    async def run_errand(self, attempt: Attempt, scraper: Scraper, classify: Classifier) -> Outcome:
        """Fetch the robots.txt of another site, to which a redirect has led."""
        errand = msgspec.convert(attempt.extra.data, _Errand)
        if await self._robots.known(errand.origin) is not None:
            return Done(url=attempt.url)
        answer = await self._ask(attempt, scraper, classify, errand.origin, attempt.url, errand.redirects)
        return Done(url=attempt.url) if isinstance(answer, RobotsRules | _Errand) else answer

    async def _learn(self, attempt: Attempt, scraper: Scraper, classify: Classifier) -> RobotsRules | Outcome:
        """Rules that this process does not know: from the shared cache, or from the site itself."""
        question = self._questions.get(attempt.origin)
        if question is None:
            question = self._questions[attempt.origin] = _Question()
        async with question.lock:
            if question.limited is not None:
                return question.limited
            elsewhere = await self._robots.is_asked_elsewhere(attempt.origin)  # first: it may be back at any moment
            rules = await self._robots.known(attempt.origin)
            if rules is not None:
                return rules
            if elsewhere:
                return self._wait(attempt.lease, "another site")
            answer = await self._ask(attempt, scraper, classify, attempt.origin, robots_url(attempt.origin), 0)
            if isinstance(answer, _Errand):
                answer = self._wait(attempt.lease, site_of(answer.url))
            if isinstance(answer, RobotsRules):
                # Also if it asks for none: what it once asked for is over, then.
                # Where several hosts are one site, the one that asks for the longest decides.
                asked = max(answer.crawl_delay or 0, attempt.least_delay)
                if scraper.sites is None or asked > attempt.held.delay:
                    attempt.crawl_delay = asked
            elif isinstance(answer, Snoozed):
                question.limited = answer
            return answer

    async def _ask(
        self, attempt: Attempt, scraper: Scraper, classify: Classifier, origin: str, url: str, redirects: int
    ) -> RobotsRules | Outcome | _Errand:
        """One request like any other. Redirects within the site are followed, under further leases if need be."""
        task = attempt.lease.task
        url, hops = self._halfway.pop((origin, task.site), (url, redirects))
        while True:
            try:
                await attempt.held.next_start()
                response = await attempt.fetch(self._fetcher, _request(url, attempt, scraper), Robots.FILE)
            except (NeedsAnotherLease, TooLate):
                self._remember_way(origin, task.site, url, hops)
                raise
            except FetchError as error:
                forbidden = error.blame is Blame.POLICY
                if error.blame is Blame.EXIT or (forbidden and not hops):
                    raise  # it says nothing about the site, which others may well ask
                own = task.extra.kind is not Kind.ROBOTS  # an errand is not worth waiting for: another can be sent
                if own and error.blame is Blame.HOST and (error.permanent or error.stage is not Stage.ANSWER):
                    raise _of_robots(error) from error  # its pages would fare the same
                await self._robots.learn(origin, None, b"")
                reason = because(error.blame, f"robots.txt: {error.text}")
                if forbidden:
                    return Dead(reason)
                attempt.trouble = Trouble.SITE if own and error.blame is not Blame.WORKER else None
                return classify.failure(attempt.lease, reason, wait=self._timing.robots_retry)
            limited = classify.rate_limit(attempt.lease, response.status, response.headers, self._clock.now())
            if limited is not None:
                attempt.trouble = Trouble.LIMIT
                return limited
            onward = _onward(url, response) if hops < MOST_REDIRECTS else None
            if onward is None:
                return await self._robots.learn(origin, response.status, response.body)
            url, hops = onward, hops + 1
            if scraper.site_of(url) != task.site:
                return await self._send_for(task, _Errand(origin, url, hops), scraper)

    async def _send_for(self, task: Task, errand: _Errand, scraper: Scraper) -> _Errand | Outcome:
        """Let it be fetched from another site, as the next thing that is asked of that site: many may wait for it."""
        extra = Extra(data=msgspec.to_builtins(errand), kind=Kind.ROBOTS, guarded=task.extra.guarded)
        sent = NewTask(
            errand.url,
            scraper.site_of(errand.url),
            None,
            task.lane,
            task.handler,
            MOST_PRIORITY,
            task.depth,
            extra=extra,
            pool=pool_of(errand.url, scraper),
        )
        await self._robots.ask_elsewhere(errand.origin)  # before, for it may be back at once
        try:
            await self._frontier.enqueue(task.run_id, [sent])
        except UsageError:  # the run takes no more tasks: how this one ends is no longer ours to say
            return Snoozed()
        return errand

    def _wait(self, lease: Lease, where: str) -> Snoozed:
        """The slot waits, though not because of a rate limit: those that it has seen are neither more nor forgotten."""
        reason = Reason(Blame.HOST, f"its robots.txt is fetched from {where}")
        return Snoozed(self._timing.robots_meanwhile, lease.penalty, reason)

    def _remember_way(self, origin: str, site: str, url: str, hops: int) -> None:
        if hops:
            self._halfway[origin, site] = (url, hops)
            if len(self._halfway) > MOST_HALFWAY:
                self._halfway.popitem(last=False)


class _Errand(msgspec.Struct, frozen=True):
    """The robots.txt of `origin` is to be had at `url`, after so many redirects."""

    origin: str
    url: str
    redirects: int


class _Question:
    """What is being asked about one origin; it exists while someone wants to know.

    `limited`: the site has answered with a rate limit, which is true for all who wait for the same answer.
    """

    __slots__ = ("__weakref__", "limited", "lock")

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.limited: Snoozed | None = None


def _allows(rules: RobotsRules, attempt: Attempt) -> bool:
    return rules.allowed(attempt.url) or (attempt.extra.kind is Kind.SITEMAP and rules.names_sitemap(attempt.url))


def _request(url: str, attempt: Attempt, scraper: Scraper) -> Fetch:
    return Fetch(url, timeout=scraper.timeout, max_bytes=MAX_BYTES + 1, exit=attempt.lease.exit, cut=True)


def _of_robots(error: FetchError) -> FetchError:
    text = f"robots.txt: {error.text}"
    return FetchError(text, error.blame, permanent=error.permanent, doubtful=error.doubtful, stage=error.stage)


def _onward(url: str, response: Response) -> str | None:
    """Where a redirect leads; None = the answer is final."""
    if response.status not in REDIRECTS or "Location" not in response.headers:
        return None
    try:
        return join(url, response.headers["Location"])
    except BadURL:
        return None
