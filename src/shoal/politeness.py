"""The rules of pace: values in, values out. Nothing here reads a clock or makes a request."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from shoal.clock import Millis, Moment

BACKOFF_FIRST: Millis = 60_000
"""How long a slot waits after a rate limit that does not say how long."""

BACKOFF_MOST: Millis = 3_600_000
"""The longest that Shoal waits of its own accord. What a server asks for with Retry-After is honoured in full."""

QUIET: Millis = 600_000
"""So long after the end of a rate limit without another one, and one of those in a row is forgiven."""

KEPT_AT_REST: Millis = 86_400_000
"""So long after a slot has last said anything, it may be forgotten: its pace, its limits and all of their penalty are
over by then, and it was not used since."""

MAX_CRAWL_DELAY: Millis = 300_000
"""A longer Crawl-delay of a robots.txt is read as this one, unless the settings say otherwise."""

RETRY_FIRST: Millis = 2_000
RETRY_MOST: Millis = 300_000


def start_window(pace: Millis) -> Millis:
    """How late a request may start after its claim, where several leases share one clock that runs at `pace`.

    The clock is moved by this much more than the pace, so a wider window costs rate and a narrower one costs leases
    that are given back: a twentieth of the pace, between 20 and 200 ms.
    """
    return max(20, min(pace // 20, 200))


def transit_allowance(delay: Millis) -> Millis:
    """How long after it was sent a request is taken to reach the target, unless its answer comes sooner.

    The pace is counted from the moment the target sees a request. That moment is not known, only that it lies before
    the answer; but a very slow answer should not slow down the pace for long. So whatever comes first counts: the
    answer, or this, a quarter of the delay and at least 250 ms.
    """
    return max(250, delay // 4) if delay else 0


def retry_wait(attempts: int, chance: random.Random) -> Millis:
    """How long a task waits after its failure number `attempts` (the first is 1): doubling, with ±25 % jitter."""
    wait = min(RETRY_FIRST << min(attempts - 1, 20), RETRY_MOST)
    return round(wait * chance.uniform(0.75, 1.25))


def backoff(penalty: int, chance: random.Random) -> Millis:
    """How long a slot waits at its rate limit number `penalty` (the first is 1) in a row: doubling, up to 10 % more."""
    wait = min(BACKOFF_FIRST << min(penalty - 1, 20), BACKOFF_MOST)
    return round(wait * chance.uniform(1.0, 1.1))


def remembered(penalty: int, limited_until: Moment, now: Moment) -> int:
    """How many of `penalty` rate limits in a row still count, the last of which was over at `limited_until`."""
    return max(0, penalty - max(0, now - limited_until) // QUIET)


def retry_after(value: str | None, now: Moment) -> Millis | None:
    """What a Retry-After header asks for, from now on: whole seconds or an HTTP date. None = it says nothing usable."""
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return min(int(text[:12]), 10**9) * 1000
    try:
        moment = parsedate_to_datetime(text)
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0, int((moment - datetime.fromtimestamp(now / 1000, UTC)).total_seconds() * 1000) + 1)
