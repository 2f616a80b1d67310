"""Tasks, leases and policies as values: what waits, what is handed out, what a run allows.

Those that come in thousands are kept from the garbage collector (`gc=False`): values are never part of a cycle.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec

from shoal.core.clock import Millis, Moment
from shoal.core.site_key import SiteKeyRules
from shoal.core.url import same_site

DIRECT = "direct"
"""The exit that needs no proxy."""

DEFAULT_POOL = "default"
"""The pool of exits used when a scraper names none."""


class Kind(StrEnum):
    """What a task fetches."""

    PAGE = "page"
    FILE = "file"
    SITEMAP = "sitemap"
    ROBOTS = "robots"
    """The robots.txt of one site that is to be had at another, where a redirect has led."""


class State(StrEnum):
    """Where a task is. The last five are final: every accepted task reaches exactly one of them."""

    WAITING = "waiting"
    LEASED = "leased"
    DONE = "done"
    DEAD = "dead"
    EXPIRED = "expired"
    DROPPED = "dropped"
    CANCELLED = "cancelled"


FINAL = frozenset({State.DONE, State.DEAD, State.EXPIRED, State.DROPPED, State.CANCELLED})

TRANSITIONS: frozenset[tuple[State, State, str]] = frozenset(
    {
        (State.WAITING, State.LEASED, "claim"),
        (State.WAITING, State.EXPIRED, "ttl"),
        (State.WAITING, State.CANCELLED, "cancel"),
        (State.WAITING, State.DONE, "claim in an auto-ack lane"),
        (State.LEASED, State.DONE, "settle done"),
        (State.LEASED, State.WAITING, "settle retry, settle snooze, lease lost"),
        (State.LEASED, State.DEAD, "settle dead, third crash"),
        (State.LEASED, State.DROPPED, "settle drop"),
        (State.LEASED, State.CANCELLED, "settle after cancel"),
        (State.DEAD, State.WAITING, "requeue"),
    }
)
"""The state table: from, to, and what moves it. docs/explanation/state-machine.md draws exactly this."""


class RunState(StrEnum):
    """`open`: still being seeded. `finished`: seeded and nothing is left to do."""

    OPEN = "open"
    RUNNING = "running"
    PAUSED = "paused"
    FINISHED = "finished"
    CANCELLED = "cancelled"


class LanePolicy(msgspec.Struct, frozen=True, omit_defaults=True):
    """How one lane treats its tasks. `ttl`: None = tasks do not expire. `auto_ack`: claiming settles (at most once)."""

    ttl: Millis | None = None
    auto_ack: bool = False


class Policy(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a run asks of the frontier. Stored with the run; all times in milliseconds.

    A site that several runs visit at once keeps the strictest of their rules until its queue is empty.
    """

    delay: Millis = 1000
    """Least time between two request starts of one slot."""
    site_delay: Millis = 0
    """Least time between two request starts of one site over all its exits; 0 = none."""
    concurrency: int = 1
    """Most live leases of one slot."""
    pool: str = DEFAULT_POOL
    """Pool of exits that this run's tasks may leave by."""
    lease: Millis = 300_000
    """How long a lease lives without renewal."""
    hard_timeout: Millis = 60_000
    """By when a request that was started has surely ended."""
    crashes: int = 3
    """A task whose worker died this many times becomes a dead letter."""
    results_ttl: Millis | None = None
    """How long items are kept after the run ended; None = until deleted."""
    lanes: dict[str, LanePolicy] = {}
    limit_exits: int = 3
    """Rate limits on this many exits of one site, each within `limit_window`, are taken for one of the whole site."""
    limit_window: Millis = 60_000
    sites: SiteKeyRules | None = None
    """How URLs are assigned to sites; None = each host is one."""
    max_tasks: int = 0
    """Tasks that the run may have in all; workers refuse links beyond, to about a twentieth of it. 0 = no limit."""


REDIRECTS = frozenset({301, 302, 303, 307, 308})
"""Statuses of answers that lead elsewhere, if they say where."""


class Hop(msgspec.Struct, frozen=True):
    """One redirect that was followed: from where, with which status, and what its answer said (cookies left out)."""

    url: str
    status: int
    headers: Mapping[str, str] = {}


class Extra(msgspec.Struct, frozen=True, omit_defaults=True):
    """The parts of a task that most tasks do not have. The frontier carries them and never looks inside."""

    data: Any = None
    group: str | None = None
    method: str = "GET"
    headers: dict[str, str] | None = None
    body: bytes | None = None
    kind: Kind = Kind.PAGE
    redirects: int = 0
    first_url: str | None = None
    """The URL that was asked for, when redirects have led elsewhere."""
    detours: tuple[str, ...] = ()
    """Exits by which it failed, when it could not be told whether the exit or the target was to blame."""
    guarded: bool = False
    """A web client asked for it, or for the page that led here: it is fetched from public addresses only, wherever."""
    every: Millis | None = None
    """How long after a visit the next one comes; None = as the scraper says."""
    visits: int = 0
    """Visits that went before this one."""
    halfway: bool = False
    """Redirects have led it on under leases before; where to is in the cache, if it still counts."""
    limits: int = 0
    """How often in a row it was rate limited."""
    set_back_since: Moment = 0
    """When its site first failed it, by a rate limit or because it was down; 0 = not yet."""
    timeout: Millis | None = None
    """Most time for its request; None = as the scraper says."""
    accept: tuple[int, ...] | None = None
    """Statuses that are handed to the handler besides 2xx; None = as the handler or the scraper says."""
    follow: bool | None = None
    """Whether redirects are followed; None = as the scraper says."""
    history: tuple[Hop, ...] = ()
    """The redirects to other sites that led here."""


NO_EXTRA = Extra()


def accepted_url(url: str, extra: Extra) -> str:
    """The URL that a task was let in with: not where a redirect within its site has led it since.

    A redirect to another site has made another task, whose first URL is of the site that it came from. Stores that
    answer this themselves (PostgreSQL's `accepted_url`, Redis's `endings.lua`) are held to it by the contract suite.
    """
    first = extra.first_url
    return first if first is not None and same_site(first, url) else url


class NewTask(msgspec.Struct, frozen=True, gc=False):
    """A task on its way into the frontier.

    `key` is what it is deduplicated by within its run (32 bytes, see `frontier.seen`); None = always accepted.
    `wait` counts from the moment of acceptance by the store's clock, `ttl` from the end of that.
    `pool`: the exits that it may leave by; None = those of its run.
    """

    url: str
    site: str
    key: bytes | None
    lane: str = "bulk"
    handler: str | None = None
    priority: int = 0
    depth: int = 0
    wait: Millis = 0
    ttl: Millis | None = None
    extra: Extra = NO_EXTRA
    pool: str | None = None

    @property
    def pooled_lane(self) -> str:
        """Its lane, and its pool where it has one of its own: what engines know the lines of a run by."""
        return self.lane if self.pool is None else pooled_lane(self.lane, self.pool)


def pooled_lane(lane: str, pool: str) -> str:
    """A lane and a pool as one word."""
    return f"{lane}\x1f{pool}"


def lane_and_pool(word: str) -> tuple[str, str | None]:
    """A lane, and the pool that a `pooled_lane` names; None = it names none, so that it is that of the run."""
    lane, mark, pool = word.partition("\x1f")
    return lane, pool if mark else None


class Task(msgspec.Struct, frozen=True, gc=False):
    """A task as a worker gets it. `attempts` counts failures of its own, `crashes` deaths of its workers."""

    id: int
    run_id: str
    scraper: str
    url: str
    site: str
    lane: str
    handler: str | None
    priority: int
    depth: int
    attempts: int
    crashes: int
    extra: Extra


class Lease(msgspec.Struct, frozen=True, gc=False):
    """A task handed to a worker, with the right to make ONE request start in its slot.

    The request must start between `start_at` and `start_by` (store's clock), or the lease be given back.
    `exclusive`: no other lease of this slot or site can be granted before this one is settled, so that the holder may
    make further requests inside it, each at least `delay` after the one before.
    `delay`: the pace that is in force: the run's, the site's robots.txt, or slower where the site was found to suffer.
    `penalty`: how many rate limits in a row the slot has seen. `exit_failures`: how many requests in a row have failed
    because of the exit; only where there were any does the frontier want to hear that it works.
    """

    task: Task
    token: int
    exit: str
    claimed_at: Moment
    start_at: Moment
    start_by: Moment
    expires_at: Moment
    delay: Millis
    exclusive: bool
    penalty: int = 0
    exit_failures: int = 0
