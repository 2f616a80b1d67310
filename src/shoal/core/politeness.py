"""The rules of pace: values in, values out. Nothing here reads a clock or makes a request."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import msgspec

from shoal.core.clock import Millis, Moment

BACKOFF_FIRST: Millis = 60_000
"""How long a slot waits after a rate limit that does not say how long."""

BACKOFF_MOST: Millis = 3_600_000
"""The longest that Shoal waits of its own accord."""

MAX_BACKOFF: Millis = 86_400_000
"""A server that asks for longer with Retry-After is asked again after this, unless the settings say otherwise: one odd
answer must not close a site for years, for everybody."""

QUIET: Millis = 600_000
"""So long after the end of a rate limit without another one, and one of those in a row is forgiven."""

KEPT_AT_REST: Millis = 86_400_000
"""So long after a slot has last said anything, it may be forgotten: its pace, its limits and all of their penalty are
over by then, and it was not used since."""

WORKER_KEPT: Millis = 3_600_000
"""So long after a worker was last seen, it is forgotten, unless it still holds leases."""

MAX_CRAWL_DELAY: Millis = 300_000
"""A longer Crawl-delay of a robots.txt is read as this one, unless the settings say otherwise."""

RETRY_FIRST: Millis = 2_000
RETRY_MOST: Millis = 300_000

OUTAGE_FIRST: Millis = 5_000
"""How long a slot waits when its site is first found to be down; doubling after that."""

OUTAGE_MOST: Millis = 600_000

RUN_OF_FAILURES = 3
"""So many different URLs of a slot that fail one after the other, where each might be to blame for it, and none that is
answered between them: it is the site that fails."""

ASIDE_FIRST: Millis = 1_000
"""How much longer than its slot a task waits at least that was set back, so that another one goes first."""

ASIDE_MOST: Millis = 600_000

OFFLINE_AFTER = 3
"""So many different sites out of reach one after the other, and none that is reached between them: it is not them."""

OFFLINE_FIRST: Millis = 1_000
"""How long a worker that is offline waits before it looks again; doubling after that."""

OFFLINE_MOST: Millis = 60_000

QUARANTINE_AFTER = 3
"""So many failures in a row, over all sites, and an exit is left alone for a while."""

QUARANTINE_FIRST: Millis = 30_000
QUARANTINE_MOST: Millis = 3_600_000

START_WINDOW_SHARE, START_WINDOW_LEAST, START_WINDOW_MOST = 20, 20, 200
TRANSIT_SHARE, TRANSIT_LEAST = 4, 250


def start_window(pace: Millis) -> Millis:
    """How late a request may start after its claim, where several leases share one clock that runs at `pace`.

    The clock is moved by this much more than the pace, so a wider window costs rate and a narrower one costs leases
    that are given back: a twentieth of the pace, between 20 and 200 ms.
    """
    return max(START_WINDOW_LEAST, min(pace // START_WINDOW_SHARE, START_WINDOW_MOST))


def transit_allowance(delay: Millis) -> Millis:
    """How long after it was sent a request is taken to reach the target, unless its answer comes sooner.

    The pace is counted from the moment the target sees a request. That moment is not known, only that it lies before
    the answer; but a very slow answer should not slow down the pace for long. So whatever comes first counts: the
    answer, or this, a quarter of the delay and at least 250 ms.
    """
    return max(TRANSIT_LEAST, delay // TRANSIT_SHARE) if delay else 0


def retry_wait(attempts: int, chance: random.Random, first: Millis = RETRY_FIRST) -> Millis:
    """How long a task waits after its failure number `attempts` (the first is 1): doubling, with ±25 % jitter."""
    wait = min(first << min(attempts - 1, 20), RETRY_MOST)
    return round(wait * chance.uniform(0.75, 1.25))


def backoff(penalty: int, chance: random.Random, first: Millis = BACKOFF_FIRST) -> Millis:
    """How long a slot waits at its rate limit number `penalty` (the first is 1) in a row: doubling, up to 10 % more."""
    wait = min(first << min(penalty - 1, 20), BACKOFF_MOST)
    return round(wait * chance.uniform(1.0, 1.1))


def outage_wait(times: int, chance: random.Random, first: Millis = OUTAGE_FIRST) -> Millis:
    """How long a slot waits whose site was found down `times` times in a row: doubling, up to 25 % more."""
    wait = min(first << min(times - 1, 20), OUTAGE_MOST)
    return round(wait * chance.uniform(1.0, 1.25))


class Outage(msgspec.Struct, frozen=True, array_like=True):
    """A site that is down by one exit: `since` when, found so `times` times in a row, and not to be visited `until`
    then."""

    since: Moment
    times: int
    until: Moment


def goes_on(before: Outage | None, now: Moment, chance: random.Random, first: Millis = OUTAGE_FIRST) -> Outage:
    """The outage after one more failure. Those that were under way together count as one: none of them has waited."""
    if before is None:
        before = Outage(now, 0, now)
    times = before.times + 1 if now >= before.until else max(1, before.times)
    return Outage(before.since, times, max(before.until, now + outage_wait(times, chance, first)))


def offline_wait(times: int, chance: random.Random, first: Millis = OFFLINE_FIRST) -> Millis:
    """How long a worker waits that was found offline `times` times in a row: doubling, up to 25 % more."""
    wait = min(first << min(times - 1, 20), OFFLINE_MOST)
    return round(wait * chance.uniform(1.0, 1.25))


def aside(delay: Millis, limits: int) -> Millis:
    """How much longer than its slot a task waits that was limited `limits` times although others of it passed."""
    return min(max(delay, ASIDE_FIRST) << min(limits, 20), max(delay, ASIDE_MOST))


def remembered(penalty: int, limited_until: Moment, now: Moment) -> int:
    """How many of `penalty` rate limits in a row still count, the last of which was over at `limited_until`."""
    return max(0, penalty - max(0, now - limited_until) // QUIET)


def quarantine(failures: int) -> Millis:
    """How long an exit is left alone at its failure number `failures` in a row; 0 = not yet."""
    if failures < QUARANTINE_AFTER:
        return 0
    return min(QUARANTINE_FIRST << min(failures - QUARANTINE_AFTER, 20), QUARANTINE_MOST)


def retry_after(value: str | None, now: Moment, most: Millis = MAX_BACKOFF) -> Millis | None:
    """What a Retry-After header asks for, from now on, and `most` at the most: whole seconds or an HTTP date. None = it
    says nothing usable."""
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return min(int(text[:12]) * 1000, most)
    try:
        moment = parsedate_to_datetime(text)
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return min(most, max(0, int((moment - datetime.fromtimestamp(now / 1000, UTC)).total_seconds() * 1000) + 1))
