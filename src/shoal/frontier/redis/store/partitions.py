"""What one script cannot do, because it sees one partition only: spread how a run is, carry links across, and tell
when a run is over. With one partition there is nothing to do here."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from typing import Any

import msgspec

from shoal.core.clock import Moment
from shoal.core.storable import findable
from shoal.errors import UnknownRun
from shoal.frontier.redis.codec.encoding import opaque
from shoal.frontier.redis.store.client import RedisStore

PARCELS_AT_ONCE = 100


class RunStanding(msgspec.Struct, array_like=True, frozen=True):
    """How a run is in one partition, after a change. `version` counts the changes that the first partition made."""

    state: str
    sealed: bool
    version: int
    ended_at: Moment | bool
    results_until: Moment | bool
    more: bool
    quiet: list[str]
    move: str | bool


_standing = msgspec.msgpack.Decoder(RunStanding).decode
_enqueued = msgspec.msgpack.Decoder(tuple[str, int]).decode
_names = msgspec.msgpack.Decoder(list[str]).decode


class Partitions:
    """The partitions of a store as a whole."""

    def __init__(self, store: RedisStore) -> None:
        self._store = store

    @property
    def others(self) -> range:
        """All partitions but the first, which decides."""
        return range(1, self._store.partitions)

    async def change(self, verb: str, run_id: str, **values: object) -> RunStanding:
        """Seal, pause, resume, cancel, finish, reopen or turn a run. Answers how it is then. Raises UnknownRun."""
        standing = await self._change(0, {"verb": verb, "run": findable(run_id), **values})
        if standing is None:
            raise UnknownRun(run_id)
        if self._store.partitions > 1:
            await self._spread(run_id, standing)
            await self.finish(standing.quiet)
        return standing

    async def enqueue(self, partition: int, run_id: str, tasks: object, parcel: str | None = None) -> tuple[str, int]:
        """Hand tasks to a partition. A run that it has not heard of is introduced to it. Raises UnknownRun."""
        question = {"run": findable(run_id), "tasks": tasks, "parcel": parcel}
        answer = _enqueued(await self._store.call("enqueue", partition, question))
        if answer[0] == "unknown":
            await self.introduce(run_id, [partition])
            answer = _enqueued(await self._store.call("enqueue", partition, question))
        if answer[0] == "finished" and answer[1] and self._store.partitions > 1:
            await self.revive(partition, run_id)
        return answer

    async def introduce(self, run_id: str, partitions: Iterable[int]) -> None:
        """Tell partitions of a run that the first one knows, as it is there now. Raises UnknownRun."""
        found = await self._store.call("read_run", 0, {"run": findable(run_id)})
        if found is None:
            raise UnknownRun(run_id)
        question = {"run": run_id, "number": found[3], "fields": [opaque(value) for value in found[1]]}
        await asyncio.gather(*(self._store.call("introduce_run", partition, question) for partition in partitions))

    async def deliver(self, source: int, serial: int, parcel: bytes) -> list[str]:
        """Bring a parcel to its partition, links or what is to be remembered, and only then forget it here.

        Answers the runs that are quiet.
        """
        target, run_id, content = _open_parcel(parcel)
        name = f"{source}:{serial}"
        if _is_map(content):
            await self._store.call("remember", target, {**_to_remember(content), "parcel": name})
        else:
            with contextlib.suppress(UnknownRun):
                await self.enqueue(target, run_id, msgspec.Raw(content), name)
        return _names(await self._store.call("delivered", source, {"serials": [serial]}))

    async def tidy(self) -> None:
        """Finish what a crash may have left half done: parcels, states that not all partitions know, revivals."""
        for partition in range(self._store.partitions):
            quiet: set[str] = set()
            for serial, parcel in await self._store.call("read_outbox", partition, {"most": PARCELS_AT_ONCE}):
                quiet.update(await self.deliver(partition, int(serial), parcel))
            spread, revived = await self._store.call("read_unfinished", partition, {})
            for run_id in spread:
                standing = await self._change(0, {"verb": "look", "run": run_id.decode()})
                if standing is not None:
                    await self._spread(run_id.decode(), standing)
            for run_id in revived:
                await self.revive(partition, run_id.decode())
            await self.finish(quiet)

    async def finish(self, runs: Iterable[str]) -> None:
        """End the runs of these that have nothing left anywhere.

        Links move between partitions, so that one look at each in turn proves nothing. Two looks that see the same
        counters everywhere, with nothing waiting, leased or on its way, do: whatever moved would have been counted.
        """
        for run_id in runs:
            first = await self._look(run_id)
            if first is not None and first == await self._look(run_id):
                await self.change("finish", run_id)

    async def _look(self, run_id: str) -> list[dict[bytes, bytes]] | None:
        """The counters of a run in all partitions; None as soon as one has something left."""
        seen = []
        for partition in range(self._store.partitions):
            found = await self._store.call("read_run", partition, {"run": run_id})
            counts = {} if found is None else pairs(found[2])
            if any(int(counts.get(name, 0)) for name in (b"waiting", b"leased", b"outbox")):
                return None
            seen.append({name: value for name, value in counts.items() if name != b"late"})
        return seen

    async def revive(self, partition: int, run_id: str) -> None:
        await self.change("reopen", run_id)
        await self._store.call("revival_done", partition, {"run": run_id})

    async def _spread(self, run_id: str, standing: RunStanding) -> None:
        """Let all partitions know how a run is. The newest version wins, whoever comes first."""
        question = {
            "run": run_id,
            "as": {
                "state": standing.state,
                "sealed": standing.sealed,
                "version": standing.version,
                "ended_at": standing.ended_at,
                "results_until": standing.results_until,
                "move": standing.move,
            },
        }
        told = await asyncio.gather(*(self._change(partition, question) for partition in self.others))
        if None in told:
            await self.introduce(run_id, [p for p, answer in zip(self.others, told, strict=True) if answer is None])
        await self._store.call("spread_done", 0, {"run": run_id, "version": standing.version})

    async def _change(self, partition: int, question: dict[str, Any]) -> RunStanding | None:
        while True:
            answer = await self._store.call("change_run", partition, question)
            if answer is None:
                return None
            standing = _standing(answer)
            if not standing.more:
                return standing


def pairs(flat: list[bytes]) -> dict[bytes, bytes]:
    """A hash as Redis answers it."""
    return dict(zip(flat[::2], flat[1::2], strict=True))


def _open_parcel(parcel: bytes) -> tuple[int, str, bytes]:
    """A parcel as `settle.lua` stored it: three msgpack values one behind the other."""
    unpacked: tuple[int, str, msgspec.Raw] = _parcel(b"\x93" + parcel)
    target, run_id, tasks = unpacked
    content = bytes(tasks)
    length = {0xD9: 2, 0xDA: 3, 0xDB: 5}.get(content[0], 1)
    return target, run_id, content[length:]


def _is_map(content: bytes) -> bool:
    return 0x80 <= content[0] <= 0x8F


_to_remember = msgspec.msgpack.Decoder(dict[str, msgspec.Raw]).decode
_parcel = msgspec.msgpack.Decoder(tuple[int, str, msgspec.Raw]).decode
