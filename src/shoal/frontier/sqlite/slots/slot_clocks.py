"""The clocks of sites and of their slots: by when the last request has surely begun, and what a lease moves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from shoal.core.clock import Millis, Moment
from shoal.core.politeness import remembered
from shoal.frontier.sqlite.store.transaction import Transaction


class RequestClock(msgspec.Struct, array_like=True, eq=False, gc=False):
    """Since when a slot, or a site over all its exits, is at rest.

    `begun_at`: by when the last request has surely begun. `last_token`: the lease that moved it last. `begun_before`:
    what it was before that lease.
    """

    begun_at: Moment = 0
    begun_before: Moment = 0
    last_token: int = 0

    def end(self, token: int, started: Moment | None) -> None:
        """Count one lease that ended.

        The last one knows when the last request began, or that the clock stands where it stood before. For any other,
        the clock was already set by those granted later, to the latest moment at which they may begin.
        """
        begun = started or 0
        if token == self.last_token:
            self.begun_at = begun if begun > self.begun_before else self.begun_before
        else:
            self.begun_at = max(self.begun_at, begun)
            self.begun_before = max(self.begun_before, begun)


class Slot(RequestClock):
    """One exit to a site, and the delay that counts for it.

    `blocked_until`: a rate limit, or a lost lease whose request may still be under way. `penalty`: rate limits in a
    row, as of the last of them, which was over at `limited_until`; 0 = not looked up, and not after `blocked_until`.
    `held_until`: until when the whole site, or the exit, may not be used; not stored with the slot.
    """

    exit: str = ""
    blocked_until: Moment = 0
    live: int = 0
    penalty: int = 0
    last_at: Moment = 0
    delay: Millis = 0
    limited_until: Moment = 0
    held_until: Moment = 0

    def free_at(self) -> Moment:
        """When its own clock and its rate limit allow the next start."""
        paced = self.begun_at + self.delay
        return paced if paced > self.blocked_until else self.blocked_until

    def penalty_at(self, now: Moment) -> int:
        """How many rate limits in a row still count."""
        return self.penalty and remembered(self.penalty, self.limited_until or self.blocked_until, now)

    def row(self, site: int) -> tuple[int | str, ...]:
        """As `save_slots` wants it."""
        return (
            site,
            self.exit,
            self.begun_at,
            self.begun_before,
            self.last_token,
            self.blocked_until,
            self.live,
            self.penalty,
            self.last_at,
        )


def save_slots(tx: Transaction, slots: Iterable[tuple[int, Slot]]) -> None:
    """Write back slots, each with the number of its site."""
    tx.write_rows("save_slots", [slot.row(site) for site, slot in slots])


def save_site_clocks(tx: Transaction, clocks: Sequence[tuple[int, Moment, Moment, int]]) -> None:
    """Write back the clocks of sites over all their exits: number, begun_at, begun_before, last_token."""
    tx.write_rows("set_site_clocks", clocks)
