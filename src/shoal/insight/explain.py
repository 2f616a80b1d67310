"""Why is this URL waiting? From what the store says to sentences. Pure.

Each cause says until when it keeps the task from being fetched; the latest of them is the answer to "when".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from shoal.core.clock import Millis, Moment, iso
from shoal.core.outcome import Blame, Reason
from shoal.core.task import DIRECT, RunState, State
from shoal.core.url import without_credentials
from shoal.frontier.contract.exits import ExitRecord
from shoal.frontier.contract.reader import SiteRecord, SlotRecord, Whereabouts


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is known about a task's surroundings, all at one moment.

    `exits`: names of the exits in the task's pool. `health`: what the store knows about exits. `staffed`: whether any
    live worker works this scraper in this lane; None = it is not known. `by_tor`: workers bring exits of their own.
    `disallowed`: whether robots.txt, as it was last read, disallows the URL. `moved_to`: the store its run has gone to.
    `delay`: what its run asks for. `stricter`: other runs that go on and ask for just the delay that the site has.
    """

    now: Moment
    site: SiteRecord | None
    slots: Sequence[SlotRecord]
    exits: Sequence[str] = (DIRECT,)
    health: Sequence[ExitRecord] = ()
    staffed: bool | None = None
    by_tor: bool = False
    disallowed: bool = False
    moved_to: str | None = None
    delay: Millis = 0
    stricter: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Cause:
    """One thing that keeps a task waiting. `until`: None = until somebody does something about it."""

    text: str
    until: Moment | None = 0


@dataclass(slots=True)
class Explanation:
    """Where a task is, in one sentence, and what keeps it from being fetched. `earliest`: None = it cannot be said.

    `duplicate_of`: the spelling that the run has accepted, where one asks for another; credentials are masked.
    """

    where: str
    causes: list[Cause] = field(default_factory=list)
    earliest: Moment | None = None
    duplicate_of: str | None = None


def explain(found: Whereabouts, around: Surroundings) -> Explanation:
    """Say where a task is, when it can be fetched at the earliest, and why then."""
    if found.state is State.WAITING:
        return _waiting(found, around)
    return Explanation(_out_of_line(found, around))


def duplicate_of(asked: str, accepted: str) -> str | None:
    """What a URL is a duplicate of, if it was accepted in another spelling, as it may be shown. None = it was not."""
    plain = without_credentials(accepted)
    return None if accepted == asked else accepted if accepted == plain else plain.replace("://", "://***@", 1)


def _out_of_line(found: Whereabouts, around: Surroundings) -> str:
    now = around.now
    match found.state:
        case State.LEASED:
            left = _span((found.lease_until or now) - now)
            return f"It is being worked on: worker {found.worker}, exit {found.exit}; the lease ends in {left}."
        case State.DEAD:
            tried = f"{found.attempts} attempts" if found.attempts != 1 else "1 attempt"
            crashed = f", {found.crashes} crashes" if found.crashes else ""
            reason = f" ({found.reason.blame}): {found.reason.text}" if found.reason else ""
            if found.task is None:
                return f"It was a dead letter, which has been purged{reason}."
            return f"It is a dead letter after {tried}{crashed}{reason}."
        case State.EXPIRED:
            return f"It has expired at {iso(found.ended_at)}: it waited for longer than its time to live."
        case State.DROPPED:
            return _dropped(found.reason)
        case State.CANCELLED:
            return (
                f"It went with its run to {around.moved_to}." if around.moved_to else "It was cancelled with its run."
            )
        case _:
            return "It is done."


def _dropped(reason: Reason | None) -> str:
    text = reason.text.rstrip(".") if reason and reason.text else "without a reason"
    return f"It was dropped by its handler: {text}." if _by_handler(reason) else f"It was dropped: {text}."


def _by_handler(reason: Reason | None) -> bool:
    return reason is not None and reason.blame is Blame.HANDLER


def _waiting(found: Whereabouts, around: Surroundings) -> Explanation:
    before = f"{found.ahead} of its site are" if found.ahead > 1 else "1 of its site is"
    ahead = f"{before if found.ahead else 'nothing of its site is'} before it"
    causes = [
        *_of_the_run(found, around),
        *_of_the_task(found, around),
        *_of_the_site(around),
        *_of_the_exits(around),
        *_of_the_line(found, around),
    ]
    waits = [cause.until for cause in causes]
    times = [moment for moment in waits if moment is not None]
    earliest = None if None in waits else max([around.now, *times])
    return Explanation(f"It waits in the lane {found.lane}; {ahead}.", causes, earliest)


def _of_the_run(found: Whereabouts, around: Surroundings) -> list[Cause]:
    causes = []
    if found.run_state is RunState.PAUSED or found.held:
        causes.append(Cause("Its run is paused.", None))
    if found.run_state is RunState.CANCELLED:
        causes.append(Cause("Its run was cancelled: it will not be fetched.", None))
    if around.staffed is False:
        causes.append(Cause(f"No live worker works on {found.scraper} in the lane {found.lane}.", None))
    if around.disallowed:
        causes.append(Cause("robots.txt disallows it: it will be dropped when its turn comes, if its scraper obeys."))
    return causes


def _of_the_task(found: Whereabouts, around: Surroundings) -> list[Cause]:
    causes, now = [], around.now
    if found.not_before is not None and found.not_before > now:
        why = "as it was asked to"
        if found.attempts:
            why = f"after failure number {found.attempts}"
        elif any(slot.penalty for slot in around.slots):
            why = "so that another of its site goes first, or as it was asked to"
        causes.append(Cause(f"It waits for its own time, {why}: {_span(found.not_before - now)}.", found.not_before))
    if found.expires_at is not None:
        left = found.expires_at - now
        causes.append(Cause(f"It expires in {_span(left)}." if left > 0 else "It has expired."))
    return causes


def _of_the_site(around: Surroundings) -> list[Cause]:
    site, causes = around.site, []
    if site is None:
        return []
    if site.blocked_until > around.now:
        why = f": {site.cause}" if site.cause else ""
        text = f"The whole site is backing off{why}; {_span(site.blocked_until - around.now)} to go."
        causes.append(Cause(text, site.blocked_until))
    elif site.site_delay and _site_clock(around) > around.now:
        wait = _span(site.next_at - around.now)
        pace = f"one request each {_span(site.site_delay)} over all exits"
        causes.append(Cause(f"The clock of the whole site: {wait} to go, {pace}.", site.next_at))
    if around.stricter and site.delay > around.delay:
        others = f"run {around.stricter[0]}" if len(around.stricter) == 1 else f"{len(around.stricter)} other runs"
        asked = f"{_span(site.delay)} between requests, as {others} asked for, not {_span(around.delay)} as its own run"
        causes.append(Cause(f"The site has {asked}: the strictest counts, while it has work there."))
    if site.probing:
        causes.append(Cause("What held the site back is over; one request goes first before the rest follow."))
    return causes


def _site_clock(around: Surroundings) -> Moment:
    """When the clock over all exits lets the next request start; 0 where the slots alone decide."""
    soonest = min((max(slot.next_at, slot.blocked_until) for slot in around.slots), default=0)
    return around.site.next_at if around.site is not None and around.site.next_at > soonest else 0


def _of_the_exits(around: Surroundings) -> list[Cause]:
    """The exit that is free first decides; if none is free now, each says why not."""
    slots = {slot.exit: slot for slot in around.slots}
    health = {record.name: record for record in around.health}
    if not around.exits:
        why = "Its pool has no exits." if not around.by_tor else "No worker that has a Tor daemon ready is running."
        return [Cause(why, None)]
    closed = [cause for name in around.exits if (cause := _closed(name, slots.get(name), health.get(name), around))]
    if len(closed) < len(around.exits):
        return []
    first = min(closed, key=lambda cause: cause.until or 0)
    if len(closed) == 1:
        return closed
    return [Cause(f"None of its {len(closed)} exits is free. The first will be: {first.text}", first.until)]


def _closed(name: str, slot: SlotRecord | None, health: ExitRecord | None, around: Surroundings) -> Cause | None:
    """Why an exit cannot be used for the site now; None = it can."""
    now = around.now
    if health is not None and health.quarantined_until > now:
        wait = _span(health.quarantined_until - now)
        return Cause(f"{name} is quarantined after {health.failures} failures; {wait} to go.", health.quarantined_until)
    if health is not None and 0 < health.cap <= health.live:
        return Cause(f"{name} has {_requests(health.live)} in flight over all sites, and may not have more.", now)
    if slot is None:
        return None
    if slot.blocked_until > now:
        why = f": {slot.cause}" if slot.cause else ""
        return Cause(
            f"{name} backs off from the site{why}; {_span(slot.blocked_until - now)} to go.", slot.blocked_until
        )
    if slot.next_at > now:
        pace = f", one request each {_span(around.site.delay)}" if around.site is not None else ""
        return Cause(f"The clock of {name} at this site: {_span(slot.next_at - now)} to go{pace}.", slot.next_at)
    if slot.live:
        return Cause(f"{name} has {_requests(slot.live)} of the site in flight.", now)
    return None


def _of_the_line(found: Whereabouts, around: Surroundings) -> list[Cause]:
    if not found.ahead or around.site is None:
        return []
    ways = max(1, len(around.exits))
    rounds = -(-found.ahead // ways)
    pace = max(around.site.delay, around.site.site_delay * ways)
    if not pace:
        return []
    wait = rounds * pace
    first = f"{found.ahead} tasks go" if found.ahead > 1 else "1 task goes"
    by = f"{ways} exits" if ways > 1 else "1 exit"
    text = f"{first} first, at {_span(pace)} each by {by}: about {_span(wait)}."
    return [Cause(text, around.now + wait)]


def _requests(number: int) -> str:
    return f"{number} requests" if number != 1 else "1 request"


def _span(ms: Millis) -> str:
    """A length of time, as people say it."""
    if ms < 1000:
        return f"{max(0, ms)} ms"
    seconds = ms / 1000
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"
