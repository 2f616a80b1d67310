"""May this page be fetched? What robots.txt says about it, asked for once and under the same lease."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from weakref import WeakValueDictionary

from shoal.audit import Robots
from shoal.clock import Clock
from shoal.errors import BadURL
from shoal.fetch.protocol import Fetch, Fetcher, FetchError, Response, TooLate
from shoal.fetch.robots import KEPT_WITHOUT_ANSWER, RobotsBook, RobotsRules, robots_url
from shoal.outcome import Blame, Dropped, Outcome, Reason, Snoozed
from shoal.scraper import Scraper
from shoal.task import Kind
from shoal.url import join, same_site
from shoal.work.held import HeldLease, NeedsAnotherLease
from shoal.work.verdict import REDIRECTS, Judge, because
from shoal.work.visit import Visit

MAX_BYTES = 8 * 1024 * 1024
"""A robots.txt that is larger cannot be had. Of smaller ones the beginning is read, as RFC 9309 allows."""

MOST_REDIRECTS = 5
MOST_HALFWAY = 1000


class Permission:
    """Holds visits against robots.txt. Of those that want to know about one origin at once, one asks."""

    def __init__(self, fetcher: Fetcher, robots: RobotsBook, clock: Clock) -> None:
        self._fetcher = fetcher
        self._robots = robots
        self._clock = clock
        self._questions: WeakValueDictionary[str, _Question] = WeakValueDictionary()
        self._halfway: OrderedDict[str, tuple[str, int]] = OrderedDict()

    async def refusal(self, held: HeldLease, visit: Visit, scraper: Scraper, judge: Judge) -> Outcome | None:
        """How the visit ends before it began; None = the page may be fetched, at the pace that `held` now has.

        Raises NeedsAnotherLease or TooLate, and EngineError if the shared cache fails.
        """
        rules = self._robots.remembered(visit.origin) or await self._learn(held, visit, scraper, judge)
        if not isinstance(rules, RobotsRules):
            return rules
        if rules.crawl_delay and rules.crawl_delay > held.delay:
            visit.crawl_delay = rules.crawl_delay
        named = visit.extra.kind is Kind.SITEMAP and rules.names_sitemap(visit.url)
        if not named and not rules.allowed(visit.url):
            if rules.unavailable:
                reason = Reason(Blame.HOST, "robots.txt could not be had")
                return judge.failure(held.lease, reason, wait=KEPT_WITHOUT_ANSWER)
            return Dropped(Reason(Blame.POLICY, "disallowed by robots.txt"))
        if visit.crawl_delay is not None and visit.crawl_delay > held.delay:
            if not held.lease.exclusive:
                return Snoozed()  # it was granted at a pace that is too fast; the next one will be right
            held.delay = visit.crawl_delay
        return None

    async def rules(self, held: HeldLease, visit: Visit, scraper: Scraper, judge: Judge) -> RobotsRules | Outcome:
        """What the robots.txt of the visited origin says; or how the visit ends because that cannot be told now."""
        return self._robots.remembered(visit.origin) or await self._learn(held, visit, scraper, judge)

    async def _learn(self, held: HeldLease, visit: Visit, scraper: Scraper, judge: Judge) -> RobotsRules | Outcome:
        """Rules that this process does not know: from the shared cache, or from the site itself."""
        question = self._questions.get(visit.origin)
        if question is None:
            question = self._questions[visit.origin] = _Question()
        async with question.lock:
            if question.limited is not None:
                return question.limited
            rules = await self._robots.known(visit.origin)
            if rules is not None:
                return rules
            answer = await self._ask(held, visit, scraper, judge)
            if isinstance(answer, RobotsRules):
                # Also if it asks for none: what it once asked for is over, then.
                visit.crawl_delay = max(answer.crawl_delay or 0, visit.least_delay)
            elif isinstance(answer, Snoozed):
                question.limited = answer
            return answer

    async def _ask(self, held: HeldLease, visit: Visit, scraper: Scraper, judge: Judge) -> RobotsRules | Outcome:
        """One request like any other. Redirects within the site are followed, under further leases if need be."""
        origin = visit.origin
        url, hops = self._halfway.pop(origin, (robots_url(origin), 0))
        while True:
            try:
                await held.next_start()
                response = await held.fetch(self._fetcher, _request(url, held, scraper), Robots.FILE)
            except (NeedsAnotherLease, TooLate):
                self._remember_way(origin, url, hops)
                raise
            except FetchError as error:
                if error.blame in (Blame.EXIT, Blame.POLICY):
                    raise  # it says nothing about the site, which others may well ask
                await self._robots.learn(origin, None, b"")
                reason = because(error.blame, f"robots.txt: {error.text}")
                return judge.failure(held.lease, reason, wait=KEPT_WITHOUT_ANSWER)
            limited = judge.rate_limit(held.lease, response.status, response.headers, self._clock.now())
            if limited is not None:
                return limited
            onward = _onward(url, response) if hops < MOST_REDIRECTS else None
            if onward is None:
                return await self._robots.learn(origin, response.status, response.body)
            url, hops = onward, hops + 1

    def _remember_way(self, origin: str, url: str, hops: int) -> None:
        if hops:
            self._halfway[origin] = (url, hops)
            if len(self._halfway) > MOST_HALFWAY:
                self._halfway.popitem(last=False)


class _Question:
    """What is being asked about one origin; it exists while someone wants to know.

    `limited`: the site has answered with a rate limit, which is true for all who wait for the same answer.
    """

    __slots__ = ("__weakref__", "limited", "lock")

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.limited: Snoozed | None = None


def _request(url: str, held: HeldLease, scraper: Scraper) -> Fetch:
    return Fetch(url, timeout=scraper.timeout, max_bytes=MAX_BYTES, exit=held.lease.exit)


def _onward(url: str, response: Response) -> str | None:
    """Where a redirect leads within the site; None = the answer is final."""
    if response.status not in REDIRECTS or "Location" not in response.headers:
        return None
    try:
        target = join(url, response.headers["Location"])
    except BadURL:
        return None
    return target if same_site(target, url) else None
