"""What happens while a lease is held: where redirects have led, and what is to be counted when it is settled."""

from __future__ import annotations

import msgspec

from shoal.clock import Millis
from shoal.intake.admission import Refused, pool_of, to_task
from shoal.kept import Entry
from shoal.outcome import Outcome, Settlement, Snoozed
from shoal.request import Request
from shoal.scraper import Scraper
from shoal.task import NewTask, Task
from shoal.url import site_of
from shoal.work.held import HeldLease
from shoal.work.memory import Recollection, address_of

_OF_ONE_SITE = frozenset({"authorization", "cookie", "proxy-authorization"})
"""Headers that are meant for the site they were written for, and for no other that it redirects to."""


class Visit:
    """One task on its way through the web. `moved_to`: None = no redirect was followed under this lease.

    `crawl_delay`: what the site is to be told; None = nothing. `least_delay`: what a route asks for.
    `exits_failed`, `exits_ok`, `pace`: what was learned about ways out and about the site, as a Settlement says it.
    `recollection`: what is remembered of the page; None = nothing is, nor will be.
    """

    __slots__ = (
        "crawl_delay", "duplicates", "exits_failed", "exits_ok", "extra", "least_delay", "moved_to", "origin", "pace",
        "recollection", "refused", "task", "url",
    )  # fmt: skip

    def __init__(self, task: Task) -> None:
        self.task = task
        self.url = task.url
        self.extra = task.extra
        self.origin = _origin(task.url)
        self.moved_to: str | None = None
        self.crawl_delay: Millis | None = None
        self.least_delay: Millis = 0
        self.pace: Millis | None = None
        self.exits_failed: tuple[str, ...] = ()
        self.exits_ok: tuple[str, ...] = ()
        self.recollection: Recollection | None = None
        self.refused = 0
        self.duplicates = 0

    def move(self, url: str, status: int) -> None:
        """Go on at another address. 307 and 308 keep method and body; the others make it a GET, as browsers do."""
        keeps = status in (307, 308) or self.extra.method in ("GET", "HEAD")
        changes: dict[str, object] = {} if keeps else {"method": "GET", "body": None}
        first = self.extra.first_url or self.url
        self.extra = msgspec.structs.replace(self.extra, redirects=self.extra.redirects + 1, first_url=first, **changes)
        self.url = self.moved_to = str(url)
        self.origin = _origin(url)

    def land(self, url: str) -> None:
        """Be where an answer came from that is used again, whatever way led there then."""
        self.url = url
        self.origin = _origin(url)

    def again(self, every: Millis, scraper: Scraper) -> NewTask:
        """The task that visits the page again: the one that was asked for, redirects not followed yet."""
        task, extra = self.task, self.task.extra
        url = address_of(task)
        fresh = msgspec.structs.replace(extra, redirects=0, first_url=None, detours=(), visits=extra.visits + 1)
        place = (task.lane, task.handler, task.priority, task.depth)
        return NewTask(url, site_of(url), None, *place, wait=every, extra=fresh, pool=pool_of(url, scraper))

    def continued(self, scraper: Scraper) -> NewTask | Refused:
        """The task that a redirect to another site leads to: the same request, at the same depth.

        It is a duplicate if the run has that page already. But one that comes back to where it began, as by way of a
        login or a consent page, is not a second task: it is the first one, which has not been read yet.
        """
        task, extra = self.task, self.extra
        headers = {name: value for name, value in (extra.headers or {}).items() if name.lower() not in _OF_ONE_SITE}
        extra = msgspec.structs.replace(extra, headers=headers or None)
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


def settlement(held: HeldLease, outcome: Outcome, visit: Visit | None = None) -> Settlement:
    """The end of a held lease. Without a visit: it is given back."""
    task = held.lease.task
    kept = visit.recollection if visit else None
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
        visit.pace if visit else None,
        visit.exits_failed if visit else (),
        visit.exits_ok if visit else (),
        kept.saved_requests if kept else 0,
        kept.saved_bytes if kept else 0,
        kept.notes if kept else (),
        (kept.entries if kept else ()) + _let_go(held, outcome),
    )


def _let_go(held: HeldLease, outcome: Outcome) -> tuple[Entry, ...]:
    """The end of its flight. Between two steps of a redirect it goes on, with the next lease of the same task."""
    if held.flight is None:
        return ()
    if isinstance(outcome, Snoozed) and not outcome.wait and (outcome.url or held.lease.task.extra.redirects):
        return ()
    return (msgspec.structs.replace(held.flight, ttl=0),)


def _origin(url: str) -> str:
    """Scheme, host and port of a normalised URL, without looking at the rest of it."""
    return f"{url[: url.index(':')]}://{site_of(url)}"
