"""Looking at the store: read-only scripts, added up over the partitions."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Sequence
from typing import Any

import msgspec

from shoal.errors import UnknownRun
from shoal.frontier.protocol import Counters, DeadLetter, Item, ItemPage, Run, SiteRecord, WorkerInfo, WorkerRecord
from shoal.frontier.redis.partitions import pairs
from shoal.frontier.redis.store import Store
from shoal.frontier.redis.wire import Body, stored_items
from shoal.outcome import Reason
from shoal.task import Policy, RunState

PAGE = 500
POSITION_BITS = 44
"""A cursor holds one position for each partition, so many bits each."""

_COUNTERS = Counters.__struct_fields__
_LANE = b"lane:"

_policy = msgspec.json.Decoder(Policy).decode
_reason = msgspec.json.Decoder(Reason).decode
_sites = msgspec.msgpack.Decoder(tuple[str, list[tuple[str, int, int, int, int, int]]]).decode
_worker = msgspec.msgpack.Decoder(list[Any]).decode
_letter = msgspec.msgpack.Decoder(tuple[int, str, int, int, int, int, str, int, Body]).decode


class RedisReader:
    """The `Reader` of this engine."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def runs(self) -> Sequence[Run]:
        newest = int(await self._meta("run") or 0)
        found: list[Run] = []
        for top in range(newest, 0, -PAGE):
            numbers = range(top, max(0, top - PAGE), -1)
            rows = await asyncio.gather(*(self._run({"number": number}) for number in numbers))
            found.extend(run for run in rows if run is not None)
        return found

    async def run(self, run_id: str) -> Run:
        run = await self._run({"run": run_id})
        if run is None:
            raise UnknownRun(run_id)
        return run

    async def items(self, run_id: str, cursor: int = 0, limit: int = 1000) -> ItemPage:
        items: list[Item] = []
        found = False
        for partition in range(self._store.partitions):
            shift = partition * POSITION_BITS
            position = cursor >> shift & (1 << POSITION_BITS) - 1
            while len(items) < limit:
                question = {"run": run_id, "cursor": position, "most": min(PAGE, limit - len(items))}
                answer = await self._store.call("read_items", partition, question)
                if answer is None:
                    if not partition:
                        raise UnknownRun(run_id)
                    break
                start, records = answer
                if not records:
                    break
                found = True
                for record in records:
                    items.extend(stored_items(record))
                    start += 1
                    if len(items) >= limit:
                        break
                cursor += start - position << shift
                position = start
        return ItemPage(items, cursor if found else None)

    async def dead(self, run_id: str, after: int = 0, limit: int = 1000) -> Sequence[DeadLetter]:
        question = {"run": run_id, "after": after, "most": limit}
        answers = await asyncio.gather(
            *(self._store.call("read_dead", partition, question) for partition in range(self._store.partitions))
        )
        if answers[0] is None:
            raise UnknownRun(run_id)
        letters = [
            _dead_letter(letter, lane) for answer in answers if answer for letter, lane in zip(*answer, strict=True)
        ]
        letters.sort(key=lambda letter: letter.task)
        return letters[:limit]

    async def workers(self) -> Sequence[WorkerRecord]:
        found: dict[str, WorkerRecord] = {}
        for partition in range(self._store.partitions):
            for packed, seen_at, leases in await self._store.call("read_workers", partition, {}):
                info = WorkerInfo(*_worker(packed))
                known = found.get(info.worker_id, WorkerRecord(info, 0, 0))
                found[info.worker_id] = WorkerRecord(info, max(seen_at, known.seen_at), leases + known.leases)
        return sorted(found.values(), key=lambda record: -record.seen_at)

    async def sites(self, limit: int = 100) -> Sequence[SiteRecord]:
        """All records are looked through, some hundred at a time; those with most waiting tasks are kept."""
        best: list[SiteRecord] = []
        for partition in range(self._store.partitions):
            cursor = "0"
            while True:
                cursor, rows = _sites(await self._store.call("read_sites", partition, {"cursor": cursor}))
                best = heapq.nsmallest(limit, [*best, *(SiteRecord(*row) for row in rows)], key=_by_waiting)
                if cursor == "0":
                    break
        return best

    async def _meta(self, name: str) -> bytes | None:
        answer: bytes | None = await self._store.command("HGET", f"{self._store.tag(0)}:meta", name)
        return answer

    async def _run(self, question: dict[str, Any]) -> Run | None:
        answers = await asyncio.gather(
            *(self._store.call("read_run", partition, question) for partition in range(self._store.partitions))
        )
        if answers[0] is None:
            return None
        row = pairs(answers[0][1])
        counts = dict.fromkeys(_COUNTERS, 0)
        lanes: dict[str, int] = {}
        for answer in answers:
            for name, value in pairs(answer[2]).items() if answer else ():
                if name.startswith(_LANE):
                    lane = name.removeprefix(_LANE).decode()
                    lanes[lane] = lanes.get(lane, 0) + int(value)
                elif name.decode() in counts:
                    counts[name.decode()] += int(value)
        return Run(
            row[b"id"].decode(),
            row[b"scraper"].decode(),
            row[b"mode"].decode(),
            RunState(row[b"state"].decode()),
            row[b"queue"].decode(),
            _policy(row[b"policy"]),
            row.get(b"input"),
            int(row[b"created_at"]),
            int(row[b"ended_at"]) if b"ended_at" in row else None,
            Counters(**counts),
            {lane: number for lane, number in lanes.items() if number},
        )


def _dead_letter(packed: bytes, lane: bytes) -> DeadLetter:
    task, site, _, attempts, crashes, died_at, reason, _, body = _letter(b"\x99" + packed)
    return DeadLetter(task, body.url, site, lane.decode(), body.handler, attempts, crashes, _reason(reason), died_at)


def _by_waiting(site: SiteRecord) -> tuple[int, str]:
    return (-site.waiting, site.site)
