"""Is it the sites that are away, or this worker? What fails and what is reached goes in, a verdict comes out."""

from __future__ import annotations

import random
from collections import OrderedDict
from enum import StrEnum

from shoal.core.clock import Millis
from shoal.core.politeness import OFFLINE_AFTER, OFFLINE_FIRST, offline_wait

REMEMBERED = 10_000
"""How many sites are remembered to have been out of reach."""


class Reachability(StrEnum):
    """Who is away."""

    SITE = "site"
    WORKER = "worker"
    UNKNOWN = "unknown"
    """One more look will tell."""


class Connectivity:
    """What one worker can reach. `look_at`: when it may look again while it is offline, on its own clock; 0 = it is
    not. Nothing here reads a clock.

    A site that is out of reach alone is away itself. Where several are, one after the other and with none reached
    between them, the worker is: until it reaches one, whatever that answers. With fewer, nobody knows at first; a site
    that is out of reach again is taken to be away.
    """

    def __init__(self, chance: random.Random, first: Millis = OFFLINE_FIRST) -> None:
        self._chance = chance
        self._first = first
        self._turn = 0
        self._reached = 0
        self._missed: OrderedDict[str, int] = OrderedDict()
        self._times = 0
        self.look_at = 0.0
        self.since: float | None = None

    @property
    def is_offline(self) -> bool:
        return self.since is not None

    @property
    def missed(self) -> int:
        """How many sites were out of reach since one was last reached."""
        return sum(turn > self._reached for turn in self._missed.values())

    def reached(self, site: str) -> None:
        """A connection to it was made."""
        self._turn += 1
        self._reached = self._turn
        self._missed.pop(site, None)
        self._times, self.look_at, self.since = 0, 0.0, None

    def failed(self, site: str, now: float) -> Reachability:
        """Nothing of it was reached. `now`: on the worker's own clock, in milliseconds."""
        self._turn += 1
        first = self._missed.setdefault(site, self._turn)
        if len(self._missed) > REMEMBERED:
            self._missed.popitem(last=False)
        if first < self._reached:  # others could be reached meanwhile
            return Reachability.SITE
        if self.missed >= OFFLINE_AFTER:
            self._go_offline(now)
            return Reachability.WORKER
        return Reachability.UNKNOWN if first == self._turn else Reachability.SITE

    def _go_offline(self, now: float) -> None:
        """Failures that come in before it may look again are of the same look."""
        if self.since is None:
            self.since = now
        if now >= self.look_at:
            self._times += 1
            self.look_at = now + offline_wait(self._times, self._chance, self._first)
