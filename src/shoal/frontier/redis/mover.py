"""Runs that leave this store for another, and runs that come from one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any

from shoal.core.clock import Moment
from shoal.errors import UnknownRun
from shoal.frontier.contract.mover import Cargo, CargoCount, Move, MoveState, PackedRun, job_stays
from shoal.frontier.redis.codec.cargo import ENDING_BUCKETS, dead_row, ending_row, site_row, task_row
from shoal.frontier.redis.codec.encoding import opaque
from shoal.frontier.redis.codec.items import packed_items
from shoal.frontier.redis.codec.move_rows import Packing
from shoal.frontier.redis.codec.runs import run_question
from shoal.frontier.redis.codec.tasks import BUCKETS, key_row
from shoal.frontier.redis.reader import RedisReader
from shoal.frontier.redis.store.client import RedisStore
from shoal.frontier.redis.store.partitions import Partitions, pairs
from shoal.frontier.shared.move_packing import already_there, mark_of, new_run, not_arriving

BUCKETS_AT_ONCE = 2048


class RedisMover:
    """The `Mover` of this engine."""

    def __init__(self, store: RedisStore, partitions: Partitions, reader: RedisReader) -> None:
        self._store = store
        self._partitions = partitions
        self._reader = reader

    async def now(self) -> Moment:
        return int(await self._store.call("read_time"))

    async def turn(self, run_id: str, before: Move | None, after: Move) -> bool:
        """Partitions grant nothing once they know that a run is leaving; so where nothing is held, nothing comes."""
        if after.state is MoveState.LEFT and await self.held(run_id):
            return False
        if after.state is MoveState.LEAVING and await self._is_job(run_id):
            raise job_stays(run_id)
        standing = await self._partitions.change(
            "turn",
            run_id,
            before="" if before is None else mark_of(before),
            after=mark_of(after),
            state=after.state.value,
            paused=after.paused,
        )
        return standing.move == mark_of(after)

    async def held(self, run_id: str) -> int:
        found = [await self._store.call("read_run", p, {"run": run_id}) for p in self._everywhere]
        if found[0] is None:
            raise UnknownRun(run_id)
        held = 0
        for counts in (pairs(answer[2]) for answer in found if answer is not None):
            lanes = sum(int(value) for name, value in counts.items() if name.startswith(b"lane:"))
            held += lanes - int(counts.get(b"waiting", 0)) + int(counts.get(b"outbox", 0))
        return held

    async def pack_run(self, run_id: str) -> PackedRun:
        run = await self._reader.run(run_id)
        found = await self._store.call("read_run", 0, {"run": run_id})
        tags = [self._store.tag(partition) for partition in self._everywhere]
        serials = [int(await self._store.command("HGET", f"{tag}:meta", "serial") or 0) for tag in tags]
        return PackedRun(
            run_id=run_id,
            scraper=run.scraper,
            mode=run.mode,
            queue=None if run.queue == run_id else run.queue,
            policy=run.policy,
            input=run.input,
            created_at=run.created_at,
            sealed=pairs(found[1])[b"sealed"] == b"1",
            numbers=(0, (max(serials) + 1) * self._store.partitions),
        )

    async def pack(self, run_id: str) -> AsyncIterator[Cargo]:
        run = await self._reader.run(run_id)
        number = int((await self._store.call("read_run", 0, {"run": run_id}))[3])
        packing = Packing(self._store, run, number)
        async for cargo in packing.everything(await self.now()):
            yield cargo

    async def arrive(self, run: PackedRun, move: Move) -> int:
        mark = mark_of(move)
        known = await self._store.call("read_run", 0, {"run": run.run_id})
        if known is not None:
            raise already_there(run.run_id)
        more = {"state": "paused", "sealed": run.sealed, "created_at": run.created_at, "move": mark}
        await self._store.call("create_run", 0, run_question(new_run(run)) | more)
        if self._store.partitions > 1:
            await self._partitions.introduce(run.run_id, self._partitions.others)
        low, high = run.numbers
        for partition in self._everywhere:
            await self._store.call("reserve_numbers", partition, {"run": run.run_id, "span": high - low + 1})
        return -low

    async def unpack(self, run_id: str, move: Move, cargo: Cargo) -> None:
        tasks: dict[int, list[Any]] = {}
        for task in cargo.tasks:
            tasks.setdefault(self._store.partition_of(task.site), []).extend(task_row(task))
        letters: dict[int, list[Any]] = {}
        for letter in cargo.letters:
            letters.setdefault(self._store.partition_of(letter.site), []).extend(dead_row(letter))
        sites: dict[int, list[Any]] = {}
        for site in cargo.sites:
            sites.setdefault(self._store.partition_of(site.site), []).append(site_row(site))
        await self._bring(run_id, move, "unpack_tasks", tasks)
        await self._bring(run_id, move, "unpack_letters", letters)
        await self._bring(run_id, move, "unpack_sites", sites)
        if cargo.items:
            await self._bring(run_id, move, "unpack_items", {0: [opaque(packed_items(batch)) for batch in cargo.items]})
        if cargo.keys:  # which site a key belongs to cannot be told: each partition gets to know them all
            keys = [value for key in cargo.keys for value in key_row(key)]
            await self._bring(run_id, move, "unpack_keys", dict.fromkeys(self._everywhere, keys))
        if cargo.endings:  # the same
            endings = [value for ending in cargo.endings for value in ending_row(ending)]
            await self._bring(run_id, move, "unpack_endings", dict.fromkeys(self._everywhere, endings))

    async def stored(self, run_id: str) -> CargoCount:
        answers = [await self._store.call("count_stored", p, {"run": run_id}) for p in self._everywhere]
        number = answers[0][3]
        keys = await asyncio.gather(*(self._store.call("count_keys", 0, part) for part in _parts(number, BUCKETS)))
        tasks, letters, items = (sum(answer[column] for answer in answers) for column in range(3))
        return CargoCount(tasks, letters, items, sum(keys))

    async def count(self, run_id: str, move: Move, counters: Mapping[str, int]) -> None:
        await self._ask(0, run_id, move, "count_run", {"counts": dict(counters)})

    async def forget(self, run_id: str) -> None:
        """The first partition last: as long as that knows the run, this can be done again."""
        for partition in reversed(self._everywhere):
            found = await self._store.call("read_run", partition, {"run": run_id})
            if found is not None:
                for verb, buckets in (("forget_keys", BUCKETS), ("forget_endings", ENDING_BUCKETS)):
                    parts = _parts(int(found[3]), buckets)
                    await asyncio.gather(*(self._store.call(verb, partition, part) for part in parts))
                await self._store.call("forget_run", partition, {"run": run_id})

    async def _is_job(self, run_id: str) -> bool:
        found = await self._store.call("read_run", 0, {"run": run_id})
        return found is not None and bool(await self._store.command("EXISTS", f"{self._store.tag(0)}:j:{found[3]}"))

    async def _bring(self, run_id: str, move: Move, verb: str, rows: Mapping[int, Sequence[Any]]) -> None:
        await asyncio.gather(
            *(self._ask(partition, run_id, move, verb, {"rows": some}) for partition, some in rows.items())
        )

    async def _ask(self, partition: int, run_id: str, move: Move, verb: str, more: dict[str, Any]) -> None:
        question = {"run": run_id, "move": mark_of(move), **more}
        if not await self._store.call(verb, partition, question):
            raise not_arriving(run_id)

    @property
    def _everywhere(self) -> range:
        return range(self._store.partitions)


def _parts(number: int, buckets: Sequence[str]) -> Iterable[dict[str, Any]]:
    for first in range(0, len(buckets), BUCKETS_AT_ONCE):
        yield {"number": number, "buckets": buckets[first : first + BUCKETS_AT_ONCE]}
