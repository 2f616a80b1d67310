"""The verbs of the frontier, each one script in each partition that it concerns."""

from __future__ import annotations

import random
from collections.abc import Sequence

import msgspec

from shoal.clock import Moment
from shoal.errors import BeingMoved, UnknownRun, UsageError
from shoal.frontier.lost_grants import lost_grants
from shoal.frontier.protocol import Ask, Enqueued, Granted, NewRun, Renewal, Run, Swept, WorkerInfo
from shoal.frontier.redis.exits import RedisExits
from shoal.frontier.redis.partitions import Partitions
from shoal.frontier.redis.reader import RedisReader
from shoal.frontier.redis.settlements import HERE, settlement_groups
from shoal.frontier.redis.store import Store
from shoal.frontier.redis.wire import (
    Exchanged,
    decode_exchanged,
    opaque,
    packed_token,
    question,
    remembered,
    run_question,
    task_groups,
    who,
)
from shoal.kept import Note
from shoal.outcome import Blame, Reason, Settlement
from shoal.presence import is_gone, read_notebook, this_machine
from shoal.task import Lease, NewTask, RunState

SWEEP_AT_MOST = 2000
"""How many leases of dead workers one sweep brings back, about."""

_places = msgspec.msgpack.Decoder(list[int]).decode
_letters = msgspec.msgpack.Decoder(tuple[str, int, bool]).decode

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


class RedisFrontier:
    """The `Frontier` of this engine."""

    def __init__(self, store: Store, partitions: Partitions, reader: RedisReader, exits: RedisExits) -> None:
        self._store = store
        self._exits = exits
        self._partitions = partitions
        self._reader = reader
        self._chance = random.Random()  # noqa: S311 - where to begin, not a secret
        self._heads: dict[int, Moment] = {}
        self._sweep_from = 0

    async def create_run(self, run: NewRun) -> Run:
        await self._store.call("create_run", 0, run_question(run))
        if self._store.partitions > 1:
            await self._partitions.introduce(run.run_id, self._partitions.others)
        return await self._reader.run(run.run_id)

    async def seal_run(self, run_id: str) -> None:
        standing = await self._partitions.change("seal", run_id)
        if not standing.sealed:
            raise BeingMoved(run_id, arriving="arriving" in str(standing.move))

    async def pause_run(self, run_id: str) -> None:
        await self._partitions.change("pause", run_id)

    async def resume_run(self, run_id: str) -> None:
        standing = await self._partitions.change("resume", run_id)
        if standing.state == RunState.PAUSED:
            raise BeingMoved(run_id, arriving=True)

    async def cancel_run(self, run_id: str) -> None:
        await self._partitions.change("cancel", run_id)

    async def enqueue(self, run_id: str, tasks: Sequence[NewTask]) -> Enqueued:
        accepted = 0
        apart = {partition: task_groups(some) for partition, some in self._apart(tasks).items()}
        for partition, groups in apart.items():
            state, number = await self._partitions.enqueue(partition, run_id, groups)
            if state == "cancelled":
                raise UsageError(f"Run {run_id!r} was cancelled and takes no more tasks. Start a new run.")
            if state in ("leaving", "arriving"):
                raise BeingMoved(run_id, arriving=state == "arriving")
            accepted += number
        return Enqueued(accepted, len(tasks) - accepted)

    async def exchange(self, ask: Ask) -> Granted:
        lost = [] if ask.held is None else lost_grants(ask, await self._leases_of(ask.worker))
        settlements = [*ask.settlements, *lost]
        if self._store.partitions > 1:
            return await self._exchange_with_all(ask, settlements)
        rows = settlement_groups(settlements, _here)
        answer = await self._exchange(0, ask, rows, ask.want, ask.notes)
        late = [ask.settlements[place - 1].token for place in answer.late if place <= len(ask.settlements)]
        return Granted(answer.granted(), answer.now, answer.wake_at, answer.left, late)

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

    async def sweep(self) -> Swept:
        """One partition after the other. One that has more to do ends the sweep; the next begins behind it."""
        done: list[SweepAnswer] = []
        number = self._store.partitions
        for _ in range(number):
            done += await self._sweep(self._sweep_from % number)
            self._sweep_from += 1
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

    async def requeue_dead(self, run_id: str, tasks: Sequence[int] | None = None) -> int:
        return await self._letters("requeue_dead", run_id, tasks)

    async def purge_dead(self, run_id: str, tasks: Sequence[int] | None = None) -> int:
        return await self._letters("purge_dead", run_id, tasks)

    async def forget_notes(self, stream: str) -> None:
        await self._store.call("forget_notes", self._store.partition_of(stream), {"stream": stream})

    async def _exchange(
        self, partition: int, ask: Ask, settlements: Sequence[object], want: int, notes: Sequence[Note] = ()
    ) -> Exchanged:
        asked = question(ask, settlements, want, notes)
        return decode_exchanged(await self._store.call("exchange", partition, asked))

    async def _exchange_with_all(self, ask: Ask, brought_all: Sequence[Settlement]) -> Granted:
        """Settle where each task is, and ask one partition after the other until there is enough.

        Notes go first, each to where its stream is: they tell of what has happened, whatever becomes of the rest.
        """
        number = self._store.partitions
        await self._keep_notes(ask.notes)
        own = {settlement.token for settlement in ask.settlements}
        brought: dict[int, list[Settlement]] = {}
        for settlement in brought_all:
            brought.setdefault(settlement.task % number, []).append(settlement)
        leases: list[Lease] = []
        late: list[int] = []
        answers: dict[int, Exchanged] = {}
        order = self._in_order()
        while order:
            partition = order.pop(0)
            want = ask.want - len(leases)
            if not want and ask.want and partition not in brought:
                continue
            settlements = brought.pop(partition, [])
            answer = await self._exchange(partition, ask, self._rows(settlements, partition), want)
            leases += answer.granted()
            late += [token for place in answer.late if (token := settlements[place - 1].token) in own]
            await self._spread_judgement(partition, settlements, answer.late)
            answers[partition] = answer
            self._heads[partition] = answer.head if answer.head is not None else answer.now
            for target in await self._follow_up(partition, answer):
                if target in answers and target not in order:
                    order.append(target)  # links came to where nothing may have been before
        if len(ask.lanes) > 1:
            preference = {lane: place for place, lane in enumerate(ask.lanes)}
            leases.sort(key=lambda lease: preference[lease.task.lane])
        now = max(answer.now for answer in answers.values())
        wakes = [answer.wake_at for answer in answers.values() if answer.wake_at is not None]
        if len(answers) < number:
            wakes.append(now)
        left = sum(answer.left for answer in answers.values())
        return Granted(leases, now, min(wakes, default=None), left, late, one_clock=False)

    async def _keep_notes(self, notes: Sequence[Note]) -> None:
        apart: dict[int, list[Note]] = {}
        for note in notes:
            apart.setdefault(self._store.partition_of(note.stream), []).append(note)
        for partition, some in apart.items():
            await self._store.call("remember", partition, remembered(some, ()))

    async def _spread_judgement(self, partition: int, settlements: Sequence[Settlement], late: Sequence[int]) -> None:
        """What one partition has learnt of exits is told to the others. If this is cut short, they find out later."""
        heard = [settlement for place, settlement in enumerate(settlements, 1) if place not in late]
        failed = [name for settlement in heard for name in settlement.exits_failed]
        well = [name for settlement in heard for name in settlement.exits_ok]
        if failed or well:
            await self._exits.judge(failed, well, partition)

    def _in_order(self) -> list[int]:
        """The partitions, those first where somebody has been waiting for longest, as far as this engine knows."""
        partitions = list(range(self._store.partitions))
        self._chance.shuffle(partitions)
        partitions.sort(key=lambda partition: self._heads.get(partition, 0))
        return partitions

    def _apart(self, tasks: Sequence[NewTask]) -> dict[int, Sequence[NewTask]]:
        """Tasks by partition; without any, the first partition still says if the run takes some."""
        if self._store.partitions == 1 or not tasks:
            return {0: tasks}
        apart: dict[int, list[NewTask]] = {}
        for task in tasks:
            apart.setdefault(self._store.partition_of(task.site), []).append(task)
        return dict(apart)

    def _rows(self, settlements: Sequence[Settlement], home: int) -> list[object]:
        def partition_of(site: str) -> int:
            target = self._store.partition_of(site)
            return HERE if target == home else target

        return settlement_groups(settlements, partition_of)

    async def _follow_up(self, partition: int, answer: Exchanged) -> set[int]:
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

    async def _sweep(self, partition: int) -> list[SweepAnswer]:
        """Once; and if workers of this machine are found to be gone, once more for what they held."""
        first = await self._sweep_once(partition, [])
        hands: dict[str, list[int] | None] = {}
        for holder in first.holders:
            worker_id, _, pid, started, notebook, *_ = (*holder, "")
            if is_gone(int(pid), int(started)):
                hand = read_notebook(str(notebook) if notebook else None)
                hands[str(worker_id)] = None if hand is None else sorted(hand)
        if not hands:
            return [first]
        held: dict[str, list[str]] = {worker: [] for worker in hands}
        for worker, _, task, _ in await self._held_by(partition, list(hands)):
            held[worker].append(task)
        gone = [(worker, held[worker], hand) for worker, hand in hands.items() if held[worker]]
        return [first, await self._sweep_once(partition, gone)]

    async def _leases_of(self, worker: WorkerInfo) -> set[tuple[str, int, int]]:
        found: set[tuple[str, int, int]] = set()
        for partition in range(self._store.partitions):
            rows = await self._held_by(partition, [worker.worker_id])
            found.update((run_id, int(task), token) for _, run_id, task, token in rows)
        return found

    async def _held_by(self, partition: int, workers: Sequence[str]) -> list[tuple[str, str, str, int]]:
        """The leases of some workers (worker, run id, task, token), by looking through all: there are never more than
        requests in flight. Some may be there twice."""
        held: list[tuple[str, str, str, int]] = []
        cursor = b"0"
        while len(held) < SWEEP_AT_MOST:
            asked = {"workers": workers, "cursor": cursor.decode()}
            cursor, rows = await self._store.call("read_leases", partition, asked)
            held += [(worker.decode(), run.decode(), task.decode(), token) for worker, run, task, token in rows]
            if cursor == b"0":
                break
        return held

    async def _sweep_once(self, partition: int, gone: Sequence[object]) -> SweepAnswer:
        asked = {"machine": this_machine(), "gone": gone, "reason": _CRASHED[0], "reason_end": _CRASHED[1]}
        answer = _swept(await self._store.call("sweep", partition, asked))
        if self._store.partitions > 1:
            await self._partitions.finish(answer.quiet)
        return answer

    async def _letters(self, verb: str, run_id: str, tasks: Sequence[int] | None) -> int:
        done = 0
        known = False
        for partition in range(self._store.partitions):
            some = None if tasks is None else [task for task in tasks if task % self._store.partitions == partition]
            more = True
            while more:
                answer = await self._store.call(verb, partition, {"run": run_id, "tasks": some})
                if answer is None:
                    break
                known = True
                state, number, more = _letters(answer)
                if state == "cancelled" and verb == "requeue_dead":
                    raise UsageError(f"Run {run_id!r} was cancelled; its dead letters cannot be tried again.")
                if state in ("leaving", "arriving"):
                    raise BeingMoved(run_id, arriving=state == "arriving")
                done += number
                if state == "finished" and number and self._store.partitions > 1 and verb == "requeue_dead":
                    await self._partitions.revive(partition, run_id)
        if not known:
            raise UnknownRun(run_id)
        return done


def _here(_site: str) -> int:
    return HERE
