"""Which exit a claim takes at a site that is due: its open slots, and how often each can be used right now."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from shoal.core.clock import Millis, Moment
from shoal.core.politeness import start_window
from shoal.frontier.sqlite.slots.exit_health import ExitGate
from shoal.frontier.sqlite.slots.rate_limits import RateLimits
from shoal.frontier.sqlite.slots.slot_clocks import Slot


@dataclass(slots=True, frozen=True)
class Constraints:
    """What is to be heeded besides the clocks: rate limits of sites, and how well exits do."""

    limits: RateLimits
    gate: ExitGate


class DueSite(msgspec.Struct, array_like=True, gc=False):
    """A site that is due. `limited`: whether anything is known about rate limits there."""

    site: int
    ready: int
    key: str
    delay: Millis
    site_delay: Millis
    concurrency: int
    lease: Millis
    begun_at: Moment
    limited: int
    slots: list[Slot]
    openings: list[Slot] = []
    begun_before: Moment = 0
    last_token: int = 0

    @property
    def next_at(self) -> Moment:
        """When the clock over all exits allows the next start."""
        return self.begun_at + self.site_delay if self.site_delay else 0

    def find_openings(self, exits: list[str], horizon: Moment, want: int, constraints: Constraints | None) -> None:
        """List each possible lease by its slot, least recently used slot first; not more than there are tasks."""
        if len(self.slots) < len(exits):
            known = {slot.exit for slot in self.slots}
            self.slots += [Slot(exit=name, delay=self.delay) for name in exits if name not in known]
        if self.site_delay and self.next_at > horizon:
            return
        most = min(1 if self.site_delay else want, self.ready)
        if constraints is not None:
            self._find_constrained(horizon, most, constraints)
            return
        free = [slot for slot in self.slots if slot.live < self.concurrency and slot.free_at() <= horizon]
        if len(free) > 1:
            free.sort(key=lambda slot: slot.last_at)
        if self.delay or self.concurrency == 1:
            self.openings = free[:most]
            return
        taken = 0
        while free and len(self.openings) < most:
            taken += 1
            self.openings.extend(free)
            free = [slot for slot in free if self.concurrency - slot.live > taken]
        del self.openings[most:]

    def _find_constrained(self, horizon: Moment, most: int, constraints: Constraints) -> None:
        """The same, one at a time: what is granted by one exit may leave no room for the next."""
        whole = constraints.limits.sites.get(self.site)
        for slot in self.slots:
            limit = constraints.limits.slots.get((self.site, slot.exit))
            slot.limited_until = 0 if limit is None else limit.limited_until
            slot.held_until = max(constraints.gate.free_at(slot.exit), 0 if whole is None else whole.blocked_until)
        if whole is not None and whole.probing:
            most = min(most, 1)
        rooms = {slot: self._room(slot, constraints) for slot in self.slots}
        free = [slot for slot in self.slots if max(slot.free_at(), slot.held_until) <= horizon]
        free.sort(key=lambda slot: slot.last_at)
        if self.delay:
            rooms = {slot: min(room, 1) for slot, room in rooms.items()}
        taken = 0
        while free and len(self.openings) < most:
            free = [slot for slot in free if rooms[slot] > taken]
            for slot in free:
                if len(self.openings) < most and constraints.gate.has_room(slot.exit):
                    constraints.gate.reserve(slot.exit)
                    self.openings.append(slot)
            taken += 1

    def _room(self, slot: Slot, constraints: Constraints) -> int:
        """How many more leases the site allows by this slot."""
        whole = constraints.limits.sites.get(self.site)
        limit = constraints.limits.slots.get((self.site, slot.exit))
        room = self.concurrency - slot.live
        for each in (whole, limit):
            if each is not None and each.probing:
                room = min(room, 0 if each.probe else 1)
        return room

    def due_at(self, now: Moment, constraints: Constraints | None) -> Moment:
        """When the site may next be visited, as far as can be known; a full slot is looked at when a lease ends."""
        if constraints is not None:
            due_at = min([self._due_constrained(slot, now, constraints) for slot in self.slots])
        else:
            full = now + (self.lease if self.lease > self.delay else self.delay)
            due_at = min([full if s.live >= self.concurrency else s.free_at() for s in self.slots])
        if due_at < now or self.site_delay:
            due_at = max(due_at, now, self.next_at)
        return due_at

    def _due_constrained(self, slot: Slot, now: Moment, constraints: Constraints) -> Moment:
        if self._room(slot, constraints) <= 0:
            return now + max(self.lease, self.delay)
        whole = constraints.limits.sites.get(self.site)
        blocked_until = 0 if whole is None else whole.blocked_until
        return max(slot.free_at(), blocked_until, constraints.gate.worth_a_look(slot.exit))

    def take(self, slot: Slot, token: int, now: Moment) -> tuple[Moment, Moment, bool]:
        """Count one lease on a slot and move its clocks. Answers from when until when it may start, and if alone."""
        start_at = slot.free_at()
        if start_at < now or self.site_delay or slot.held_until:
            start_at = max(start_at, now, self.next_at, slot.held_until)
        slot.live += 1
        slot.last_at = now
        slot.last_token = token
        slot.begun_before = slot.begun_at
        if self.concurrency == 1 and not self.site_delay:
            return start_at, start_at + self.lease // 2, True
        paces = [pace for pace in (self.delay, self.site_delay) if pace]
        window = start_window(min(paces)) if paces else 0
        slot.begun_at = start_at + window
        self.begun_before, self.begun_at, self.last_token = self.begun_at, start_at + window, token
        return start_at, start_at + (window or self.lease // 2), False
