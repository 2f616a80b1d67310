"""Rate limits of slots and of whole sites, and the one request that goes first when they are over.

Most sites are never limited: `site.limited` tells whether there is anything to read here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from shoal.core.clock import Millis, Moment
from shoal.core.outcome import Settlement, Snoozed
from shoal.frontier.sqlite.store.transaction import Transaction


class SlotLimit(msgspec.Struct, array_like=True):
    """The last rate limit of a slot. `probing`: one request goes first. `probe`: its token, while it is out."""

    site: int
    exit: str
    limited_at: Moment = 0
    limited_until: Moment = 0
    probing: int = 0
    probe: int = 0
    cause: str | None = None


class SiteLimit(msgspec.Struct, array_like=True):
    """The last rate limit of a site over all its exits."""

    site: int
    blocked_until: Moment = 0
    probing: int = 0
    probe: int = 0
    cause: str | None = None


class LimitRule(msgspec.Struct, array_like=True):
    """Limits on so many exits, each within the window, are one of the whole site."""

    site: int
    exits: int
    window: Millis


class _LimitsFound(msgspec.Struct, array_like=True):
    slots: list[SlotLimit]
    sites: list[SiteLimit]
    rules: list[LimitRule]


_found = msgspec.json.Decoder(_LimitsFound)


class RateLimits:
    """The limits of some sites, as read in this transaction. What is changed here is written by `write`."""

    def __init__(self, found: _LimitsFound) -> None:
        self.slots = {(limit.site, limit.exit): limit for limit in found.slots}
        self.sites = {limit.site: limit for limit in found.sites}
        self._rules = {rule.site: rule for rule in found.rules}
        self._changed_slots: set[tuple[int, str]] = set()
        self._changed_sites: set[int] = set()
        self._new: set[int] = set()

    @classmethod
    def find(cls, tx: Transaction, sites: Iterable[int]) -> RateLimits:
        """What is known about these sites."""
        return cls(tx.read("find_limits", _found, sites=list(dict.fromkeys(sites))))

    def take(self, site: int, exit_: str, token: int) -> None:
        """A lease was granted: where one request goes first, this is it."""
        slot = self.slots.get((site, exit_))
        if slot is not None and slot.probing:
            slot.probe = token
            self._changed_slots.add((site, exit_))
        whole = self.sites.get(site)
        if whole is not None and whole.probing:
            whole.probe = token
            self._changed_sites.add(site)

    def settle(self, site: int, exit_: str, settlement: Settlement, now: Moment) -> bool:
        """A lease of the slot has ended. Answers whether the site over all its exits is concerned."""
        outcome = settlement.outcome
        if isinstance(outcome, Snoozed) and outcome.wait:
            return self._limit(site, exit_, outcome, now)
        return self.end_probe(site, exit_, settlement.token, went_well=settlement.started_at is not None)

    def end_probe(self, site: int, exit_: str, token: int, *, went_well: bool) -> bool:
        """If this lease was the request that goes first, all others may follow, or another one goes first."""
        slot = self.slots.get((site, exit_))
        if slot is not None and slot.probe == token:
            slot.probe = 0
            slot.probing = 0 if went_well else 1
            self._changed_slots.add((site, exit_))
        whole = self.sites.get(site)
        if whole is None or whole.probe != token:
            return False
        whole.probe = 0
        if went_well:
            whole.probing = whole.blocked_until = 0
        self._changed_sites.add(site)
        return True

    def _limit(self, site: int, exit_: str, outcome: Snoozed, now: Moment) -> bool:
        if not self._knows(site):
            self._new.add(site)
        before = self.slots.get((site, exit_))
        until = max(now + outcome.wait, 0 if before is None else before.limited_until)
        cause = None if outcome.reason is None else outcome.reason.text
        self.slots[site, exit_] = SlotLimit(site, exit_, now, until, probing=1, cause=cause)
        self._changed_slots.add((site, exit_))
        rule = self._rules[site]
        since = now - rule.window
        recent = [limit for limit in self.slots.values() if limit.site == site and limit.limited_at > since]
        whole = self.sites.get(site)
        if len(recent) < rule.exits and not (whole is not None and whole.probing):
            return False
        blocked_until = max(limit.limited_until for limit in recent)
        if whole is not None:
            blocked_until = max(blocked_until, whole.blocked_until)
        self.sites[site] = SiteLimit(site, blocked_until, probing=1, cause=cause)
        self._changed_sites.add(site)
        return True

    def _knows(self, site: int) -> bool:
        return site in self.sites or any(limit.site == site for limit in self.slots.values())

    def write(self, tx: Transaction) -> None:
        """Write what was changed."""
        tx.write_rows("save_slot_limits", [msgspec.structs.astuple(self.slots[key]) for key in self._changed_slots])
        tx.write_rows("save_site_limits", [msgspec.structs.astuple(self.sites[site]) for site in self._changed_sites])
        if self._new:
            mark_limited(tx, self._new)


NO_LIMITS = RateLimits(_LimitsFound([], [], []))
"""For claims that meet no site that was ever limited."""


def limits_of(tx: Transaction, sites: Collection[int]) -> RateLimits:
    """As `RateLimits.find`, without asking if there is nothing to ask about."""
    return RateLimits.find(tx, sites) if sites else NO_LIMITS


def mark_limited(tx: Transaction, sites: Collection[int]) -> None:
    """From now on claims look here when they visit these sites."""
    tx.run("mark_limited", sites=list(sites))


def forget_limits(tx: Transaction, before: Moment, most: int) -> None:
    """Forget what was over by then, at most so many, so that claims at those sites need not look any more."""
    sites = list(set(tx.numbers("forget_limits", before=before, most=most)))
    if sites:
        tx.run("forget_site_limits", sites=sites, before=before)
        tx.run("unmark_limited", sites=sites)
