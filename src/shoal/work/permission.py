"""May this page be fetched? What robots.txt says about it, asked for once and under the same lease."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from weakref import WeakValueDictionary

import msgspec

from shoal.audit import Robots
from shoal.clock import Clock, Millis
from shoal.errors import BadURL, UsageError
from shoal.fetch.protocol import Fetch, Fetcher, FetchError, Response, TooLate
from shoal.fetch.robots import KEPT_WITHOUT_ANSWER, RobotsBook, RobotsRules, robots_url
from shoal.fetch.robots_file import MAX_BYTES
from shoal.frontier.protocol import Frontier
from shoal.intake.admission import pool_of
from shoal.outcome import Blame, Dead, Done, Dropped, Outcome, Reason, Snoozed
from shoal.routes import MOST_PRIORITY
from shoal.scraper import Scraper
from shoal.task import Extra, Kind, Lease, NewTask, Task
from shoal.url import join, site_of
from shoal.work.held import HeldLease, NeedsAnotherLease
from shoal.work.verdict import REDIRECTS, Judge, because
from shoal.work.visit import Visit

MOST_REDIRECTS = 5
"""So many are followed to a robots.txt, also to other sites. One that is further away is taken not to be there."""

MEANWHILE: Millis = 5000
"""How long a site waits before it looks again whether its robots.txt has come from another site."""

MOST_HALFWAY = 1000


class Permission:
    """Holds visits against robots.txt. Of those that want to know about one origin at once, one asks.

    A redirect to another site becomes an errand: a task in the line of that site, so that its clock is kept too.
    """

    def __init__(self, fetcher: Fetcher, robots: RobotsBook, clock: Clock, frontier: Frontier) -> None:
        self._frontier = frontier
        self._fetcher = fetcher
        self._robots = robots
        self._clock = clock
        self._questions: WeakValueDictionary[str, _Question] = WeakValueDictionary()
        self._halfway: OrderedDict[tuple[str, str], tuple[str, int]] = OrderedDict()

    async def refusal(self, held: HeldLease, visit: Visit, scraper: Scraper, judge: Judge) -> Outcome | None:
        """How the visit ends before it began; None = the page may be fetched, at the pace that `held` now has.

        Raises NeedsAnotherLease or TooLate, and EngineError if the shared cache fails.
        """
        rules = self._robots.remembered(visit.origin) or await self._learn(held, visit, scraper, judge)
        if not isinstance(rules, RobotsRules):
            return rules
        if rules.crawl_delay and rules.crawl_delay > held.delay:
            visit.crawl_delay = rules.crawl_delay
        if not _allows(rules, visit):
            if rules.unavailable:
                reason = Reason(Blame.HOST, "robots.txt could not be had")
                return judge.failure(held.lease, reason, wait=KEPT_WITHOUT_ANSWER)
            return Dropped(Reason(Blame.POLICY, "robots.txt disallows it"))
        if visit.crawl_delay is not None and visit.crawl_delay > held.delay:
            if not held.lease.exclusive:
                return Snoozed()  # it was granted at a pace that is too fast; the next one will be right
            held.delay = visit.crawl_delay
        return None

    def witnessed(self, visit: Visit) -> Robots:
        """What robots.txt says about a request that is made now, for the log: whatever was decided before."""
        rules = self._robots.remembered(visit.origin)
        return Robots.ALLOWED if rules is None or _allows(rules, visit) else Robots.DISALLOWED

    async def rules(self, held: HeldLease, visit: Visit, scraper: Scraper, judge: Judge) -> RobotsRules | Outcome:
        """What the robots.txt of the visited origin says; or how the visit ends because that cannot be told now."""
        return self._robots.remembered(visit.origin) or await self._learn(held, visit, scraper, judge)

    async def run_errand(self, held: HeldLease, visit: Visit, scraper: Scraper, judge: Judge) -> Outcome:
        """Fetch the robots.txt of another site, to which a redirect has led."""
        errand = msgspec.convert(visit.extra.data, _Errand)
        if await self._robots.known(errand.origin) is not None:
            return Done(url=visit.url)
        answer = await self._ask(held, scraper, judge, errand.origin, visit.url, errand.redirects)
        return Done(url=visit.url) if isinstance(answer, RobotsRules | _Errand) else answer

    async def _learn(self, held: HeldLease, visit: Visit, scraper: Scraper, judge: Judge) -> RobotsRules | Outcome:
        """Rules that this process does not know: from the shared cache, or from the site itself."""
        question = self._questions.get(visit.origin)
        if question is None:
            question = self._questions[visit.origin] = _Question()
        async with question.lock:
            if question.limited is not None:
                return question.limited
            elsewhere = await self._robots.is_asked_elsewhere(visit.origin)  # first: it may be back at any moment
            rules = await self._robots.known(visit.origin)
            if rules is not None:
                return rules
            if elsewhere:
                return _wait(held.lease, "another site")
            answer = await self._ask(held, scraper, judge, visit.origin, robots_url(visit.origin), 0)
            if isinstance(answer, _Errand):
                answer = _wait(held.lease, site_of(answer.url))
            if isinstance(answer, RobotsRules):
                # Also if it asks for none: what it once asked for is over, then.
                visit.crawl_delay = max(answer.crawl_delay or 0, visit.least_delay)
            elif isinstance(answer, Snoozed):
                question.limited = answer
            return answer

    async def _ask(
        self, held: HeldLease, scraper: Scraper, judge: Judge, origin: str, url: str, redirects: int
    ) -> RobotsRules | Outcome | _Errand:
        """One request like any other. Redirects within the site are followed, under further leases if need be."""
        task = held.lease.task
        url, hops = self._halfway.pop((origin, task.site), (url, redirects))
        while True:
            try:
                await held.next_start()
                response = await held.fetch(self._fetcher, _request(url, held, scraper), Robots.FILE)
            except (NeedsAnotherLease, TooLate):
                self._remember_way(origin, task.site, url, hops)
                raise
            except FetchError as error:
                forbidden = error.blame is Blame.POLICY
                if error.blame is Blame.EXIT or (forbidden and not hops):
                    raise  # it says nothing about the site, which others may well ask
                await self._robots.learn(origin, None, b"")
                reason = because(error.blame, f"robots.txt: {error.text}")
                if forbidden:
                    return Dead(reason)
                return judge.failure(held.lease, reason, wait=KEPT_WITHOUT_ANSWER)
            limited = judge.rate_limit(held.lease, response.status, response.headers, self._clock.now())
            if limited is not None:
                return limited
            onward = _onward(url, response) if hops < MOST_REDIRECTS else None
            if onward is None:
                return await self._robots.learn(origin, response.status, response.body)
            url, hops = onward, hops + 1
            if site_of(url) != task.site:
                return await self._send_for(task, _Errand(origin, url, hops), pool_of(url, scraper))

    async def _send_for(self, task: Task, errand: _Errand, pool: str | None) -> _Errand | Outcome:
        """Let it be fetched from another site, as the next thing that is asked of that site: many may wait for it."""
        extra = Extra(data=msgspec.to_builtins(errand), kind=Kind.ROBOTS, guarded=task.extra.guarded)
        sent = NewTask(
            errand.url,
            site_of(errand.url),
            None,
            task.lane,
            task.handler,
            MOST_PRIORITY,
            task.depth,
            extra=extra,
            pool=pool,
        )
        await self._robots.ask_elsewhere(errand.origin)  # before, for it may be back at once
        try:
            await self._frontier.enqueue(task.run_id, [sent])
        except UsageError:  # the run takes no more tasks: how this one ends is no longer ours to say
            return Snoozed()
        return errand

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


def _allows(rules: RobotsRules, visit: Visit) -> bool:
    return rules.allowed(visit.url) or (visit.extra.kind is Kind.SITEMAP and rules.names_sitemap(visit.url))


def _request(url: str, held: HeldLease, scraper: Scraper) -> Fetch:
    return Fetch(url, timeout=scraper.timeout, max_bytes=MAX_BYTES + 1, exit=held.lease.exit, cut=True)


def _wait(lease: Lease, where: str) -> Snoozed:
    """The slot waits, though not because of a rate limit: those that it has seen are neither more nor forgotten."""
    return Snoozed(MEANWHILE, lease.penalty, Reason(Blame.HOST, f"its robots.txt is fetched from {where}"))


def _onward(url: str, response: Response) -> str | None:
    """Where a redirect leads; None = the answer is final."""
    if response.status not in REDIRECTS or "Location" not in response.headers:
        return None
    try:
        return join(url, response.headers["Location"])
    except BadURL:
        return None
