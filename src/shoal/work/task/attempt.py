"""One attempt at a task, while its lease is held: where redirects have led, and what is to be counted when settled."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from enum import StrEnum
from typing import NamedTuple, TypeGuard

import msgspec

from shoal.api.request import Request
from shoal.api.scraper import Scraper
from shoal.core.clock import Millis, Moment
from shoal.core.notes import Entry
from shoal.core.outcome import Blame, Dead, Outcome, Settlement, Snoozed
from shoal.core.task import Extra, Kind, NewTask, accepted_url
from shoal.core.url import NormalURL, site_of
from shoal.delivery.held_lease import HeldLease
from shoal.errors import TooLate
from shoal.fetch.protocol import Fetch, Fetcher, FetchError, Response, Stage
from shoal.frontier.contract.cache import Cache
from shoal.insight.audit import Robots
from shoal.intake.admission import OUTSIDE, Refusal, Refused, may_lead_to, pool_of, to_task
from shoal.work.task.recollection import Recollection
from shoal.work.task.waypoint import (
    Waypoint,
    as_get,
    hop_of,
    read_waypoint,
    turns_to_get,
    waypoint_entry,
    waypoint_key,
)

_OF_ONE_SITE = frozenset({"authorization", "cookie", "proxy-authorization"})
"""Headers that are meant for the site they were written for, and for no other that it redirects to."""


class Made(NamedTuple):
    """A request that was made, as a RequestRecord has it."""

    at: Moment
    slack: Millis
    took: Millis
    status: int
    delay: Millis
    robots: Robots


class Trouble(StrEnum):
    """What stands between a task and its page, and may pass."""

    LIMIT = "limit"
    """A rate limit."""
    NETWORK = "network"
    """Nothing was reached: the site is down, or this worker is offline."""
    SITE = "site"
    """The site is down: whichever page had been asked for, it would not have come."""
    DOUBT = "doubt"
    """The site is down, or this one page fails."""


class Attempt:
    """One task on its way through the web, under one lease. `moved_to`: None = no redirect was followed under it.

    `crawl_delay`: what the site is to be told; None = nothing. `least_delay`: what a route asks for.
    `exits_failed`, `exits_ok`, `pace`: what was learned about ways out and about the site, as a Settlement says it.
    `refusals`: links that were met and will not be followed, by why.
    `recollection`: what is remembered of the page; None = nothing is, nor will be.
    `made`: the requests that are over, for the log. `trouble`: None = none. `entries`: what is to be remembered of it.
    `way`: what the cache has of where leases before have led it. `answers_first`: its last request
    was the first answer to a challenge (401).
    """

    __slots__ = (
        "_origin", "answers_first", "crawl_delay", "duplicates", "entries", "exits_failed", "exits_ok", "extra", "held",
        "lease", "least_delay", "made", "moved_to", "pace", "recollection", "refusals", "task", "trouble", "url", "way",
    )  # fmt: skip

    def __init__(self, held: HeldLease) -> None:
        self.held = held
        self.lease = held.lease
        self.task = task = held.lease.task
        self.url = task.url
        self.extra = task.extra
        self._origin: str | None = None
        self.made: list[Made] = []
        self.moved_to: str | None = None
        self.crawl_delay: Millis | None = None
        self.least_delay: Millis = 0
        self.pace: Millis | None = None
        self.exits_failed: tuple[str, ...] = ()
        self.exits_ok: tuple[str, ...] = ()
        self.recollection: Recollection | None = None
        self.way: Entry | None = None
        self.trouble: Trouble | None = None
        self.entries: tuple[Entry, ...] = ()
        self.refusals: Counter[Refusal] = Counter()
        self.duplicates = 0
        self.answers_first = False

    @property
    def origin(self) -> str:
        """Scheme, host and port of where it is now."""
        if self._origin is None:
            self._origin = _origin(self.url)
        return self._origin

    @property
    def pages_asked(self) -> int:
        """The requests that were made for the page itself."""
        return sum(made.robots is not Robots.FILE for made in self.made)

    async def fetch(self, fetcher: Fetcher, request: Fetch, robots: Robots = Robots.ALLOWED) -> Response:
        """Make one request within the lease, guarded if the task is. Raises TooLate only if none was made."""
        if self.task.extra.guarded:
            request = replace(request, guarded=True)
        held, before = self.held, self.held.starts
        if not before and not held.may_start:  # a connection is not opened either
            raise TooLate
        response: Response | None = None
        try:
            response = await fetcher.fetch(request, held.start)
        except TooLate:
            if held.starts == before:
                raise
            raise FetchError("connection closed before an answer", Blame.HOST) from None
        except FetchError as error:
            asked = error.doubtful or (error.blame is Blame.HOST and error.stage is not Stage.NETWORK)
            if held.starts == before and asked:
                held.try_failed()
            raise
        finally:
            self._note(response, robots)
        return response

    def _note(self, response: Response | None, robots: Robots) -> None:
        """Write down what was sent. Of two that are one request, the first had no answer."""
        starts = self.held.end_request(None if response is None else response.received)
        for start in starts:
            status = response.status if response is not None and start is starts[-1] else 0
            self.made.append(Made(*start, status, self.held.delay, robots))

    async def resume(self, cache: Cache) -> None:
        """Be where leases before this one have led the task, if they have and that is still good."""
        if not self.task.extra.halfway:
            return
        key = waypoint_key(self.task)
        value = (await cache.get([key])).get(key)
        waypoint = read_waypoint(value)
        if value is None or waypoint is None:
            return
        self.way = waypoint_entry(self.task, waypoint)
        self._arrive(waypoint)

    def move(self, url: str, response: Response) -> None:
        """Go on at the address to which an answer leads, with the method and body that go there."""
        turned = turns_to_get(response.status, self.extra.method)
        history = (*self.extra.history, hop_of(self.url, response.status, response.headers))
        self._arrive(Waypoint(str(url), self.extra.redirects + 1, turned, history))
        self.moved_to = self.url

    def _arrive(self, waypoint: Waypoint) -> None:
        first = self.extra.first_url or self.url
        extra = as_get(self.extra) if waypoint.as_get else self.extra
        self.extra = msgspec.structs.replace(
            extra, redirects=waypoint.redirects, first_url=first, history=waypoint.history
        )
        self.url = waypoint.url
        self._origin = None

    def land(self, url: str) -> None:
        """Be where an answer came from that is used again, whatever way led there then."""
        self.url = url
        self._origin = None

    def again(self, every: Millis, scraper: Scraper) -> NewTask:
        """The task that visits the page again: the one that was asked for, redirects not followed yet."""
        task, extra = self.task, self.task.extra
        url = accepted_url(task.url, extra)
        fresh = msgspec.structs.replace(
            _without_setbacks(extra), redirects=0, first_url=None, history=(), visits=extra.visits + 1
        )
        place = (task.lane, task.handler, task.priority, task.depth)
        return NewTask(url, scraper.site_of(url), None, *place, wait=every, extra=fresh, pool=pool_of(url, scraper))

    def continued(self, scraper: Scraper, came_from: str) -> NewTask | Refused:
        """The task that a redirect from the URL `came_from` to another host leads to, of this site or not: the same
        request, at the same depth.

        It is a duplicate if the run has that page already. But one that comes back to where it began, as by way of a
        login or a consent page, is not a second task: it is the first one, which has not been read yet.
        """
        task, extra = self.task, self.extra
        if extra.kind is Kind.SITEMAP and not may_lead_to(scraper, came_from, NormalURL(self.url)):
            return Refused(self.url, OUTSIDE, Refusal.OUTSIDE)
        headers = {name: value for name, value in (extra.headers or {}).items() if name.lower() not in _OF_ONE_SITE}
        extra = msgspec.structs.replace(extra, headers=headers or None, limits=0, set_back_since=0, halfway=False)
        came_back = task.extra.redirects > 0 and task.url == task.extra.first_url
        request = Request(
            self.url,
            task.handler,
            extra.data,
            extra.group,
            task.priority,
            task.lane,
            method=extra.method,
            headers=extra.headers,
            body=extra.body,
            dedup=not came_back and self.url != extra.first_url,
            kind=extra.kind,
        )
        admitted = to_task(request, scraper, task.depth - 1, extra.group)
        return admitted if isinstance(admitted, Refused) else msgspec.structs.replace(admitted, extra=extra)

    def settlement(self, outcome: Outcome) -> Settlement:
        """The end of the lease, with all that was learned."""
        held, kept = self.held, self.recollection
        outcome, way = self._on_the_way(outcome)
        goes_on = _is_given_back(outcome) and (self.moved_to or self.way) is not None
        return Settlement(
            self.task.run_id,
            self.task.id,
            self.lease.token,
            outcome,
            held.started_at,
            held.starts,
            held.received,
            self.refusals.total(),
            self.duplicates,
            self.crawl_delay,
            self.pace,
            self.exits_failed,
            self.exits_ok,
            kept.saved_requests if kept else 0,
            kept.saved_bytes if kept else 0,
            kept.notes if kept else (),
            ((kept.entries + _let_go(kept.flight, goes_on)) if kept else ()) + self.entries + way,
        )

    def _on_the_way(self, outcome: Outcome) -> tuple[Outcome, tuple[Entry, ...]]:
        """The outcome, and what the cache is told. A lease that is given back leads its task on; every other end lets
        go of the way, so that the next attempt begins at the beginning; and if it is dead, of all setbacks, for when it
        is requeued."""
        if _is_given_back(outcome):
            if self.moved_to is None:
                return outcome, ()
            extra = msgspec.structs.replace(outcome.extra or self.task.extra, halfway=True)
            turned = self.extra.method != self.task.extra.method
            waypoint = Waypoint(self.moved_to, self.extra.redirects, turned, self.extra.history)
            return msgspec.structs.replace(outcome, extra=extra), (waypoint_entry(self.task, waypoint),)
        if isinstance(outcome, Dead) and (extra := _without_setbacks(self.task.extra)) != self.task.extra:
            outcome = msgspec.structs.replace(outcome, extra=extra)
        return outcome, () if self.way is None else (msgspec.structs.replace(self.way, ttl=0),)

    def given_back(self) -> Settlement:
        """The end of the lease where the attempt was cut short: only its requests count."""
        flight = None if self.recollection is None else self.recollection.flight
        return self.held.settlement(Snoozed(), entries=_let_go(flight, self.way is not None))


def _is_given_back(outcome: Outcome) -> TypeGuard[Snoozed]:
    return isinstance(outcome, Snoozed) and not outcome.wait and not outcome.aside


def _without_setbacks(extra: Extra) -> Extra:
    """As it was before its first attempt."""
    return msgspec.structs.replace(extra, detours=(), limits=0, set_back_since=0, halfway=False)


def _let_go(flight: Entry | None, goes_on: bool) -> tuple[Entry, ...]:
    """The end of its flight. Between two steps of a redirect it goes on, with the next lease of the same task."""
    return () if flight is None or goes_on else (msgspec.structs.replace(flight, ttl=0),)


def _origin(url: str) -> str:
    """Scheme, host and port of a normalised URL, without looking at the rest of it."""
    return f"{url[: url.index(':')]}://{site_of(url)}"
