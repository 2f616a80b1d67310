"""What a process knows of the store, so that it need not ask again. It holds as long as nobody else writes."""

from __future__ import annotations

import sqlite3

import msgspec

from shoal.core.clock import Millis
from shoal.core.task import Policy
from shoal.frontier.sqlite.records.seen import SeenLately

REMEMBERED_SITES = 50_000


class SitePolicy(msgspec.Struct, frozen=True, gc=False):
    """What a site asks of those who visit it."""

    delay: Millis
    site_delay: Millis
    concurrency: int
    hard_timeout: Millis
    lease: Millis
    limit_exits: int
    limit_window: Millis

    @classmethod
    def of(cls, policy: Policy) -> SitePolicy:
        return cls(
            policy.delay,
            policy.site_delay,
            policy.concurrency,
            policy.hard_timeout,
            policy.lease,
            policy.limit_exits,
            policy.limit_window,
        )

    @property
    def is_exclusive(self) -> bool:
        """Whether a slot has one lease at a time, which may begin when it likes."""
        return self.concurrency == 1 and not self.site_delay

    def strictest(self, other: SitePolicy) -> SitePolicy:
        """Rules that keep both."""
        return SitePolicy(
            max(self.delay, other.delay),
            max(self.site_delay, other.site_delay),
            min(self.concurrency, other.concurrency),
            max(self.hard_timeout, other.hard_timeout),
            max(self.lease, other.lease),
            min(self.limit_exits, other.limit_exits),
            max(self.limit_window, other.limit_window),
        )


class WriterCache:
    """Belongs to the connection that writes, and is used inside its transactions only.

    `sites`: numbers and rules by key. `seen`: the keys that came in lately. `looked_at`: the last slot that a sweep
    looked at, which is no more than a place to go on from; None = it has not begun.
    """

    def __init__(self, seen: SeenLately | None = None) -> None:
        self.sites: dict[str, tuple[int, SitePolicy]] = {}
        self.seen = seen or SeenLately()
        self.looked_at: tuple[int, str] | None = None
        self._version: int | None = None

    def begin(self, connection: sqlite3.Connection) -> None:
        """A transaction has begun: what others have changed since the last one is no longer known."""
        (version,) = connection.execute("PRAGMA data_version").fetchone()
        if version != self._version:
            self._version = version
            self.sites.clear()
            self.seen.stale = True
        elif len(self.sites) > REMEMBERED_SITES:
            self.sites.clear()

    def forget(self) -> None:
        """Something was undone, and may have been noted here: ask again."""
        self.sites.clear()
        self.seen.forget()
