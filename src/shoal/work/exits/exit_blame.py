"""Exit blame: whose fault is it, where the exit may be at fault as well as the target?"""

from __future__ import annotations

from collections import OrderedDict

from shoal.core.outcome import Blame
from shoal.core.task import Lease
from shoal.fetch.protocol import FetchError

REMEMBERED = 10_000
"""How many sites are remembered to have answered."""


class ExitBlame:
    """Failures since the last answer, by exit, and the last answer of each site.

    An exit that fails again, although the site has answered by other exits since it failed first, is to blame. A page
    that fails whichever way one takes is not excused by that: the other pages that are had by the same exits speak for
    them. `remembered`: how many sites are.
    """

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._remembered = remembered
        self._turn = 0
        self._failing: dict[str, int] = {}
        self._answered: OrderedDict[str, int] = OrderedDict()

    def answered(self, lease: Lease) -> None:
        """There was an answer, whatever it said."""
        self._turn += 1
        self._failing.pop(lease.exit, None)
        self._answered[lease.task.site] = self._turn
        self._answered.move_to_end(lease.task.site)
        if len(self._answered) > self._remembered:
            self._answered.popitem(last=False)

    def resolve(self, lease: Lease, error: FetchError) -> FetchError:
        """The error without its doubt, if there is none left; else as it is."""
        if not error.doubtful:
            return error
        self._turn += 1
        if self._answered.get(lease.task.site, 0) > self._failing.setdefault(lease.exit, self._turn):
            return FetchError(error.text, Blame.EXIT)
        return error
