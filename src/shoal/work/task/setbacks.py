"""Setbacks: what keeps a task from its page and is not its own fault. Its slot waits, another task of it goes first.

What has to hold for all workers is in the shared cache, beside the site: since when it is down, and when one of its
pages was last answered. Both are about one slot, and written only where the slot was set back lately.
"""

from __future__ import annotations

import random
from collections import OrderedDict
from typing import TypeVar

import msgspec
import structlog

from shoal.api.scraper import Scraper
from shoal.core import log_events
from shoal.core.clock import Clock, Millis, Moment, iso, millis
from shoal.core.exit_address import TOR_NAMED
from shoal.core.notes import Entry
from shoal.core.outcome import Blame, Dead, Outcome, Reason, Retried, Snoozed
from shoal.core.politeness import OUTAGE_MOST, QUIET, RUN_OF_FAILURES, Outage, aside, goes_on
from shoal.core.task import DIRECT, Lease
from shoal.frontier.contract.cache import Cache
from shoal.insight.audit import Robots
from shoal.work.connectivity import Connectivity, Reachability
from shoal.work.options import WorkTiming
from shoal.work.task.attempt import Attempt, Trouble

MOST_SLOTS = 10_000
"""Of so many slots a worker remembers which URLs have failed in a row, and that they are well."""

TELL_EVERY: Millis = 1000
"""A worker that finds a slot well says so again after this at the earliest."""

ANSWERED_KEPT: Millis = 24 * 3600 * 1000

log = structlog.get_logger("shoal")

Slot = tuple[str, str]
Value = TypeVar("Value")


class Setbacks:
    """Weighs what came of attempts of one worker. `connectivity`: what that worker can reach."""

    def __init__(
        self, cache: Cache, clock: Clock, chance: random.Random, timing: WorkTiming, connectivity: Connectivity
    ) -> None:
        self._cache = cache
        self._clock = clock
        self._chance = chance
        self._timing = timing
        self._connectivity = connectivity
        self._failing: OrderedDict[Slot, frozenset[str]] = OrderedDict()
        self._well: OrderedDict[Slot, Moment] = OrderedDict()

    async def weigh(self, attempt: Attempt, outcome: Outcome, scraper: Scraper) -> Outcome:
        """How the attempt ends, if what it met is more than its own failure; else as it was. Raises EngineError."""
        if any(made.status for made in attempt.made):
            self._reach(attempt.task.site)
        match attempt.trouble, outcome:
            case None, _:
                await self._passed(attempt)
            case Trouble.LIMIT, Snoozed():
                outcome = await self._limited(attempt, outcome, scraper)
            case _, Retried() | Dead():
                outcome = await self._failed(attempt, outcome, scraper)
            case _:
                pass
        return outcome

    # The worker

    def _reach(self, site: str) -> None:
        if self._connectivity.since is not None:
            after = f"{(self._clock.elapsed() - self._connectivity.since) / 1000:.1f} s"
            log.warning(log_events.WORKER_ONLINE, after=after)
        self._connectivity.reached(site)

    def _out_of_reach(self, attempt: Attempt, reason: Reason) -> Outcome | None:
        """Whether it is this worker that is away: then the lease goes back. None = it is the site."""
        connectivity, now = self._connectivity, self._clock.elapsed()
        before = connectivity.is_offline
        match connectivity.failed(attempt.task.site, now):
            case Reachability.SITE:
                return None
            case Reachability.WORKER:
                if not before:
                    seconds = round((connectivity.look_at - now) / 1000, 1)
                    log.warning(
                        log_events.WORKER_OFFLINE, sites=connectivity.missed, reason=reason.text, seconds=seconds
                    )
                return Snoozed()
            case Reachability.UNKNOWN:
                return Snoozed(reason=reason, aside=self._timing.offline_first)

    # Its site

    async def _passed(self, attempt: Attempt) -> None:
        """The site has answered: it is not down. If a page was, others can no longer say that nothing passes."""
        answered = [made for made in attempt.made if 0 < made.status < 500]
        if not answered:
            return
        lease = attempt.lease
        slot, now = _slot(lease), attempt.held.now
        if self._failing:
            self._failing.pop(slot, None)
        if not lease.penalty or now - self._well.get(slot, 0) < TELL_EVERY:
            return
        key = down_key(slot)
        stored = (await self._cache.get([key])).get(key)
        if stored is not None:
            attempt.entries += (Entry(key, stored, 0),)
        if answered[-1].robots is not Robots.FILE:
            attempt.entries += (Entry(_answered_key(slot), msgspec.msgpack.encode(now), ANSWERED_KEPT),)
            _remember(self._well, slot, now)

    async def _known(self, slot: Slot) -> tuple[Outage | None, Moment]:
        """Since when it is down, and when a page of it was last answered."""
        down, answered = down_key(slot), _answered_key(slot)
        found = await self._cache.get([down, answered])
        try:
            outage = msgspec.msgpack.decode(found[down], type=Outage) if down in found else None
            return outage, msgspec.msgpack.decode(found[answered], type=int) if answered in found else 0
        except msgspec.MsgspecError:  # written by another version: as good as none
            return None, 0

    async def _limited(self, attempt: Attempt, limited: Snoozed, scraper: Scraper) -> Outcome:
        """The slot waits as told. A page that is limited again and again, while others are answered, is given up."""
        lease, extra = attempt.lease, attempt.task.extra
        slot = _slot(lease)
        self._well.pop(slot, None)
        _, answered = await self._known(slot)
        alone = 0 < extra.set_back_since <= answered
        limits = extra.limits + 1
        if alone and limits >= scraper.max_rate_limits:
            said = limited.reason.text if limited.reason else ""
            return Dead(
                Reason(Blame.URL, f"{said}, {limits} times in a row while other pages of its site were answered")
            )
        return msgspec.structs.replace(
            limited,
            penalty=max(1, lease.penalty) if alone else limited.penalty,  # the others of its slot are not to blame
            extra=msgspec.structs.replace(
                extra, limits=limits, set_back_since=extra.set_back_since or attempt.held.now
            ),
            aside=_away(lease, limited.wait, again=extra.limits > 0) + aside(lease.delay, limits if alone else 0),
        )

    async def _failed(self, attempt: Attempt, failure: Retried | Dead, scraper: Scraper) -> Outcome:
        """The slot waits, longer each time, and one request goes first; unless it is the page that fails."""
        lease, extra, reason = attempt.lease, attempt.task.extra, failure.reason
        if attempt.trouble is Trouble.NETWORK:
            away = self._out_of_reach(attempt, reason)
            if away is not None:
                return away
        if not scraper.site_down_after or extra.guarded:  # behind a job there is somebody who waits for its end
            return failure
        slot, now = _slot(lease), attempt.held.now
        self._well.pop(slot, None)
        before, answered = await self._known(slot)
        if 0 < extra.set_back_since <= answered:
            return failure
        if attempt.trouble is Trouble.DOUBT:
            urls = self._failing.get(slot, frozenset()) | {attempt.task.url}
            _remember(self._failing, slot, urls)
            if before is None and len(urls) < RUN_OF_FAILURES:
                return failure
        outage = goes_on(before, now, self._chance, self._timing.outage_first)
        wait = outage.until - now
        kept = Entry(down_key(slot), msgspec.msgpack.encode(outage), wait + QUIET + OUTAGE_MOST)
        attempt.entries += (kept,)
        why = Reason(Blame.HOST, f"site down since {iso(outage.since)}: {reason.text}", reason.detail)
        if now - outage.since >= millis(scraper.site_down_after):
            return Dead(why)
        return Snoozed(
            wait,
            max(1, lease.penalty),
            why,
            extra=msgspec.structs.replace(extra, set_back_since=extra.set_back_since or now),
            aside=_away(lease, wait, again=extra.set_back_since > 0) + aside(lease.delay, 0),
        )


def _away(lease: Lease, wait: Millis, *, again: bool) -> Millis:
    """How long a task leaves its slot alone. Where there may be other exits, they are not waited for the first time;
    nor is Tor, which has another identity soon."""
    is_tor = lease.exit.startswith(TOR_NAMED)
    return wait if (again and not is_tor) or lease.exit == DIRECT else 0


def _slot(lease: Lease) -> Slot:
    return lease.task.site, lease.exit


def down_key(slot: Slot) -> str:
    """Where it stands since when a site is down, by one exit."""
    return f"{slot[0]} down {slot[1]}"


def _answered_key(slot: Slot) -> str:
    return f"{slot[0]} answered {slot[1]}"


def _remember(known: OrderedDict[Slot, Value], slot: Slot, value: Value) -> None:
    known[slot] = value
    known.move_to_end(slot)
    if len(known) > MOST_SLOTS:
        known.popitem(last=False)
