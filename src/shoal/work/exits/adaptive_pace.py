"""Auto-throttle: slowing down for a site whose answers grow slow, or fail. Values in, values out."""

from __future__ import annotations

from collections import OrderedDict

from shoal.core.clock import Millis

SLOWER = 1.5
FASTER = 0.9
SLOWEST: Millis = 60_000
"""However badly a site does, it is asked this often."""

LEAST: Millis = 250
"""Where no delay was asked for, slowing down begins here."""

TOO_SLOW = 2.0
"""So many times its usual time for an answer, and a site is taken to suffer."""

TOLERATED = 100.0
"""Milliseconds over that; a quick site may be three times slower without anything being wrong."""

REMEMBERED = 10_000
_SHARE = 0.05
"""How much of each new answer goes into what is usual."""


class Paces:
    """What is usual for each site, as this worker has seen it; the pace itself is kept by the frontier, for all."""

    def __init__(self) -> None:
        self._usual: OrderedDict[str, float] = OrderedDict()

    def advise(self, site: str, delay: Millis, in_force: Millis, took: float | None) -> Millis | None:
        """The pace for the site from now on; None = as it is, 0 = back to the delay.

        `delay`: what was asked for. `in_force`: what the lease was granted at. `took`: milliseconds until the answer;
        None = the site failed.
        """
        if took is None or self._is_slow(site, took):
            return min(SLOWEST, max(LEAST, round(max(delay, in_force) * SLOWER)))
        if in_force <= delay:
            return None
        faster = round(in_force * FASTER)
        return 0 if faster <= max(delay, LEAST) else faster

    def _is_slow(self, site: str, took: float) -> bool:
        usual = self._usual.get(site)
        if usual is None:
            self._usual[site] = took
            if len(self._usual) > REMEMBERED:
                self._usual.popitem(last=False)
            return False
        slow = took > usual * TOO_SLOW + TOLERATED
        # An answer that is too slow is not what is usual, but in the end it may become so.
        self._usual[site] = usual + (took - usual) * (_SHARE / 5 if slow else _SHARE)
        return slow
