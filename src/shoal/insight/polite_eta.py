"""How long a run must take at least if it stays polite: the site that binds, and for how long. Pure.

A site is visited once per delay by each exit, and once per `site_delay` over all of them. So the tasks that wait for it
say how long it takes, however many workers there are; the site that takes longest decides. What is still to be found
there, and how long answers take, nobody knows: it is the least, not the likely.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from shoal.core.clock import Millis, Moment
from shoal.frontier.contract.reader import SiteRecord


@dataclass(frozen=True, slots=True)
class PoliteETA:
    """`site` binds: its `waiting` tasks take at least `left` from now on, one each `delay` by each of `exits` exits.

    `resting`: the part of it for which the site may not be visited at all. `cause`: why not, where it was said: a rate
    limit, or that it is down.
    """

    site: str
    waiting: int
    left: Millis
    delay: Millis
    exits: int
    resting: Millis = 0
    cause: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """The same as JSON has it; times in seconds."""
        return {
            "seconds": self.left / 1000,
            "site": self.site,
            "waiting": self.waiting,
            "delay": self.delay / 1000,
            "exits": self.exits,
            "resting": self.resting / 1000,
            "cause": self.cause,
        }


def polite_eta(sites: Iterable[SiteRecord], exits: int, now: Moment) -> PoliteETA | None:
    """The least time that what waits for these sites takes. None = no site binds: nothing waits, or without a delay.

    `exits`: so many ways lead out. The first request of each exit need not wait for the delay, only for the clock.
    """
    ways = max(1, exits)
    found = None
    for site in sites:
        if site.waiting <= 0:
            continue
        by_slot = (-(-site.waiting // ways) - 1) * site.delay
        by_site = (site.waiting - 1) * site.site_delay
        resting = max(0, site.next_at - now)
        left = resting + max(by_slot, by_site)
        if left and (found is None or left > found.left):
            found = PoliteETA(site.site, site.waiting, left, max(site.delay, site.site_delay * ways), ways, resting)
    return found
