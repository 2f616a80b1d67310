"""Looking at the store: read-only scripts, added up over the partitions."""

from __future__ import annotations

import asyncio
import heapq
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from shoal.core.clock import Moment
from shoal.core.storable import findable
from shoal.core.task import lane_and_pool
from shoal.errors import UnknownRun
from shoal.frontier.contract.frontier import Counters, Duties, Run, WorkerInfo
from shoal.frontier.contract.reader import (
    SHOWN_TASKS,
    DeadLetter,
    HeldTask,
    Item,
    ItemPage,
    NotePage,
    SiteRecord,
    SlotRecord,
    Whereabouts,
    WorkerRecord,
)
from shoal.frontier.redis.codec.dead_letters import decode_letter
from shoal.frontier.redis.codec.items import stored_items
from shoal.frontier.redis.codec.tasks import Body
from shoal.frontier.redis.store.client import RedisStore
from shoal.frontier.redis.store.partitions import pairs
from shoal.frontier.redis.whereabouts import Search, whereabouts
from shoal.frontier.shared.letter_rows import dead_letter
from shoal.frontier.shared.run_rows import RUN_COUNTERS, StoredRun

PAGE = 500
POSITION_BITS = 44
"""A cursor holds one position for each partition, so many bits each."""

_LANE = b"lane:"

_SiteRow = tuple[str, int, int, int, int, int, int, int, bool, str]
_SlotRow = tuple[str, int, int, int, int, bool, str]
_sites = msgspec.msgpack.Decoder(tuple[str, list[_SiteRow]]).decode
_site = msgspec.msgpack.Decoder(tuple[_SiteRow | bool, list[_SlotRow]]).decode
_duties = msgspec.json.Decoder(Duties).decode
_worker = msgspec.msgpack.Decoder(list[Any]).decode
_leased = msgspec.msgpack.Decoder(tuple[str, str, int, int, int, int, int, int, Body]).decode


class RedisReader:
    """The `Reader` of this engine."""

    def __init__(self, store: RedisStore) -> None:
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
        run = await self._run({"run": findable(run_id)})
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
                question = {"run": findable(run_id), "cursor": position, "most": min(PAGE, limit - len(items))}
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
        question = {"run": findable(run_id), "after": after, "most": limit}
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
        tasks: dict[str, list[HeldTask]] = {}
        for partition in range(self._store.partitions):
            for packed, seen_at, leases, silent in await self._store.call("read_workers", partition, {}):
                info = _info(packed)
                known = found.get(info.worker_id, WorkerRecord(info, 0, 0, silent))
                found[info.worker_id] = WorkerRecord(
                    info, max(seen_at, known.seen_at), leases + known.leases, min(silent, known.silent)
                )
            await self._add_held(partition, tasks)
        records = (msgspec.structs.replace(record, tasks=tasks.get(name, ())) for name, record in found.items())
        return sorted(records, key=lambda record: -record.seen_at)

    async def scrapers(self) -> Mapping[str, int]:
        found: Counter[str] = Counter()
        for partition in range(self._store.partitions):
            row = await self._store.command("HGETALL", f"{self._store.tag(partition)}:tot")
            for kind, remaining in row.items():
                found[kind.partition(b"\0")[0].decode()] += int(remaining)
        return {scraper: remaining for scraper, remaining in found.items() if remaining > 0}

    async def sites(self, limit: int = 100) -> Sequence[SiteRecord]:
        return await self._first_sites(limit, None, _by_waiting)

    async def sites_of(self, queue: str, limit: int = 100) -> Sequence[SiteRecord]:
        return await self._first_sites(limit, findable(queue), _by_work)

    async def _first_sites(
        self, limit: int, queue: str | None, order: Callable[[SiteRecord], tuple[int | str, ...]]
    ) -> list[SiteRecord]:
        """All records are looked through, some hundred at a time; those that come first are kept."""
        best: list[SiteRecord] = []
        for partition in range(self._store.partitions):
            cursor = "0"
            while True:
                question = {"cursor": cursor, "queue": False if queue is None else queue}
                cursor, rows = _sites(await self._store.call("read_sites", partition, question))
                best = heapq.nsmallest(limit, [*best, *(_site_record(row) for row in rows)], key=order)
                if cursor == "0":
                    break
        return best

    async def site(self, site: str) -> SiteRecord | None:
        row, _ = await self._look_at(site)
        return None if isinstance(row, bool) else _site_record(row)

    async def slots(self, site: str) -> Sequence[SlotRecord]:
        _, rows = await self._look_at(site)
        return sorted((SlotRecord(*row[:-1], row[-1] or None) for row in rows), key=lambda slot: slot.exit)

    async def whereabouts(self, site: str, url: str, key: bytes, run_id: str | None = None) -> Sequence[Whereabouts]:
        """What waits aside (for its own time, or for its run) is not kept by site: there all of it is looked through,
        if the site has any."""
        search = Search(self._store, findable(site), findable(url))
        numbers = await search.runs(key, None if run_id is None else findable(run_id))
        live = await search.live(await self.now()) if numbers else {}
        found = []
        for number in numbers:
            run = await self._run({"number": number})
            if run is not None:
                places = live.get(number, []) + (await search.dead(number) if run.counters.dead else [])
                emptied_at, ended = await search.endings(number)
                found.append(whereabouts(run, [*places, *ended], emptied_at))
        return found

    async def notes(self, stream: str, cursor: int = 0, limit: int = 1000) -> NotePage:
        question = {"stream": findable(stream), "cursor": cursor, "most": limit}
        last, bodies = await self._store.call("read_notes", self._store.partition_of(stream), question)
        return NotePage(bodies, last if bodies else cursor)

    async def now(self) -> Moment:
        moment: Moment = await self._store.call("read_time")
        return moment

    async def _look_at(self, site: str) -> tuple[_SiteRow | bool, list[_SlotRow]]:
        return _site(await self._store.call("read_site", self._store.partition_of(site), {"site": findable(site)}))

    async def _add_held(self, partition: int, tasks: dict[str, list[HeldTask]]) -> None:
        """What workers have in hand in one partition, by looking through all leases, some hundred at a time."""
        cursor = b"0"
        while True:
            asked = {"cursor": cursor.decode(), "most": SHOWN_TASKS}
            cursor, rows = await self._store.call("read_held", partition, asked)
            for worker, run_id, lane, rest in rows:
                held = tasks.setdefault(worker.decode(), [])
                if len(held) < SHOWN_TASKS:
                    held.append(HeldTask(run_id.decode(), lane.decode(), _leased(b"\x99" + rest)[-1].url))
            if cursor == b"0":
                return

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
        counts = dict.fromkeys(RUN_COUNTERS, 0)
        lanes: dict[str, int] = {}
        for answer in answers:
            for name, value in pairs(answer[2]).items() if answer else ():
                if name.startswith(_LANE):
                    lane, _ = lane_and_pool(name.removeprefix(_LANE).decode())
                    lanes[lane] = lanes.get(lane, 0) + int(value)
                elif name.decode() in counts:
                    counts[name.decode()] += int(value)
        stored = StoredRun(
            row[b"id"].decode(),
            row[b"scraper"].decode(),
            row[b"mode"].decode(),
            row[b"state"].decode(),
            row[b"queue"].decode(),
            row[b"policy"],
            row.get(b"input"),
            int(row[b"created_at"]),
            int(row[b"ended_at"]) if b"ended_at" in row else None,
            row.get(b"move"),
        )
        return stored.run({lane: number for lane, number in lanes.items() if number}, Counters(**counts))


def _info(packed: bytes) -> WorkerInfo:
    """A worker as it was packed. Before schema 2 it did not speak of duties, nor of a notebook that it did not have."""
    known = _worker(packed)
    worker_id, machine, pid, started, notebook, duties = known + ["", "{}"][len(known) - 4 :]
    return WorkerInfo(worker_id, machine, pid, started, notebook or None, _duties(duties))


def _dead_letter(packed: bytes, lane: bytes) -> DeadLetter:
    it = decode_letter(packed)
    what = (it.id, it.body.url, it.site, lane.decode(), it.body.handler, it.attempts, it.crashes)
    return dead_letter((*what, it.reason, it.died_at))


def _site_record(row: _SiteRow) -> SiteRecord:
    return SiteRecord(*row[:-1], row[-1] or None)


def _by_waiting(site: SiteRecord) -> tuple[int | str, ...]:
    return (-site.waiting, site.site)


def _by_work(site: SiteRecord) -> tuple[int | str, ...]:
    return (-site.waiting * max(site.delay, site.site_delay), -site.waiting, site.site)
