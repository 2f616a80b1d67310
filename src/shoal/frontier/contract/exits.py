"""Exits (proxies and other ways out), as the store knows them: who they are, and how well each does.

An exit is named once for all pools that it belongs to, because a site sees one address whatever the pool is called.
Its health is shared by all workers and lives apart from the clocks of its slots:

    healthy --failures in a row reach QUARANTINE_AFTER--> quarantined --time is over--> half open --it works--> healthy
                                                                ^                          |
                                                                +-------- it fails --------+

While it is half open, one lease at a time leaves by it. What fails while it is quarantined was under way before, and
does not count: a burst of failures is one. An exit that the store was never told about is healthy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from shoal.core.clock import Millis, Moment


class NewExit(msgspec.Struct, frozen=True):
    """An exit that workers may use. `address`: a proxy's URL with its credentials, or `source://ADDRESS`.

    `cap`: most live leases at once over all sites; 0 = no limit. `pools`: empty = of no pool.
    """

    name: str
    address: str
    pools: tuple[str, ...]
    cap: int = 0


class ExitRecord(msgspec.Struct, frozen=True):
    """An exit as it stands. `address` and `pools` are empty where only its health is known.

    `bans`: sites that it may not visit now, with the end of that, soonest first, at most 100 of them.
    """

    name: str
    address: str = ""
    pools: tuple[str, ...] = ()
    cap: int = 0
    failures: int = 0
    quarantined_until: Moment = 0
    live: int = 0
    bans: tuple[tuple[str, Moment], ...] = ()


class Exits(Protocol):
    """What is known about exits. Claims and settlements move their health; this is for people and for setting up."""

    async def put(self, exits: Sequence[NewExit]) -> None:
        """Add exits, or change the address, pools and cap of those that exist; their health stays."""
        ...

    async def remove(self, names: Sequence[str]) -> int:
        """Forget exits with their health; the clocks of their slots stay. Answers how many there were."""
        ...

    async def all(self) -> Sequence[ExitRecord]:
        """Every exit that was put or has failed, by name."""
        ...

    async def ban(self, name: str, wait: Millis, site: str | None = None) -> None:
        """Leave by this exit no more for `wait`: to one site (its slot is blocked), or to any. No success ends it."""
        ...

    async def release(self, name: str, site: str | None = None) -> None:
        """Undo bans and quarantine: of one site, or of all of them and of the exit itself. The paces stay.

        Where several exits were limited and the whole site waits, it waits no more, and one request goes first; what
        the other exits were told still counts for them.
        """
        ...

    async def release_site(self, site: str) -> bool:
        """Undo what holds a site back by all its exits: rate limits, bans, and that it was found to be down; and the
        waits of its tasks that were set back by that. The paces stay. False = there is no such site."""
        ...
