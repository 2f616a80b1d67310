"""Which exits a claim may use: those that are not left alone, and of which not too many leases are out.

An exit that was never put, has not failed and was not banned has no state, and nothing is asked about it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any

import msgspec

from shoal.core.clock import Millis, Moment
from shoal.core.outcome import Settlement
from shoal.core.politeness import QUARANTINE_AFTER, quarantine
from shoal.frontier.sqlite.store.transaction import Transaction

LOOK_AGAIN: Millis = 5_000
"""When an exit of which too many leases are out is looked at again, if nothing is heard before."""

HOPE: Millis = 60_000
"""An exit that is left alone for longer than this may be released before: its sites are looked at in between."""


class ExitHealth(msgspec.Struct, array_like=True):
    """How well an exit does. `probe`: the token of the one lease by which it is tried again, while that is out.

    `banned_until`: what people say, which no success lifts.
    """

    name: str
    failures: int = 0
    quarantined_until: Moment = 0
    probe: int = 0
    cap: int = 0
    banned_until: Moment = 0

    @property
    def half_open(self) -> bool:
        """Whether one lease at a time may leave by it, once its quarantine is over."""
        return self.quarantined_until > 0 and self.failures >= QUARANTINE_AFTER


_health = msgspec.json.Decoder(list[ExitHealth])


class ExitGate:
    """The exits about which there is something to heed, in one claim. `heeded`: whether there are any."""

    def __init__(self, tx: Transaction, rows: list[Any]) -> None:
        self._tx = tx
        self._known = {row[0]: ExitHealth(*row) for row in rows}
        self.heeded = bool(self._known)
        capped = any(health.cap for health in self._known.values())
        self._live: Counter[str] = Counter(tx.rows("count_leases_by_exit") if capped else ())
        self._reserved: Counter[str] = Counter()
        self._probes: dict[str, int] = {}

    def failures(self, name: str) -> int:
        known = self._known.get(name)
        return 0 if known is None else known.failures

    def free_at(self, name: str) -> Moment:
        """Until when it is left alone; 0 = it is not."""
        known = self._known.get(name)
        return 0 if known is None else max(known.quarantined_until, known.banned_until)

    def has_room(self, name: str) -> bool:
        """Whether one more lease may leave by it, as soon as it is not left alone."""
        known = self._known.get(name)
        if known is None:
            return True
        if known.half_open and (known.probe or self._reserved[name]):
            return False
        return not known.cap or self._live[name] + self._reserved[name] < known.cap

    def reserve(self, name: str) -> None:
        """One more lease may be granted by this exit, until `forget_reserved`."""
        self._reserved[name] += 1

    def forget_reserved(self) -> None:
        self._reserved.clear()

    def take(self, name: str, token: int) -> None:
        """A lease was granted."""
        known = self._known.get(name)
        if known is None:
            return
        self._live[name] += 1
        if known.half_open:
            known.probe = self._probes[name] = token

    def all_closed(self, exits: Iterable[str], horizon: Moment) -> bool:
        """Whether none of these exits can be used by that time."""
        return self.heeded and not any(self.free_at(name) <= horizon and self.has_room(name) for name in exits)

    def open_at(self, exits: Iterable[str]) -> Moment:
        """When the first of these exits may be of use again; where that cannot be known, when to look."""
        look = self._tx.now + LOOK_AGAIN
        return min((self.free_at(name) if self.has_room(name) else look for name in exits), default=look)

    def worth_a_look(self, name: str) -> Moment:
        """When a site may be visited by this exit, as far as the exit is concerned."""
        now = self._tx.now
        return min(self.free_at(name), now + HOPE) if self.has_room(name) else now + LOOK_AGAIN

    def write(self) -> None:
        """Note which leases try an exit again."""
        self._tx.write_rows("set_probes", list(self._probes.items()))
        self._probes.clear()


def learn(tx: Transaction, settlements: Collection[Settlement], probes: Collection[int]) -> None:
    """What these settlements tell about exits. `probes`: those of them by which an exit was tried again."""
    names = {name for settlement in settlements for name in (*settlement.exits_failed, *settlement.exits_ok)}
    known = {each.name: each for each in tx.read("find_health", _health, names=list(names), probes=list(probes))}
    for each in known.values():
        if each.probe in probes:
            each.probe = 0
    for settlement in settlements:
        for name in settlement.exits_failed:
            each = known.setdefault(name, ExitHealth(name))
            if each.quarantined_until > tx.now:
                continue  # it was under way when the exit was found to fail, and says nothing new
            each.failures += 1
            wait = quarantine(each.failures)
            if wait:
                each.quarantined_until = max(each.quarantined_until, tx.now + wait)
                each.probe = 0
        for name in settlement.exits_ok:
            if name in known:
                known[name] = ExitHealth(name)
    tx.write_rows("save_health", [(it.name, it.failures, it.quarantined_until, it.probe) for it in known.values()])
