"""robots.txt rules (RFC 9309) of many sites: cached here, shared through the engine, fetched by the worker."""

from __future__ import annotations

import re
from collections import OrderedDict
from itertools import chain
from typing import TYPE_CHECKING

import msgspec
from ada_url import URL

from shoal.core.clock import Clock, Millis, Moment, SystemClock, millis
from shoal.core.notes import Entry
from shoal.core.politeness import MAX_CRAWL_DELAY
from shoal.core.url import normalise
from shoal.errors import BadURL
from shoal.fetch.robots.parser import MAX_BYTES, RobotsFile, product_token

if TYPE_CHECKING:
    from shoal.frontier.contract.cache import Cache

KEPT: Millis = 24 * 3600 * 1000
"""How long an answer is believed."""

KEPT_WITHOUT_ANSWER: Millis = 60 * 1000
"""How long nothing is fetched after a robots.txt could not be had, before it is asked for again."""

GIVEN_UP_AFTER: Millis = 30 * 24 * 3600 * 1000
"""A robots.txt that could not be had for so long is taken not to be there."""

ASKED_ELSEWHERE: Millis = 300_000
"""How long a robots.txt that is to be had at another site is waited for, before its own site is asked again."""

_PLAIN = re.compile(r"https?://[a-z0-9.-]+(?=[/?#]|\Z)")


def origin_of(url: str) -> str:
    """Scheme, host and port (where it is not the usual one) of an http(s) URL: what one robots.txt speaks for.

    Raises ValueError for what is not a URL.
    """
    plain = _PLAIN.match(url)
    return plain.group() if plain else str(URL(url).origin)


def robots_url(origin: str) -> str:
    """Where the robots.txt of this origin is."""
    return f"{origin}/robots.txt"


class RobotsRules:
    """What one robots.txt says to one crawler. `crawl_delay`: None = it asks for none.

    `everything`: all is allowed, nothing is, or None = as `body` says.
    """

    __slots__ = ("_everything", "_file", "_named", "crawl_delay", "sitemaps", "until")

    def __init__(
        self, body: bytes, token: str, until: Moment, everything: bool | None, max_crawl_delay: Millis
    ) -> None:
        self.until = until
        self._everything = everything
        self._file = RobotsFile(body, token)
        self._named: frozenset[str | None] | None = None
        self.sitemaps = self._file.sitemaps
        delay = self._file.crawl_delay
        self.crawl_delay: Millis | None = min(millis(min(delay, 1e9)), max_crawl_delay) if delay else None

    @property
    def unavailable(self) -> bool:
        """Whether nothing may be fetched only because robots.txt could not be had: it is to be asked for again."""
        return self._everything is False

    def allowed(self, url: str) -> bool:
        """May this normalised URL of the origin be fetched? robots.txt itself always may."""
        target = url[url.index("/", 8) :]
        if self._everything is None:
            return self._file.allows(target)
        return self._everything or target.partition("?")[0] == "/robots.txt"

    def names_sitemap(self, url: str) -> bool:
        """Whether this normalised URL is one of the sitemaps that it names: what it names, it lets one fetch."""
        if self._named is None:
            self._named = frozenset(chain(self.sitemaps, map(_normalised, self.sitemaps)))
        return url in self._named


class _Learned(msgspec.Struct, frozen=True, array_like=True):
    """What the shared cache holds. `everything`: as of RobotsRules. `since`: when it could first not be had.

    `elsewhere`: until then it is being fetched from another site.
    """

    until: Moment
    everything: bool | None
    body: bytes
    since: Moment | None = None
    elsewhere: Moment = 0


class RobotsCache:
    """The robots.txt rules of many origins, for one user agent. `max_crawl_delay`: no site is visited more slowly
    because its robots.txt asks for it.

    At most `capacity` of them are held parsed; those used least recently are forgotten first, and read again from the
    cache when they are needed. Rules whose time is over are not given out.
    """

    def __init__(
        self,
        cache: Cache,
        user_agent: str,
        clock: Clock | None = None,
        max_crawl_delay: Millis = MAX_CRAWL_DELAY,
        kept_without_answer: Millis = KEPT_WITHOUT_ANSWER,
        *,
        capacity: int = 1000,
    ) -> None:
        self._cache = cache
        self._token = product_token(user_agent)
        self._max_crawl_delay = max_crawl_delay
        self._kept_without_answer = kept_without_answer
        self._clock = clock or SystemClock()
        self._capacity = capacity
        self._held: OrderedDict[str, RobotsRules] = OrderedDict()

    def remembered(self, origin: str) -> RobotsRules | None:
        """The rules of this origin if they are at hand in this process; None = ask `known`."""
        rules = self._held.get(origin)
        if rules is None:
            return None
        if rules.until <= self._clock.now():
            del self._held[origin]
            return None
        self._held.move_to_end(origin)
        return rules

    async def known(self, origin: str) -> RobotsRules | None:
        """The rules of this origin, as this or any other worker learned them; None = its robots.txt must be fetched."""
        rules = self.remembered(origin)
        if rules is not None:
            return rules
        learned = await self._stored(origin)
        return self._hold(origin, learned) if learned is not None and learned.until > self._clock.now() else None

    async def learn(self, origin: str, status: int | None, body: bytes) -> RobotsRules:
        """Remember the answer to the request for robots.txt, here and for all workers. Replaces what was known.

        `status` is that after redirects; None = there was no answer. 2xx: the rules are in `body`. A redirect that was
        not followed to its end and 4xx: there are no rules. Everything else: nothing may be fetched for a minute; if
        that is all that was heard for 30 days, there are no rules.
        """
        now = self._clock.now()
        if status is not None and 200 <= status < 300:
            learned, kept = _Learned(now + KEPT, None, body[: MAX_BYTES + 1]), KEPT
        elif status is not None and 300 <= status < 500:
            learned, kept = _Learned(now + KEPT, True, b""), KEPT
        else:
            learned, kept = await self._unreachable(origin, now)
        await self._store(origin, learned, kept)
        return self._hold(origin, learned)

    async def ask_elsewhere(self, origin: str) -> None:
        """A redirect has led to another site, whose turn has to be waited for: let nobody ask again meanwhile."""
        before = await self._stored(origin)
        since = None if before is None else before.since
        awaited = _Learned(0, False, b"", since, self._clock.now() + ASKED_ELSEWHERE)
        await self._store(origin, awaited, ASKED_ELSEWHERE if since is None else GIVEN_UP_AFTER)

    async def is_asked_elsewhere(self, origin: str) -> bool:
        """Whether somebody is on the way to another site for it."""
        learned = await self._stored(origin)
        return learned is not None and learned.elsewhere > self._clock.now()

    async def _unreachable(self, origin: str, now: Moment) -> tuple[_Learned, Millis]:
        """The record is kept for longer than it is believed: it says since when there was no answer."""
        before = await self._stored(origin)
        since = now if before is None or before.since is None else before.since
        given_up = now - since >= GIVEN_UP_AFTER
        learned = _Learned(now + (KEPT if given_up else self._kept_without_answer), given_up, b"", since)
        return learned, GIVEN_UP_AFTER + 2 * KEPT

    async def _store(self, origin: str, learned: _Learned, kept: Millis) -> None:
        await self._cache.put([Entry(_key(origin), msgspec.msgpack.encode(learned), kept)])

    async def _stored(self, origin: str) -> _Learned | None:
        stored = (await self._cache.get([_key(origin)])).get(_key(origin))
        try:
            return None if stored is None else msgspec.msgpack.decode(stored, type=_Learned)
        except msgspec.MsgspecError:  # written by another version: as good as none
            return None

    def _hold(self, origin: str, learned: _Learned) -> RobotsRules:
        rules = RobotsRules(learned.body, self._token, learned.until, learned.everything, self._max_crawl_delay)
        self._held[origin] = rules
        self._held.move_to_end(origin)
        if len(self._held) > self._capacity:
            self._held.popitem(last=False)
        return rules


def _normalised(named: str) -> str | None:
    try:
        return normalise(named)
    except BadURL:
        return None


def _key(origin: str) -> str:
    return f"robots:{origin}"
