"""All that belongs to a run that leaves, read where it lies: nothing is changed, little is held in memory.

In a queue of its own a run that is leaving stands still. In a shared queue, those who pass by set its tasks aside, so
that one may be met twice, but never missed: what waits for its time is read first, what was set aside is read last.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec

from shoal.core.clock import Moment
from shoal.core.task import pooled_lane
from shoal.frontier.contract.frontier import Run
from shoal.frontier.contract.mover import (
    CLOCKS_KEPT,
    Cargo,
    PackedEnding,
    PackedItems,
    PackedLetter,
    PackedSite,
    PackedSlot,
    PackedTask,
)
from shoal.frontier.redis.codec.cargo import ENDING_BUCKETS
from shoal.frontier.redis.codec.items import unpacked_items
from shoal.frontier.redis.codec.tasks import BUCKETS, Body, full_key
from shoal.frontier.redis.store.client import RedisStore
from shoal.frontier.shared.move_packing import AT_ONCE, ITEMS_AT_ONCE

FEWEST_BUCKETS, MOST_BUCKETS = 16, 2048
ENDING_BUCKETS_AT_ONCE = 64

WHOLE_SITE = ""
"""In place of an exit: the clock of a site over all its exits."""

_entry = msgspec.msgpack.Decoder(tuple[int, int, int, int, int, int, Body]).decode
_letter = msgspec.msgpack.Decoder(tuple[int, str, int, int, int, int, str, int, Body]).decode
_line = msgspec.msgpack.Decoder(tuple[str, str, str, str, bool]).decode
_sites = msgspec.msgpack.Decoder(tuple[str, list[tuple[str, int, list[PackedSlot]]]]).decode


class Packing:
    """One run, by its number, over all partitions."""

    def __init__(self, store: RedisStore, run: Run, number: int) -> None:
        self._store = store
        self._run = run
        self._number = number
        self._shared = run.queue != run.run_id
        self._met: set[int] = set()
        """Tasks of a shared queue that were read already."""

    async def everything(self, now: Moment) -> AsyncIterator[Cargo]:
        for partition in range(self._store.partitions):
            async for rows in self._scan("pack_sites", partition, {"since": now - CLOCKS_KEPT}):
                yield Cargo(sites=[_site(*row) for row in rows])
            lanes = await self._lanes(partition)
            for kind in ("a", "ready", "h"):
                tasks = self._ready(partition, lanes) if kind == "ready" else self._aside(partition, lanes, kind)
                async for some in tasks:
                    yield Cargo(tasks=some)
            async for letters in self._letters(partition):
                yield Cargo(letters=letters)
            async for items in self._items(partition):
                yield Cargo(items=items)
        async for keys in self._keys():
            yield Cargo(keys=keys)
        async for endings in self._endings():
            yield Cargo(endings=endings)

    async def _lanes(self, partition: int) -> dict[int, str]:
        """The lines that may hold tasks of the run, and their pooled_lanes."""
        tag = self._store.tag(partition)
        numbers = await self._store.command("SMEMBERS", f"{tag}:ql:{self._run.queue}")
        lines = {int(n): _line(await self._store.command("HGET", f"{tag}:ln", n)) for n in numbers}
        return {number: pooled_lane(line[2], line[3]) for number, line in lines.items()}

    async def _scan(self, script: str, partition: int, question: dict[str, Any]) -> AsyncIterator[list[Any]]:
        cursor = "0"
        while True:
            answer = await self._store.call(script, partition, {**question, "cursor": cursor})
            if isinstance(answer, bytes):
                cursor, rows = _sites(answer)
            else:
                cursor, rows = answer[0].decode(), answer[1]
            if rows:
                yield rows
            if cursor == "0":
                return

    async def _aside(self, partition: int, lanes: dict[int, str], kind: str) -> AsyncIterator[list[PackedTask]]:
        async for rows in self._scan("pack_aside", partition, {"kind": kind, "number": self._number}):
            yield [
                task
                for line, site, entry, at in rows
                for task in self._tasks([entry], site.decode(), lanes[line], int(float(at)))
            ]

    async def _ready(self, partition: int, lanes: dict[int, str]) -> AsyncIterator[list[PackedTask]]:
        """Where sites have few tasks, those of several together. New sites first: they may become others meanwhile."""
        tasks: list[PackedTask] = []
        for script, (line, lane) in itertools.product(("pack_new", "pack_ready"), lanes.items()):
            async for rows in self._scan(script, partition, {"line": line, "whole": self._shared}):
                for name, entries, overflows in rows:
                    site = name.decode()
                    tasks += self._tasks(entries, site, lane)
                    for priority, is_sorted in overflows:
                        kind = "z" if is_sorted else "o"
                        key = f"{self._store.tag(partition)}:{kind}:{line}:{priority.decode()}:{site}"
                        async for some in self._overflow(key, is_sorted=bool(is_sorted)):
                            if len(tasks) + len(some) > AT_ONCE:
                                yield tasks
                                tasks = []
                            tasks += self._tasks(some, site, lane)
                if len(tasks) >= AT_ONCE:
                    yield tasks
                    tasks = []
        if tasks:
            yield tasks

    async def _overflow(self, key: str, *, is_sorted: bool) -> AsyncIterator[list[bytes]]:
        first = 0
        while True:
            entries = await self._store.command("ZRANGE" if is_sorted else "LRANGE", key, first, first + AT_ONCE - 1)
            if entries:
                yield entries
            if len(entries) < AT_ONCE:
                return
            first += AT_ONCE

    def _tasks(self, entries: Sequence[bytes], site: str, lane: str, not_before: Moment = 0) -> list[PackedTask]:
        tasks = []
        for packed in entries:
            number, priority, run, expires, attempts, crashes, body = _entry(b"\x97" + packed)
            if run != self._number or number in self._met:
                continue
            if self._shared:
                self._met.add(number)
            what = (body.url, site, lane, body.handler, priority, body.depth, attempts, crashes, body.extra)
            tasks.append(PackedTask(number, *what, not_before or None, expires or None))
        return tasks

    async def _letters(self, partition: int) -> AsyncIterator[list[PackedLetter]]:
        after = 0
        while True:
            question = {"run": self._run.run_id, "after": after, "most": AT_ONCE, "with_pools": True}
            answer = await self._store.call("read_dead", partition, question)
            if answer is None or not answer[0]:
                return
            letters = [_unpacked_letter(*row) for row in zip(*answer, strict=True)]
            after = letters[-1].number
            yield letters

    async def _items(self, partition: int) -> AsyncIterator[list[PackedItems]]:
        position = 0
        while True:
            question = {"run": self._run.run_id, "cursor": position, "most": ITEMS_AT_ONCE}
            answer = await self._store.call("read_items", partition, question)
            if answer is None or not answer[1]:
                return
            yield [unpacked_items(record) for record in answer[1]]
            position = answer[0] + len(answer[1])

    async def _keys(self) -> AsyncIterator[list[bytes]]:
        """A key that several partitions know, once. As many sets are read at a time as give a good number of keys."""
        first, size = 0, FEWEST_BUCKETS
        while first < len(BUCKETS):
            buckets = BUCKETS[first : first + size]
            found: set[bytes] = set()
            for partition in range(self._store.partitions):
                answer = await self._store.call("pack_keys", partition, {"number": self._number, "buckets": buckets})
                for offset, numbers in enumerate(answer):
                    found.update(full_key(int(number), first + offset) for number in numbers)
            keys = sorted(found)
            for start in range(0, len(keys), AT_ONCE):
                yield keys[start : start + AT_ONCE]
            first += size
            size = min(MOST_BUCKETS, 2 * size) if len(keys) < AT_ONCE else max(FEWEST_BUCKETS, size // 2)

    async def _endings(self) -> AsyncIterator[list[PackedEnding]]:
        """What was brought from another store lies in all partitions, until its page ends or is let in again in one."""
        for first in range(0, len(ENDING_BUCKETS), ENDING_BUCKETS_AT_ONCE):
            question = {"number": self._number, "buckets": ENDING_BUCKETS[first : first + ENDING_BUCKETS_AT_ONCE]}
            own: dict[bytes, PackedEnding] = {}
            brought: list[PackedEnding] = []
            for partition in range(self._store.partitions):
                for *row, was_brought in await self._store.call("pack_endings", partition, question):
                    ending = _ending(*row)
                    if was_brought:
                        brought.append(ending)
                    else:
                        own[ending.name] = ending
            copies = Counter(ending.name for ending in brought)
            whole = {it.name: it for it in brought if copies[it.name] == self._store.partitions}
            if own or whole:
                yield [*(whole | own).values()]


def _ending(name: bytes, how: bytes, at: bytes, reason: bytes | None, url: bytes | None) -> PackedEnding:
    told = [None if value is None else value.decode() for value in (reason, url)]
    return PackedEnding(name, how.decode(), int(at), *told)


def _site(name: str, crawl_delay: int, slots: list[PackedSlot]) -> PackedSite:
    begun_at = next((slot.begun_at for slot in slots if slot.exit == WHOLE_SITE), 0)
    return PackedSite(name, crawl_delay, begun_at, [slot for slot in slots if slot.exit != WHOLE_SITE])


def _unpacked_letter(packed: bytes, lane: bytes) -> PackedLetter:
    number, site, _, attempts, crashes, died_at, reason, priority, body = _letter(b"\x99" + packed)
    what = (body.url, site, lane.decode(), body.handler, priority, body.depth, attempts, crashes, body.extra)
    return PackedLetter(number, *what, reason, died_at)
