"""A budget of tasks: how many links a run may still have, so that one page cannot fill the store.

Only runs that have a limit are counted (jobs of web clients have one), and the store is asked only when a worker has
let in so many links since it asked last that it matters: a job costs one question in each worker that meets links of
it. Several workers together may let in a little more than the limit, each by at most that share.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from shoal.core.outcome import Settlement
from shoal.errors import UsageError
from shoal.frontier.contract.reader import Reader

SHARE = 20
"""A worker asks again when it has let in one part in so many of the limit."""

MOST_RUNS = 10_000
"""Runs that are remembered at once; of one that was forgotten, the store is asked again."""


class TaskBudget:
    """What one worker knows of how many tasks runs may still have."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._known: OrderedDict[str, _Known] = OrderedDict()

    async def room(self, run_id: str, wanted: int) -> int:
        """How many of so many more the run may have. Raises EngineError."""
        known = self._known.get(run_id)
        if known is None or known.is_worth_a_look(wanted):
            known = await self._look(run_id)
        return wanted if known is None or not known.most else max(0, min(wanted, known.most - known.total))

    def take(self, run_id: str, number: int, token: int | None = None) -> None:
        """So many are let in: with the lease of this token, when it is settled; None = they are stored already."""
        known = self._known.get(run_id)
        if known is None or not known.most:
            return
        if token is None:
            known.since += number
        else:
            known.pending[token] = number

    def heard(self, settlements: Iterable[Settlement]) -> None:
        """The store has heard of these: what came of them is stored, or never will be."""
        for settlement in settlements:
            known = self._known.get(settlement.run_id)
            if known is not None:
                known.since += known.pending.pop(settlement.token, 0)

    async def _look(self, run_id: str) -> _Known | None:
        try:
            run = await self._reader.run(run_id)
        except UsageError:  # it is gone: nothing of this will be stored
            return None
        known = self._known.setdefault(run_id, _Known())
        known.most, known.had, known.since = run.policy.max_tasks, run.counters.accepted, 0
        self._known.move_to_end(run_id)
        if len(self._known) > MOST_RUNS:
            self._known.popitem(last=False)
        return known


class _Known:
    """A run: how many tasks it may have (0 = any number), how many it had at the last look, how many were stored from
    here since then, and how many are on their way, by token."""

    __slots__ = ("had", "most", "pending", "since")

    def __init__(self) -> None:
        self.most = self.had = self.since = 0
        self.pending: dict[int, int] = {}

    @property
    def total(self) -> int:
        return self.had + self.since + sum(self.pending.values())

    def is_worth_a_look(self, wanted: int) -> bool:
        """Not where there is no limit, nor where it is reached for good."""
        return 0 < self.most > self.had and self.since + wanted > self.most // SHARE
