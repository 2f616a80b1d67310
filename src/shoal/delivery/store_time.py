"""What the clock of a store on another machine says now, as far as it can be known from here."""

from __future__ import annotations

from shoal.core.clock import Moment

DRIFT = 0.001
"""How much faster or slower than ours the store's clock may run: a millisecond in a second, more than a clock is ever
corrected by in passing."""


class StoreTime:
    """What has to be added to `elapsed` to get the store's time: at most `shift`, and at least `slack` less than that.

    A store says in each answer what time it was, which was after the question was sent and before its answer came. Many
    answers together tell more than the last one: a slow one does not make unknown what a quick one has told.
    """

    __slots__ = ("_as_of", "_least", "_most")

    def __init__(self) -> None:
        self._least = self._most = self._as_of = 0.0

    @property
    def shift(self) -> float:
        return self._most

    @property
    def slack(self) -> float:
        return self._most - self._least

    def hear(self, sent: float, received: float, now: Moment, *, alone: bool = False) -> None:
        """An answer has come. `sent`, `received`: by `elapsed`. `now`: as it says, in whole milliseconds.

        `alone`: what was heard before is of other clocks. It is also forgotten where it contradicts what is heard now:
        then the store's clock has been set.
        """
        least, most = now - received, now + 1 - sent
        drifted = DRIFT * (received - self._as_of)
        before_least, before_most = self._least - drifted, self._most + drifted
        if not alone and self._as_of and before_least <= most and least <= before_most:
            least, most = max(least, before_least), min(most, before_most)
        self._least, self._most, self._as_of = least, most, received
