"""What the reference model is made of: runs, tasks, leases, and the timelines of slots and sites."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from shoal.core.clock import Millis, Moment
from shoal.core.politeness import remembered
from shoal.core.task import NO_EXTRA, Extra, LanePolicy, Lease, Policy, RunState, State

MANY = 1 << 30


@dataclass
class ModelRun:
    """A run and its counters."""

    run_id: str
    queue: str
    policy: Policy
    state: RunState = RunState.OPEN
    sealed: bool = False
    seen: set[bytes] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def goes_on(self) -> bool:
        return self.state not in (RunState.PAUSED, RunState.CANCELLED)

    def lane(self, lane: str) -> LanePolicy:
        return self.policy.lanes.get(lane, LanePolicy())


@dataclass
class ModelTask:
    """A task, from acceptance to its end. `order`: the place it had when it came."""

    order: int
    run: ModelRun
    site: str
    lane: str
    priority: int
    url: str
    not_before: Moment
    expires_at: Moment
    state: State = State.WAITING
    attempts: int = 0
    crashes: int = 0
    id: int = 0
    key: bytes | None = None
    extra: Extra = NO_EXTRA

    @property
    def place(self) -> tuple[int, int]:
        return -self.priority, self.order


@dataclass
class ModelStart:
    """When the request of one lease may have begun, at the latest. `held`: what an engine may go on assuming."""

    token: int
    begun: Moment
    held: Moment


@dataclass
class Timeline:
    """The starts of one slot, or of one site over all its exits."""

    starts: list[ModelStart] = field(default_factory=list)
    latest: int = 0

    def grant(self, token: int, begun: Moment) -> None:
        self.starts.append(ModelStart(token, begun, begun))
        self.latest = token

    def end(self, token: int, started: Moment | None) -> None:
        mine = [start for start in self.starts if start.token == token]
        if started is None:
            if token == self.latest:
                self.starts = [start for start in self.starts if start.token != token]
            return
        if not mine:
            self.starts.append(ModelStart(token, started, started))
        for start in mine:
            start.held = started if token == self.latest else max(start.held, started)
            start.begun = started

    def reserve(self, token: int, latest: Moment) -> None:
        """A lease that had the slot for itself has it no more: until it is settled, it begins as late as it may."""
        mine = [start for start in self.starts if start.token == token]
        if not mine:
            mine = [ModelStart(token, latest, latest)]
            self.starts += mine
        for start in mine:
            start.begun, start.held = max(start.begun, latest), max(start.held, latest)

    def begun(self) -> Moment:
        return max((start.begun for start in self.starts), default=0)

    def held(self) -> Moment:
        return max((start.held for start in self.starts), default=0)


@dataclass
class Limited(Timeline):
    """A slot or a site after a rate limit. `probing`: one request goes first. `probe`: its token, while it is out."""

    blocked_until: Moment = 0
    probing: bool = False
    probe: int = 0

    def limit(self, until: Moment) -> None:
        self.blocked_until = max(self.blocked_until, until)
        self.probing, self.probe = True, 0

    def end_probe(self, token: int, *, went_well: bool) -> None:
        if self.probe == token:
            self.probe = 0
            self.probing = not went_well

    def take(self, token: int) -> None:
        if self.probing:
            self.probe = token

    def room(self) -> int:
        """How many leases can be granted at most, if nothing else speaks against it."""
        return MANY if not self.probing else 0 if self.probe else 1


@dataclass
class ModelSlot(Limited):
    """One way out of a site."""

    penalty: int = 0
    used_at: Moment = 0
    limited_at: Moment = 0
    limited_until: Moment = 0

    def penalty_at(self, now: Moment) -> int:
        return remembered(self.penalty, self.limited_until, now)


@dataclass
class ModelSite(Limited):
    """A site: the strictest rules of those who visit it."""

    delay: Millis = 0
    site_delay: Millis = 0
    concurrency: int = 0
    hard_timeout: Millis = 0
    crawl_delay: Millis = 0
    slowed: Millis = 0
    limit_exits: int = 0
    limit_window: Millis = 0
    slots: dict[str, ModelSlot] = field(default_factory=dict)

    @property
    def pace(self) -> Millis:
        return max(self.delay, self.crawl_delay, self.slowed)

    @property
    def exclusive(self) -> bool:
        return self.concurrency == 1 and not self.site_delay

    def take_rules(self, policy: Policy, *, anew: bool) -> None:
        self.delay = policy.delay if anew else max(self.delay, policy.delay)
        self.site_delay = policy.site_delay if anew else max(self.site_delay, policy.site_delay)
        self.concurrency = policy.concurrency if anew else min(self.concurrency, policy.concurrency)
        self.hard_timeout = policy.hard_timeout if anew else max(self.hard_timeout, policy.hard_timeout)
        self.limit_exits = policy.limit_exits if anew else min(self.limit_exits, policy.limit_exits)
        self.limit_window = policy.limit_window if anew else max(self.limit_window, policy.limit_window)

    def limit_slot(self, slot: ModelSlot, wait: Millis, penalty: int, now: Moment) -> None:
        """A rate limit of one slot, and of the whole site if there were several, or if it has not recovered yet."""
        slot.limit(now + wait)
        slot.penalty, slot.limited_at = penalty, now
        slot.limited_until = max(slot.limited_until, now + wait)
        recent = [each for each in self.slots.values() if each.limited_at > now - self.limit_window]
        if self.probing or len(recent) >= self.limit_exits:
            self.limit(max(each.limited_until for each in recent))


@dataclass
class ModelLease:
    """A lease that lives."""

    lease: Lease
    worker: str
    task: ModelTask
    expires_at: Moment
    auto_ack: bool
