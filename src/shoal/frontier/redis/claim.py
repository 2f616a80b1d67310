"""Claims: leases are granted in the same exchange that settles what is done; with several partitions, one after the
other, until there is enough."""

from __future__ import annotations

import random
from collections.abc import Sequence

import msgspec

from shoal.core.clock import Moment
from shoal.core.notes import Note
from shoal.core.outcome import Settlement
from shoal.core.task import Lease
from shoal.frontier.contract.frontier import Ask, Granted, Renewal, WorkerInfo
from shoal.frontier.redis.codec.encoding import opaque, packed_token
from shoal.frontier.redis.codec.leases import Exchanged, decode_exchanged, exchange_question, who
from shoal.frontier.redis.codec.settlements import HERE, settlement_groups
from shoal.frontier.redis.settle import RedisSettling
from shoal.frontier.redis.store.client import RedisStore
from shoal.frontier.shared.lost_grants import lost_grants
from shoal.frontier.shared.refusals import storable_only

LEASES_AT_MOST = 2000
"""How many leases of some workers are looked for, about."""

_places = msgspec.msgpack.Decoder(list[int]).decode


class RedisClaims:
    """Exchanges with one partition, or with as many as it takes; and the renewal of what they granted."""

    def __init__(self, store: RedisStore, settling: RedisSettling) -> None:
        self._store = store
        self._settling = settling
        self._order = AskingOrder(store)

    async def exchange(self, ask: Ask) -> Granted:
        lost = [] if ask.held is None else lost_grants(ask, await self._leases_of(ask.worker))
        settlements = [*ask.settlements, *lost]
        if self._store.partitions > 1:
            return await self._exchange_with_all(ask, settlements)
        with storable_only(self._store.name):
            rows = settlement_groups(settlements, _here)
        answer = await self.exchange_with(0, ask, rows, ask.want, ask.notes)
        late = [ask.settlements[place - 1].token for place in answer.late if place <= len(ask.settlements)]
        return Granted(answer.granted(), answer.now, answer.wake_at, answer.left, late)

    async def exchange_with(
        self, partition: int, ask: Ask, settlements: Sequence[object], want: int, notes: Sequence[Note] = ()
    ) -> Exchanged:
        """One script in one partition, and nothing of what has to follow elsewhere."""
        asked = exchange_question(ask, settlements, want, notes)
        return decode_exchanged(await self._store.call("exchange", partition, asked))

    async def renew(self, worker: WorkerInfo, leases: Sequence[Renewal]) -> Sequence[int]:
        apart: dict[int, list[Renewal]] = {}
        for lease in leases:
            apart.setdefault(lease.task % self._store.partitions, []).append(lease)
        lost: list[int] = []
        for partition, some in (apart or {0: []}).items():
            rows = [(str(lease.task), opaque(packed_token(lease.token))) for lease in some]
            answer = await self._store.call("renew", partition, {"worker": who(worker), "leases": rows})
            lost += [some[place - 1].token for place in _places(answer)]
        return lost

    async def _exchange_with_all(self, ask: Ask, brought_all: Sequence[Settlement]) -> Granted:
        """Settle where each task is, and ask one partition after the other until there is enough.

        Notes go first, each to where its stream is: they tell of what has happened, whatever becomes of the rest.
        """
        await self._settling.keep_notes(ask.notes)
        own = {settlement.token for settlement in ask.settlements}
        brought: dict[int, list[Settlement]] = {}
        for settlement in brought_all:
            brought.setdefault(settlement.task % self._store.partitions, []).append(settlement)
        leases: list[Lease] = []
        late: list[int] = []
        answers: dict[int, Exchanged] = {}
        order = self._order.partitions()
        while order:
            partition = order.pop(0)
            want = ask.want - len(leases)
            if not want and ask.want and partition not in brought:
                continue
            settlements = brought.pop(partition, [])
            rows = self._settling.rows(settlements, partition)
            answer = await self.exchange_with(partition, ask, rows, want)
            leases += answer.granted()
            late += [token for place in answer.late if (token := settlements[place - 1].token) in own]
            await self._settling.spread_judgement(partition, settlements, answer.late)
            answers[partition] = answer
            self._order.note(partition, answer)
            for target in await self._settling.follow_up(partition, answer):
                if target in answers and target not in order:
                    order.append(target)  # links came to where nothing may have been before
        return self._joined(ask, leases, late, list(answers.values()))

    def _joined(self, ask: Ask, leases: list[Lease], late: Sequence[int], answers: Sequence[Exchanged]) -> Granted:
        if len(ask.lanes) > 1:
            preference = {lane: place for place, lane in enumerate(ask.lanes)}
            leases.sort(key=lambda lease: preference[lease.task.lane])
        now = max(answer.now for answer in answers)
        wakes = [answer.wake_at for answer in answers if answer.wake_at is not None]
        if len(answers) < self._store.partitions:
            wakes.append(now)
        left = sum(answer.left for answer in answers)
        return Granted(leases, now, min(wakes, default=None), left, late, one_clock=False)

    async def _leases_of(self, worker: WorkerInfo) -> set[tuple[str, int, int]]:
        found: set[tuple[str, int, int]] = set()
        for partition in range(self._store.partitions):
            rows = await leases_of(self._store, partition, [worker.worker_id])
            found.update((run_id, int(task), token) for _, run_id, task, token in rows)
        return found


class AskingOrder:
    """Which partition is asked first: where somebody has been waiting for longest, as far as this engine knows."""

    def __init__(self, store: RedisStore) -> None:
        self._store = store
        self._chance = random.Random()  # noqa: S311 - where to begin, not a secret
        self._heads: dict[int, Moment] = {}

    def partitions(self) -> list[int]:
        partitions = list(range(self._store.partitions))
        self._chance.shuffle(partitions)
        partitions.sort(key=lambda partition: self._heads.get(partition, 0))
        return partitions

    def note(self, partition: int, answer: Exchanged) -> None:
        self._heads[partition] = answer.head if answer.head is not None else answer.now


async def leases_of(store: RedisStore, partition: int, workers: Sequence[str]) -> list[tuple[str, str, str, int]]:
    """The leases of some workers (worker, run id, task, token), by looking through all: there are never more than
    requests in flight. Some may be there twice."""
    held: list[tuple[str, str, str, int]] = []
    cursor = b"0"
    while len(held) < LEASES_AT_MOST:
        cursor, rows = await store.call("find_leases", partition, {"workers": workers, "cursor": cursor.decode()})
        held += [(worker.decode(), run.decode(), task.decode(), token) for worker, run, task, token in rows]
        if cursor == b"0":
            break
    return held


def _here(_site: str) -> int:
    return HERE
