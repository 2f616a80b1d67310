"""Outages: how long a site has been down by one exit, and when it is looked at again. Values in, values out."""

from __future__ import annotations

import random

import msgspec

from shoal.core.clock import Millis, Moment
from shoal.core.politeness import OUTAGE_FIRST, outage_wait


class Outage(msgspec.Struct, frozen=True, array_like=True):
    """A site that is down: `since` when, found so `times` times in a row, and not to be visited `until` then."""

    since: Moment
    times: int
    until: Moment


def goes_on(before: Outage | None, now: Moment, chance: random.Random, first: Millis = OUTAGE_FIRST) -> Outage:
    """The outage after one more failure. Those that were under way together count as one: none of them has waited."""
    if before is None:
        before = Outage(now, 0, now)
    times = before.times + 1 if now >= before.until else max(1, before.times)
    return Outage(before.since, times, max(before.until, now + outage_wait(times, chance, first)))
