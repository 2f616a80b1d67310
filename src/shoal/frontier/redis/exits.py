"""The book of exits, and what people say about them: each verb in all partitions, as each judges for itself."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from shoal.core.clock import Millis, Moment
from shoal.core.storable import findable
from shoal.frontier.contract.exits import ExitRecord, NewExit
from shoal.frontier.redis.codec.encoding import encode, opaque
from shoal.frontier.redis.store.client import RedisStore
from shoal.frontier.redis.store.partitions import pairs

MOST_BANS = 100

_book = msgspec.msgpack.Decoder(NewExit).decode
_health = msgspec.msgpack.Decoder(list[tuple[str, int, Moment]]).decode
_bans = msgspec.msgpack.Decoder(list[tuple[str, str, Moment]]).decode


class RedisExits:
    """The `Exits` of this engine."""

    def __init__(self, store: RedisStore) -> None:
        self._store = store

    async def put(self, exits: Sequence[NewExit]) -> None:
        """The first partition keeps the book that is read. Each keeps its share of a cap, and at least one lease."""
        number = self._store.partitions
        for partition in range(number):
            rows = [(each.name, opaque(encode(each)), share(each.cap, partition, number)) for each in exits]
            await self._store.call("put_exits", partition, {"exits": rows})

    async def remove(self, names: Sequence[str]) -> int:
        return len({name for gone in await self._everywhere("remove_exits", {"names": names}) for name in gone})

    async def all(self) -> Sequence[ExitRecord]:
        failures: Counter[str] = Counter()
        until: Counter[str] = Counter()
        bans: dict[str, list[tuple[str, Moment]]] = {}
        answers = await self._everywhere("read_exits", {})
        book = {name.decode(): _book(said) for name, said in pairs(answers[0][0]).items()}
        for _, health, banned in answers:
            for name, failed, left_alone_until in _health(health):
                failures[name] = max(failures[name], failed)
                until[name] = max(until[name], left_alone_until)
            for name, site, over in _bans(banned):
                bans.setdefault(name, []).append((site, over))
        live = await self._live()
        found = []
        for name in sorted({*book, *failures, *bans}):
            said = book.get(name, NewExit(name, "", ()))
            soonest = sorted(bans.get(name, ()), key=lambda ban: ban[1])[:MOST_BANS]
            health_now = (failures[name], until[name], live[name])
            found.append(ExitRecord(name, said.address, said.pools, said.cap, *health_now, tuple(soonest)))
        return found

    async def ban(self, name: str, wait: Millis, site: str | None = None) -> None:
        question = {"exit": name, "wait": wait, "site": site}
        if site is None:
            await self._everywhere("ban_exit", question)
        else:
            await self._store.call("ban_exit", self._store.partition_of(site), question)

    async def release(self, name: str, site: str | None = None) -> None:
        partitions = range(self._store.partitions) if site is None else [self._store.partition_of(site)]
        for partition in partitions:
            while await self._store.call("release_exit", partition, {"exit": name, "site": site}):
                pass

    async def release_site(self, site: str) -> bool:
        cursor = b"0"
        while True:
            asked = {"site": findable(site), "cursor": cursor.decode()}
            cursor = await self._store.call("release_site", self._store.partition_of(site), asked)
            if cursor in (None, b"0"):
                return cursor is not None

    async def judge(self, failed: Sequence[str], well: Sequence[str], heard_by: int) -> None:
        """Tell all partitions but the one that has heard it which exits failed and which work."""
        others = [partition for partition in range(self._store.partitions) if partition != heard_by]
        question = {"failed": failed, "well": well}
        await asyncio.gather(*(self._store.call("judge_exits", partition, question) for partition in others))

    async def _live(self) -> Counter[str]:
        """How many leases are out by each exit, by looking through all of them, some hundred at a time."""
        live: Counter[str] = Counter()
        for partition in range(self._store.partitions):
            cursor = b"0"
            while True:
                cursor, rows = await self._store.call("count_exits", partition, {"cursor": cursor.decode()})
                for name, number in rows:
                    live[name.decode()] += number
                if cursor == b"0":
                    break
        return live

    async def _everywhere(self, script: str, question: object) -> list[Any]:
        calls = (self._store.call(script, partition, question) for partition in range(self._store.partitions))
        return list(await asyncio.gather(*calls))


def share(cap: int, partition: int, partitions: int) -> int:
    """What a partition may grant of a cap: together as much as the cap says, but each at least one; 0 = no limit."""
    return max(1, cap // partitions + (partition < cap % partitions)) if cap else 0
