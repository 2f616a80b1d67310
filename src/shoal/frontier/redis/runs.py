"""Runs: they are made, change their state, and get their dead letters back. The first partition decides."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from shoal.core.storable import findable
from shoal.core.task import RunState
from shoal.errors import BeingMoved, UnknownRun, UsageError
from shoal.frontier.contract.frontier import NewRun, Run
from shoal.frontier.redis.codec.runs import run_question
from shoal.frontier.redis.reader import RedisReader
from shoal.frontier.redis.store.client import RedisStore
from shoal.frontier.redis.store.partitions import Partitions

_letters = msgspec.msgpack.Decoder(tuple[str, int, bool]).decode


class RedisRuns:
    """The verbs of the frontier that concern a run as a whole."""

    def __init__(self, store: RedisStore, partitions: Partitions, reader: RedisReader) -> None:
        self._store = store
        self._partitions = partitions
        self._reader = reader

    async def create(self, run: NewRun) -> Run:
        await self._store.call("create_run", 0, run_question(run))
        if self._store.partitions > 1:
            await self._partitions.introduce(run.run_id, self._partitions.others)
        return await self._reader.run(run.run_id)

    async def seal(self, run_id: str) -> None:
        standing = await self._partitions.change("seal", run_id)
        if not standing.sealed:
            raise BeingMoved(run_id, arriving="arriving" in str(standing.move))

    async def pause(self, run_id: str) -> None:
        await self._partitions.change("pause", run_id)

    async def resume(self, run_id: str) -> None:
        standing = await self._partitions.change("resume", run_id)
        if standing.state == RunState.PAUSED:
            raise BeingMoved(run_id, arriving=True)

    async def cancel(self, run_id: str) -> None:
        await self._partitions.change("cancel", run_id)

    async def requeue_dead(self, run_id: str, tasks: Sequence[int] | None) -> int:
        return await self._dead("requeue_dead", run_id, tasks)

    async def purge_dead(self, run_id: str, tasks: Sequence[int] | None) -> int:
        return await self._dead("purge_dead", run_id, tasks)

    async def _dead(self, script: str, run_id: str, tasks: Sequence[int] | None) -> int:
        done = 0
        known = False
        for partition in range(self._store.partitions):
            some = None if tasks is None else [task for task in tasks if task % self._store.partitions == partition]
            more = True
            while more:
                answer = await self._store.call(script, partition, {"run": findable(run_id), "tasks": some})
                if answer is None:
                    break
                known = True
                state, number, more = _letters(answer)
                if state == "cancelled" and script == "requeue_dead":
                    raise UsageError(f"Run {run_id!r} was cancelled; its dead letters cannot be tried again.")
                if state in ("leaving", "arriving"):
                    raise BeingMoved(run_id, arriving=state == "arriving")
                done += number
                if state == "finished" and number and self._store.partitions > 1 and script == "requeue_dead":
                    await self._partitions.revive(partition, run_id)
        if not known:
            raise UnknownRun(run_id)
        return done
