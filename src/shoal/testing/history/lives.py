"""The lives of leases, as far as the event log shows them: granted, renewed, settled, lost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TypeVar

from shoal.core.clock import Millis, Moment
from shoal.core.outcome import Dead, Done, Dropped, Settlement
from shoal.core.task import Lease
from shoal.frontier.contract.frontier import Ask, Granted
from shoal.frontier.recording import Renewals
from shoal.testing.history.record import History, RecordedCall

Key = TypeVar("Key", bound=Hashable)

FINAL = (Done, Dead, Dropped)
"""The outcomes that end a task."""


class Effect(StrEnum):
    """What became of a settlement. `doubtful`: nobody knows, for the call was never answered."""

    STOOD = "stood"
    LATE = "late"
    DOUBTFUL = "doubtful"


@dataclass(frozen=True, slots=True)
class Ending:
    """One try to settle a lease."""

    call: RecordedCall
    settlement: Settlement
    effect: Effect

    @property
    def final(self) -> bool:
        """Whether its outcome ends the task."""
        return isinstance(self.settlement.outcome, FINAL)


@dataclass(slots=True)
class Life:
    """One lease that a worker was told about. All moments are those of the machine that wrote the event log."""

    lease: Lease
    grant: RecordedCall
    endings: list[Ending] = field(default_factory=list)
    renewals: list[RecordedCall] = field(default_factory=list)
    """Those that certainly extended it."""
    last_sign: Moment = 0
    """The latest moment at which the store may have granted or extended it."""
    cut_at: Moment | None = None
    """When its worker was killed or its run cancelled; None = neither."""

    @property
    def length(self) -> Millis:
        return self.lease.expires_at - self.lease.claimed_at

    @property
    def slot(self) -> tuple[str, str]:
        return self.lease.task.site, self.lease.exit

    @property
    def stood(self) -> Ending | None:
        """The settlement that surely counted; None = no such."""
        return next((ending for ending in self.endings if ending.effect is Effect.STOOD), None)

    @property
    def settled_perhaps(self) -> bool:
        """Whether it may have been settled, or was."""
        return any(ending.effect is not Effect.LATE for ending in self.endings)

    def lives_until(self, before: RecordedCall | None = None) -> Moment:
        """Until when it cannot have run out, by what was known before a call (None = in the end)."""
        extended = [call.at for call in self.renewals if before is None or call.at < before.at]
        runs_out = max([self.grant.at, *extended]) + self.length
        return runs_out if self.cut_at is None else min(runs_out, self.cut_at)

    @property
    def surely_lives(self) -> tuple[Moment, Moment]:
        """From when until when it certainly lived; empty if the first is not before the second."""
        assert self.grant.answered_at is not None
        return self.grant.answered_at, min([self.lives_until(), *(ending.call.at for ending in self.endings)])

    def lost_alive(self, after: Life, last_calls: Mapping[str, Moment]) -> bool:
        """Whether it had certainly no end when another got its slot, though its worker lived: that one called again
        later (`last_calls`: by process), so nobody can have known it to be dead."""
        assert after.grant.answered_at is not None
        ended = self.cut_at is not None or self.settled_perhaps
        return not ended and last_calls[self.grant.process] > after.grant.answered_at

    def shown(self) -> str:
        return f"task {self.lease.task.id} ({self.lease.task.url}), lease {self.lease.token}"


def _grouped(lives: Iterable[Life], key: Callable[[Life], Key]) -> dict[Key, list[Life]]:
    groups: defaultdict[Key, list[Life]] = defaultdict(list)
    for life in lives:
        groups[key(life)].append(life)
    return dict(groups)


class Lives:
    """All leases of one run that workers were told about, in the order in which they were asked for."""

    def __init__(self, history: History, run_id: str) -> None:
        self.history = history
        self.run_id = run_id
        self.all: list[Life] = []
        self.strangers: list[Ending] = []
        """Settlements of leases that nobody was granted."""
        self.twice_granted: list[int] = []
        self.doubtful_claims: list[RecordedCall] = []
        """Exchanges that may have granted leases which nobody heard of."""
        self._by_token: dict[int, Life] = {}
        self._collect_grants()
        self._collect_ends()
        self.all.sort(key=lambda life: (life.grant.at, life.lease.claimed_at))

    def __iter__(self) -> Iterator[Life]:
        return iter(self.all)

    @cached_property
    def by_task(self) -> dict[int, list[Life]]:
        return _grouped(self.all, lambda life: life.lease.task.id)

    @cached_property
    def by_slot(self) -> dict[tuple[str, str], list[Life]]:
        return _grouped(self.all, lambda life: life.slot)

    @cached_property
    def endings(self) -> list[Ending]:
        """All tries to settle, of known leases and of strangers."""
        return [ending for life in self.all for ending in life.endings] + self.strangers

    def _collect_grants(self) -> None:
        cancelled = [call.at for call in self.history.of("cancel_run") if call.given == self.run_id]
        for call in self.history.of("exchange"):
            if call.doubtful:
                if call.given.want:
                    self.doubtful_claims.append(call)
                continue
            granted: Granted = call.answer
            assert call.answered_at is not None
            for lease in granted.leases:
                if lease.task.run_id != self.run_id:
                    continue
                if lease.token in self._by_token:
                    self.twice_granted.append(lease.token)
                cuts = [*cancelled, killed] if (killed := self.history.killed_at(call.pid)) else cancelled
                life = Life(lease, call, last_sign=call.answered_at, cut_at=min(cuts, default=None))
                self._by_token[lease.token] = life
                self.all.append(life)

    def _collect_ends(self) -> None:
        for call in self.history.calls:
            match call.given:
                case Ask() as ask:
                    late = set() if call.doubtful else set(call.answer.late)
                    for settlement in ask.settlements:
                        if settlement.run_id == self.run_id:
                            self._settled(call, settlement, settlement.token in late)
                case Renewals() as renewals:
                    lost = set() if call.doubtful else set(call.answer)
                    for renewal in renewals.leases:
                        life = self._by_token.get(renewal.token)
                        if life is not None and renewal.token not in lost:
                            life.last_sign = max(life.last_sign, call.ended_at or call.at)
                            if not call.doubtful:
                                life.renewals.append(call)
                case _:
                    pass

    def _settled(self, call: RecordedCall, settlement: Settlement, late: bool) -> None:
        effect = Effect.DOUBTFUL if call.doubtful else Effect.LATE if late else Effect.STOOD
        ending = Ending(call, settlement, effect)
        life = self._by_token.get(settlement.token)
        if life is None or life.lease.task.id != settlement.task:
            self.strangers.append(ending)
        else:
            life.endings.append(ending)
