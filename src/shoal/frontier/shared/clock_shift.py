"""Moments of one store's clock as moments of another's, always to the safe side."""

from __future__ import annotations

import math
from dataclasses import dataclass

import msgspec

from shoal.core.clock import Millis, Moment
from shoal.frontier.contract.mover import Cargo, PackedSite


@dataclass(frozen=True, slots=True)
class Shift:
    """How far the clock of the new store is ahead of the old one's, at least and at most."""

    least: Millis
    most: Millis

    def applied(self, cargo: Cargo, renumber: int) -> Cargo:
        """The same by the clock and the numbers of the new store: waits may become longer by that, lives shorter."""
        return Cargo(
            tasks=[
                msgspec.structs.replace(
                    task,
                    number=task.number + renumber,
                    not_before=None if task.not_before is None else task.not_before + self.most,
                    expires_at=None if task.expires_at is None else task.expires_at + self.least,
                )
                for task in cargo.tasks
            ],
            letters=[msgspec.structs.replace(letter, number=letter.number + renumber) for letter in cargo.letters],
            items=cargo.items,
            keys=cargo.keys,
            endings=[
                msgspec.structs.replace(ending, ended_at=self._later(ending.ended_at)) for ending in cargo.endings
            ],
            sites=[self._site(site) for site in cargo.sites],
        )

    def _site(self, site: PackedSite) -> PackedSite:
        slots = [
            msgspec.structs.replace(
                slot,
                begun_at=self._later(slot.begun_at),
                blocked_until=self._later(slot.blocked_until),
                last_at=self._later(slot.last_at),
            )
            for slot in site.slots
        ]
        return msgspec.structs.replace(site, begun_at=self._later(site.begun_at), slots=slots)

    def _later(self, moment: Moment) -> Moment:
        return moment + self.most if moment else 0


def shift_between(source: Moment, target: Moment, took: float) -> Shift:
    """From one look at each clock, first the source's, then the target's; both looks together took so long."""
    return Shift(math.floor(target - source - 1 - took), target - source + 1)
