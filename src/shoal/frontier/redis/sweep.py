"""Sweeps: what workers lost or left behind is put right, one partition after the other, a bounded step in each."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from shoal.core.outcome import Blame, Reason
from shoal.frontier.contract.frontier import Swept
from shoal.frontier.redis.claim import leases_of
from shoal.frontier.redis.store.client import RedisStore
from shoal.frontier.redis.store.partitions import Partitions
from shoal.frontier.shared.liveness import is_gone, read_notebook, this_machine

_CRASHED = (
    msgspec.json.encode(Reason(Blame.WORKER, "its worker died % times while it had this task in hand"))
    .decode()
    .split("%")
)


class SweepAnswer(msgspec.Struct, array_like=True, frozen=True):
    """What a sweep did in one partition, and who holds leases there."""

    returned: int
    buried: int
    expired: int
    cancelled: int
    items_deleted: int
    more: bool
    holders: list[list[str | int]]
    quiet: list[str]


_swept = msgspec.msgpack.Decoder(SweepAnswer).decode


class RedisSweeps:
    """The sweeps of one engine: each goes on behind the partition where the last one stopped."""

    def __init__(self, store: RedisStore, partitions: Partitions) -> None:
        self._store = store
        self._partitions = partitions
        self._next = 0

    async def sweep(self) -> Swept:
        """One partition after the other. One that has more to do ends the sweep; the next begins behind it."""
        done: list[SweepAnswer] = []
        number = self._store.partitions
        for _ in range(number):
            done += await self._sweep(self._next % number)
            self._next += 1
            if done[-1].more:
                break
        if number > 1:
            await self._partitions.tidy()
        return Swept(
            sum(answer.returned for answer in done),
            sum(answer.buried for answer in done),
            sum(answer.expired for answer in done),
            sum(answer.cancelled for answer in done),
            sum(answer.items_deleted for answer in done),
            any(answer.more for answer in done),
        )

    async def _sweep(self, partition: int) -> list[SweepAnswer]:
        """Once; and if workers of this machine are found to be gone, once more for what they held."""
        first = await self.sweep_once(partition, [])
        hands: dict[str, list[int] | None] = {}
        for holder in first.holders:
            worker_id, _, pid, started, notebook, *_ = (*holder, "")
            if is_gone(int(pid), int(started)):
                hand = read_notebook(str(notebook) if notebook else None)
                hands[str(worker_id)] = None if hand is None else sorted(hand)
        if not hands:
            return [first]
        held: dict[str, list[str]] = {worker: [] for worker in hands}
        for worker, _, task, _ in await leases_of(self._store, partition, list(hands)):
            held[worker].append(task)
        gone = [(worker, held[worker], hand) for worker, hand in hands.items() if held[worker]]
        return [first, await self.sweep_once(partition, gone)]

    async def sweep_once(self, partition: int, gone: Sequence[object]) -> SweepAnswer:
        """One script. `gone`: workers known to be dead, what each held, and what it had in hand (None = not known)."""
        asked = {"machine": this_machine(), "gone": gone, "reason": _CRASHED}
        answer = _swept(await self._store.call("sweep", partition, asked))
        if self._store.partitions > 1:
            await self._partitions.finish(answer.quiet)
        return answer
