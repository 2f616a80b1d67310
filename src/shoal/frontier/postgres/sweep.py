"""Sweeping: what workers that died have left behind comes back, and what is over goes."""

from __future__ import annotations

from shoal.frontier.contract.frontier import Swept
from shoal.frontier.postgres.store.columns import record_reader
from shoal.frontier.postgres.store.connections import Connections
from shoal.frontier.shared.liveness import is_gone, read_notebook, this_machine

SWEEP_AT_MOST = 2000
"""How many rows of each kind one sweep touches."""

_swept = record_reader(Swept)


class PostgresSweeps:
    """The verb `sweep`, one bounded stretch at a time."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._looked_at: tuple[int | None, str | None] = (None, None)
        """The last slot, by number of the site and exit, that a sweep looked at: the next one goes on from there."""

    async def sweep(self) -> Swept:
        holders = await self._connections.rows("find_holders", this_machine())
        gone = [row for row in holders if is_gone(row["pid"], row["pid_started"])]
        hands = {row["worker"]: read_notebook(row["notebook"]) for row in gone}
        read = {worker: hand for worker, hand in hands.items() if hand is not None}
        in_hand = sorted(task for hand in read.values() for task in hand)
        values = (list(hands), list(read), in_hand, SWEEP_AT_MOST, *self._looked_at)
        row = await self._connections.row("sweep", self._connections.now(), *values)
        self._looked_at = (row["looked_at_site"], row["looked_at_exit"])
        return _swept(row)
