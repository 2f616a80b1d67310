"""Settlements: they take effect where their task is. What they say to other partitions follows, whatever crashes."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.core.notes import Note
from shoal.core.outcome import Settlement
from shoal.frontier.redis.codec.leases import Exchanged
from shoal.frontier.redis.codec.notes import remembered
from shoal.frontier.redis.codec.settlements import HERE, settlement_groups
from shoal.frontier.redis.exits import RedisExits
from shoal.frontier.redis.store.client import RedisStore
from shoal.frontier.redis.store.partitions import Partitions
from shoal.frontier.shared.refusals import storable_only


class RedisSettling:
    """What belongs to a settlement besides the script that gives effect to it, where there are several partitions."""

    def __init__(self, store: RedisStore, partitions: Partitions, exits: RedisExits) -> None:
        self._store = store
        self._partitions = partitions
        self._exits = exits

    def rows(self, settlements: Sequence[Settlement], home: int) -> list[object]:
        """Settlements for one partition: links to others go into its outbox."""

        def partition_of(site: str) -> int:
            target = self._store.partition_of(site)
            return HERE if target == home else target

        with storable_only(self._store.name):
            return settlement_groups(settlements, partition_of)

    async def keep_notes(self, notes: Sequence[Note]) -> None:
        apart: dict[int, list[Note]] = {}
        for note in notes:
            apart.setdefault(self._store.partition_of(note.stream), []).append(note)
        for partition, some in apart.items():
            await self._store.call("remember", partition, remembered(some, ()))

    async def spread_judgement(self, partition: int, settlements: Sequence[Settlement], late: Sequence[int]) -> None:
        """What one partition has learnt of exits is told to the others. If this is cut short, they find out later."""
        heard = [settlement for place, settlement in enumerate(settlements, 1) if place not in late]
        failed = [name for settlement in heard for name in settlement.exits_failed]
        well = [name for settlement in heard for name in settlement.exits_ok]
        if failed or well:
            await self._exits.judge(failed, well, partition)

    async def follow_up(self, partition: int, answer: Exchanged) -> set[int]:
        """Carry links to their partitions, and end runs that have nothing left; if this is cut short, a sweep does it.

        Answers the partitions that links were carried to.
        """
        quiet = set(answer.quiet)
        if answer.outbox:
            parcels = await self._store.call("read_outbox", partition, {"serials": [row[0] for row in answer.outbox]})
            for serial, parcel in parcels:
                quiet.update(await self._partitions.deliver(partition, int(serial), parcel))
        await self._partitions.finish(quiet)
        return {target for _, target in answer.outbox}
