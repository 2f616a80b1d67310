"""What robots.txt allows (RFC 9309): remembered here, shared through the engine's cache, fetched by the worker."""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import TYPE_CHECKING

import msgspec
from ada_url import URL
from protego import Protego

from shoal.clock import Clock, Millis, Moment, SystemClock, millis
from shoal.errors import BadURL
from shoal.kept import Entry
from shoal.url import normalise

if TYPE_CHECKING:
    from shoal.frontier.cache import Cache

MAX_BYTES = 500 * 1024
"""What comes after this many bytes of a robots.txt is not read."""

KEPT: Millis = 24 * 3600 * 1000
"""How long an answer is believed."""

KEPT_WITHOUT_ANSWER: Millis = 60 * 1000
"""How long nothing is fetched after a robots.txt could not be had, before it is asked for again."""

LONGEST_CRAWL_DELAY: Millis = KEPT
"""A longer Crawl-delay is read as this one."""

_PLAIN = re.compile(r"https?://[a-z0-9.-]+(?=[/?#]|\Z)")
_BOM = b"\xef\xbb\xbf"


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
    """What one robots.txt says to one user agent. `crawl_delay`: None = it asks for none."""

    __slots__ = ("_agent", "_everything", "_protego", "crawl_delay", "sitemaps", "until")

    def __init__(self, text: str, agent: str, until: Moment, everything: bool | None = None) -> None:
        self.until = until
        self._agent = agent
        self._everything = everything
        self._protego = Protego.parse(text)
        self.sitemaps = tuple(self._protego.sitemaps)
        delay = self._protego.crawl_delay(agent)
        self.crawl_delay: Millis | None = min(millis(min(delay, 1e9)), LONGEST_CRAWL_DELAY) if delay else None

    @property
    def unavailable(self) -> bool:
        """Whether nothing may be fetched only because robots.txt could not be had: it is to be asked for again."""
        return self._everything is False

    def allowed(self, url: str) -> bool:
        """May this URL of the origin be fetched? robots.txt itself always may."""
        if self._everything is None:
            return self._protego.can_fetch(url, self._agent)
        return self._everything or url.partition("?")[0] == robots_url(origin_of(url))

    def names_sitemap(self, url: str) -> bool:
        """Whether this normalised URL is one of the sitemaps that it names: what it names, it lets one fetch."""
        return any(_same(named, url) for named in self.sitemaps)


class _Learned(msgspec.Struct, frozen=True, array_like=True):
    """What the shared cache holds. `everything`: all allowed, none allowed, or None = as `text` says."""

    until: Moment
    everything: bool | None
    text: str


class RobotsBook:
    """The robots.txt rules of many origins, for one user agent.

    At most `capacity` of them are held parsed; those used least recently are forgotten first, and read again from the
    cache when they are needed. Rules whose time is over are not given out.
    """

    def __init__(self, cache: Cache, user_agent: str, *, clock: Clock | None = None, capacity: int = 1000) -> None:
        self._cache = cache
        self._agent = user_agent
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
        stored = (await self._cache.get([_key(origin)])).get(_key(origin))
        if stored is None:
            return None
        try:
            learned = msgspec.msgpack.decode(stored, type=_Learned)
        except msgspec.MsgspecError:  # written by another version: as good as none
            return None
        return self._hold(origin, learned) if learned.until > self._clock.now() else None

    async def learn(self, origin: str, status: int | None, body: bytes) -> RobotsRules:
        """Remember the answer to the request for robots.txt, here and for all workers. Replaces what was known.

        `status` is that after redirects; None = there was no answer. 2xx: the rules are in `body`. A redirect that was
        not followed to its end and 4xx: there are no rules. Everything else: nothing may be fetched for a minute.
        """
        everything, kept, text = _verdict(status, body)
        learned = _Learned(self._clock.now() + kept, everything, text)
        await self._cache.put([Entry(_key(origin), msgspec.msgpack.encode(learned), kept)])
        return self._hold(origin, learned)

    def _hold(self, origin: str, learned: _Learned) -> RobotsRules:
        rules = RobotsRules(learned.text, self._agent, learned.until, learned.everything)
        self._held[origin] = rules
        self._held.move_to_end(origin)
        if len(self._held) > self._capacity:
            self._held.popitem(last=False)
        return rules


def _same(named: str, url: str) -> bool:
    try:
        return named == url or normalise(named) == url
    except BadURL:
        return False


def _key(origin: str) -> str:
    return f"robots:{origin}"


def _verdict(status: int | None, body: bytes) -> tuple[bool | None, Millis, str]:
    if status is not None and 200 <= status < 300:
        return None, KEPT, _readable(body)
    if status is not None and 300 <= status < 500:
        return True, KEPT, ""
    return False, KEPT_WITHOUT_ANSWER, ""


def _readable(body: bytes) -> str:
    if len(body) > MAX_BYTES:
        # Half a line could forbid more than the whole one.
        body = body[:MAX_BYTES].rpartition(b"\n")[0]
    return body.removeprefix(_BOM).decode("utf-8", "replace")
