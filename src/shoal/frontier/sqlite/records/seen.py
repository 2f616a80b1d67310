"""Which keys a run has seen: those of late one behind the other, all others sorted.

Keys are random: to put them into a sorted table as they come would change a page for each. So they are appended as they
come, and known by heart. When there are many, a slice of them at a time goes to the sorted table: those that begin
alike, which lie close together there and share pages.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from shoal.frontier.shared.seen import SEEN_BYTES

if TYPE_CHECKING:
    from shoal.frontier.sqlite.store.transaction import Transaction

SLICES = 64
"""By the first six bits of a key."""

LATELY_AT_MOST = 16_384
"""When more keys wait, some go to the sorted table."""


class SeenLately:
    """The keys that wait for their place in the sorted table, as (run, key), by the slice that they belong to.

    `most`: so many wait at most.
    """

    def __init__(self, most: int = LATELY_AT_MOST) -> None:
        self._most = most
        self.forget()

    def forget(self) -> None:
        """Know nothing: everything is read before the next use."""
        self.stale = True
        self._slices: list[set[tuple[int, bytes]]] = [set() for _ in range(SLICES)]
        self._count = 0
        self._last = 0  # number of the last row that is known
        self._sorted = 0  # how many slices have been sorted in, round after round
        self._until = 0  # last row that was there when this round began

    def accept(self, tx: Transaction, run: int, keys: Collection[bytes]) -> set[bytes]:
        """Those of these keys (`shoal.frontier.shared.seen`) that the run has not seen. From now on it has."""
        if self.stale:
            self._catch_up(tx)
        new = [key for key in keys if (run, key) not in self._slices[key[0] >> 2]]
        if not new:
            return set()
        known = set(tx.rows("find_seen", run=run, keys=b"".join(new), indices=list(range(len(new)))))
        if known:
            new = [key for index, key in enumerate(new) if index not in known]
        if new:
            self._last = tx.insert("append_keys", run=run, keys=b"".join(new))
            self._add(run, new)
            while self._count > self._most:
                self._sort_in(tx)
        return set(new)

    def sort_all(self, tx: Transaction) -> None:
        """Move everything to the sorted table."""
        if self.stale:
            self._catch_up(tx)
        for _ in range(SLICES):
            self._sort_in(tx)
        tx.run("delete_keys", until=self._last)

    def _catch_up(self, tx: Transaction) -> None:
        """Leave to the sorted table what others have sorted in, and read what they have appended."""
        before = self._sorted
        self._sorted, self._until = tx.rows("find_round") or (0, 0)
        for number in range(before, min(self._sorted, before + SLICES)):
            self._empty(number % SLICES)
        for number, run, keys in tx.table("read_keys", after=self._last):
            self._add(run, [keys[at : at + SEEN_BYTES] for at in range(0, len(keys), SEEN_BYTES)])
            self._last = number
        self.stale = False

    def _add(self, run: int, keys: Collection[bytes]) -> None:
        for key in keys:
            self._slices[key[0] >> 2].add((run, key))
        self._count += len(keys)

    def _empty(self, number: int) -> list[tuple[int, bytes]]:
        keys = sorted(self._slices[number])
        self._slices[number] = set()
        self._count -= len(keys)
        return keys

    def _sort_in(self, tx: Transaction) -> None:
        """Move the next slice to the sorted table. After a whole round, what was appended before it is not needed."""
        tx.write_rows("sort_in_keys", self._empty(self._sorted % SLICES))
        self._sorted += 1
        if self._sorted % SLICES == 0:
            tx.run("delete_keys", until=self._until)
            self._until = self._last
        tx.run("set_round", sorted=self._sorted, until=self._until)
