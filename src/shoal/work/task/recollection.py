"""What is known of one page, and what is to be remembered of this visit: for answers to use again, and for changes.

All of it goes to the store with the settlement that it belongs to: whoever claims the next task of the slot finds it,
and of work that was lost or came too late nothing is remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from shoal.api.scraper import Scraper
from shoal.core.clock import Millis, Moment, millis
from shoal.core.html.content import content_hash, rules_of
from shoal.core.notes import Entry, Note
from shoal.core.outcome import Blame, Dead, Done, Outcome
from shoal.core.task import Extra, Task, accepted_url
from shoal.fetch.protocol import Response
from shoal.fetch.stored_answer import StoredAnswer, decoded, encoded, identity, keep, may_be_kept
from shoal.frontier.contract.cache import Cache
from shoal.insight.changes import Change, ChangeKind, note_of

SEEN_KEPT: Millis = 400 * 24 * 3600 * 1000
"""How long after a visit it is known what the page said."""

ANSWER_KEPT: Millis = 7 * 24 * 3600 * 1000
"""How long an answer is kept at least that can be asked about with ETag or Last-Modified."""

GONE = frozenset({404, 410})
_CONDITIONS = frozenset({"if-none-match", "if-modified-since", "if-match", "if-unmodified-since", "if-range", "range"})


class Seen(msgspec.Struct, frozen=True, array_like=True):
    """What a page said at its last visit. `digest`: None = it was gone. `rules`: how the hash was made."""

    rules: str
    digest: str | None


_seen = msgspec.msgpack.Decoder(Seen)


class Recollection:
    """What is known of the page of one task, and what is to be remembered of this visit.

    `unchanged`: the page says what it said at the last visit that was settled.
    `flown_by`: who is asking for the page at the moment, so that others may wait for the answer; None = nobody.
    `flight`: what this task holds so that nobody else asks for the same page; None = nothing.
    `notes`, `entries`, `saved_requests`, `saved_bytes`: as of a Settlement.
    """

    __slots__ = (
        "_asked", "_digest", "_fresh", "_has_cookies", "_key", "_known", "_known_before", "_largest", "_last", "_rules",
        "_scraper", "_task", "_unshared", "_url", "_used", "entries", "flight", "flown_by", "notes", "saved_bytes",
        "saved_requests", "unchanged",
    )  # fmt: skip

    def __init__(self, task: Task, scraper: Scraper, largest: int, has_cookies: Callable[[str], bool]) -> None:
        extra = task.extra
        self._task = task
        self._scraper = scraper
        self._largest = largest
        self._has_cookies = has_cookies
        self._url = accepted_url(task.url, task.extra)
        said = [*headers_of(extra, scraper).items(), *_known_as(scraper)]
        self._key = identity(scraper.name, extra.method, self._url, extra.body, said)
        self._rules = rules_of(scraper.volatile)
        self._last: Seen | None = None
        self._known: StoredAnswer | None = None
        self._known_before: Moment | None = None
        self._fresh = False
        self._unshared = False
        self._used = False
        self._asked: dict[str, str] = {}
        self._digest: str | None = None
        self.unchanged = False
        self.flown_by: bytes | None = None
        self.flight: Entry | None = None
        self.notes: tuple[Note, ...] = ()
        self.entries: tuple[Entry, ...] = ()
        self.saved_requests = 0
        self.saved_bytes = 0

    async def look(self, cache: Cache, now: Moment) -> None:
        """Look up what is known now, by the store's clock."""
        shared = () if self._scraper.cache is None else (self.flight_key, self._unshared_key)
        found = await cache.get([self._answer_key, self._seen_key, *shared])
        self.flown_by = found.get(self.flight_key)
        self._unshared = self._unshared_key in found
        seen = found.get(self._seen_key)
        try:
            self._last = None if seen is None else _seen.decode(seen)
        except msgspec.MsgspecError:  # written by another version: as good as none
            self._last = None
        known = decoded(found.get(self._answer_key))
        if self._known_before is None:
            self._known_before = -1 if known is None else known.at
        self._known, self._fresh = None, False
        if known is None or not self._may_be_shared(self._url) or not self._scraper.allowed(known.url):
            return
        self._known = known
        kept = self._scraper.cache
        # A task that failed, or whose handler wants another look, is not answered with what it has seen already.
        new = not self._task.attempts or known.at != self._known_before
        self._fresh = kept is not None and new and abs(now - known.at) < millis(kept)

    @property
    def may_be_brought(self) -> bool:
        """Whether the page has to be asked for, and the answer may be for all who ask the same at this moment."""
        to_share = self._scraper.cache is not None and not self._fresh and not self._unshared
        return to_share and self._may_be_shared(self._url)

    def use(self) -> Response | None:
        """The kept answer, if it is fresh. No request is made for it."""
        if self._known is None or not self._fresh:
            return None
        try:
            response = self._known.response()
        except ValueError:
            return None
        self._used = True
        self.saved_requests, self.saved_bytes = self._known.requests, self._known.received
        return response

    def validators(self, url: str, headers: Mapping[str, str]) -> dict[str, str]:
        """What to send so that a page that has not changed need not be sent again; nothing, if the user does so."""
        self._asked = {}
        own = {name.lower() for name in headers}
        if self._known is not None and self._known.url == url and not own & _CONDITIONS:
            self._asked = self._known.validators
        return self._asked

    def confirmed(self, response: Response) -> Response:
        """The kept answer, if the server says that it is still true; else what the server says."""
        if response.status != 304 or not self._asked or self._known is None:
            return response
        try:
            kept = self._known.response(response.headers, response.received)
        except ValueError:
            return response
        self._used = True
        self.saved_bytes = max(0, self._known.received - response.received)
        return kept

    @property
    def known_digest(self) -> str | None:
        """The hash of the kept answer, if that is what is read; None = the page has to be hashed."""
        return self._known.digest if self._used and self._known and self._known.rules == self._rules else None

    @property
    def last_digest(self) -> str | None:
        """The hash at the last visit, if it was made in the same way; None = there was none."""
        return self._last.digest if self._last is not None and self._last.rules == self._rules else None

    def compare(self, response: Response) -> bool:
        """Whether the page says what it said at its last visit."""
        if response.status in GONE:
            self._digest = None
            self.unchanged = self._last == Seen(self._rules, None)
            return self.unchanged
        digest = self.known_digest
        if digest is None:
            digest = content_hash(response.body, response.headers, self._scraper.volatile)
        return self.learn(digest)

    def learn(self, digest: str) -> bool:
        """The page has this hash. Answers whether it had it at its last visit."""
        self._digest = digest
        self.unchanged = digest == self.last_digest
        return self.unchanged

    def remember(self, response: Response, requests: int, now: Moment) -> None:
        """The page was read: keep what it said, and that it has changed if so. `requests`: how many it took."""
        if response.status in GONE:
            self.miss(response.status, now)
            self._do_not_wait()
            return
        if self._used and not requests and self.unchanged:
            return
        last = self._last
        if last is None or last.digest is None:
            self._note(ChangeKind.NEW, now)
        elif last.rules == self._rules and not self.unchanged:
            self._note(ChangeKind.CHANGED, now)
        self.entries = (self._entry(Seen(self._rules, self._digest)),)
        if requests and self._may_be_shared(response.url) and may_be_kept(response, self._largest):
            stored = keep(response, now, requests, self._rules, self._digest or "")
            if self._used and self._known is not None:  # a 304: what the whole page costs is what it did cost
                stored = msgspec.structs.replace(stored, received=self._known.received, packed=self._known.packed)
            ttl = self._time_to_keep(stored)
            if ttl:
                self.entries += (Entry(self._answer_key, encoded(stored), ttl),)
        elif requests:
            self._do_not_wait()

    def miss(self, status: int, now: Moment) -> None:
        """There is no such page. That is a change only if there was one."""
        if status in GONE and self._last is not None and self._last.digest is not None:
            self._digest = None
            self._note(ChangeKind.GONE, now)
            self.entries = (self._entry(Seen(self._rules, None)),)

    def end_without(self, outcome: Outcome) -> None:
        """There is nothing to read. If the site has said so for good, nobody need wait for it to say so again."""
        if isinstance(outcome, Done) or (isinstance(outcome, Dead) and outcome.reason.blame is Blame.URL):
            self._do_not_wait()

    def _do_not_wait(self) -> None:
        """What is answered here cannot be kept: for a while, those who want it at once each ask for themselves."""
        if self._scraper.cache is not None:
            self.entries += (Entry(self._unshared_key, b"", millis(self._scraper.cache)),)

    def _may_be_shared(self, url: str) -> bool:
        """Whether the answer is for everybody who asks the same of this scraper. What a web client is told whom the
        site knows by a cookie, or has just given one, is for that client alone."""
        extra = self._task.extra
        return extra.method == "GET" and extra.body is None and not (extra.guarded and self._has_cookies(url))

    @property
    def _answer_key(self) -> str:
        """What was fetched without the guard is not shown to those whom it keeps out."""
        return f"{self._task.site} {'guarded' if self._task.extra.guarded else 'answer'}:{self._key}"

    @property
    def flight_key(self) -> str:
        """Where it says who is asking for the answer."""
        return f"{self._answer_key} flight"

    @property
    def _unshared_key(self) -> str:
        return f"{self._answer_key} unshared"

    @property
    def _seen_key(self) -> str:
        return f"{self._task.site} seen:{self._key}"

    def _entry(self, seen: Seen) -> Entry:
        return Entry(self._seen_key, msgspec.msgpack.encode(seen), SEEN_KEPT)

    def _note(self, kind: ChangeKind, now: Moment) -> None:
        change = Change(kind, self._url, now, self._digest, self._task.run_id)
        self.notes = (note_of(self._scraper.name, change),)

    def _time_to_keep(self, stored: StoredAnswer) -> Millis:
        """As long as it may be used, and longer if it can be asked about."""
        cache = 0 if self._scraper.cache is None else millis(self._scraper.cache)
        if not stored.validators:
            return cache
        return max(cache, ANSWER_KEPT, 2 * (every_of(self._task, self._scraper) or 0))


def _known_as(scraper: Scraper) -> list[tuple[str, str]]:
    """Who asks, as far as that decides what is answered."""
    return [(f"auth {origin}", f"{who.user}:{who.password}") for origin, who in scraper.auth.items()]


def headers_of(extra: Extra, scraper: Scraper) -> dict[str, str]:
    """What is sent with a request: its own headers, and those of the scraper that it does not have, however spelled."""
    own = extra.headers or {}
    named = {name.lower() for name in own}
    return {name: value for name, value in scraper.headers.items() if name.lower() not in named} | own


def jar_of(task: Task) -> str:
    """Whose cookies are sent: those of its scraper, or of the run where a web client is behind it."""
    return task.run_id if task.extra.guarded else task.scraper


def every_of(task: Task, scraper: Scraper) -> Millis | None:
    """How long after a visit the next one comes; None = there is none, as for web clients, who wait for the end."""
    if task.extra.guarded:
        return None
    if task.extra.every is not None:
        return task.extra.every
    return None if scraper.every is None else millis(scraper.every)
