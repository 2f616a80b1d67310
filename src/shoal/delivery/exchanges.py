"""What a lease client and the store say to each other: settlements go out, leases come in, and none is forgotten."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Sequence

import msgspec
import structlog

from shoal.core import log_events
from shoal.core.clock import Clock
from shoal.core.outcome import Settlement
from shoal.delivery.options import LeaseTiming
from shoal.delivery.refused import Handling, is_refusal, nobody, settle_apart
from shoal.delivery.store_time import StoreTime
from shoal.errors import EngineUnavailable
from shoal.frontier.contract.frontier import Ask, Granted
from shoal.frontier.retrying import RetryingEngine

log = structlog.get_logger("shoal")


class Exchanges:
    """One exchange at a time. `sent`, `received`: when the last one was, by `elapsed`. `took`: how long the last
    answer did. `heard`: what was brought to it; `stood`: what of that it settled. `time`: what all of them have told
    of the store's clock.

    `ask`: makes the next question, without settlements. `held`: the tokens of what is in hand now. `handling`: notes
    tasks whose settlement the store has refused once, while it is asked again.
    """

    def __init__(
        self,
        engine: RetryingEngine,
        clock: Clock,
        ask: Callable[[], Ask],
        held: Callable[[], Iterable[int]],
        timing: LeaseTiming,
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._ask = ask
        self._held = held
        self._compare_after = timing.compare_after
        self._finished: list[Settlement] = []
        self._sending: list[Settlement] = []
        self._sent_before: set[int] = set()
        self._asked: asyncio.Future[tuple[Granted, Sequence[Settlement]]] | None = None
        self._unsure = False
        self._compare_at = math.inf
        self._compared = 0
        self.sent = self.received = self.took = 0.0
        self.handling: Handling = nobody
        self.time = StoreTime()
        self.heard: Sequence[Settlement] = ()
        self.stood: Sequence[Settlement] = ()

    def settle(self, settlement: Settlement) -> None:
        """Goes out with the next exchange."""
        self._finished.append(settlement)

    @property
    def unsettled(self) -> list[Settlement]:
        """What the store has not confirmed yet."""
        return [*self._sending, *self._finished]

    @property
    def are_over(self) -> bool:
        """Whether nothing is left to be said or heard, and nothing may have been granted unheard."""
        return not (self._finished or self._sending or self._asked or self._unsure)

    async def exchange(self) -> Granted:
        """Settle what is finished and ask for more, however long the store is away."""
        return await self._engine.patience.call("exchange", self._exchange)

    async def exchange_once(self) -> None:
        """The same, and a store that is away is not waited for. What is granted is not taken."""
        await self._exchange()

    def give_up(self, reason: str = "") -> None:
        """Nobody waits for an answer any more. `reason`: why, if that is known."""
        if self._asked is not None:
            self._asked.cancel()
        if not self.are_over:
            reason = reason or (self._engine.patience.reason if self._engine.patience.is_away else "no answer in time")
            log.warning(log_events.LEASE_ABANDONED, reason=reason)

    async def _exchange(self) -> Granted:
        """Nothing is forgotten if it fails: the next one brings it again."""
        self._sending += self._finished
        self._finished = []
        self.sent = self._clock.elapsed()
        held = tuple(self._held()) if self.sent >= self._compare_at else None
        ask = msgspec.structs.replace(self._ask(), settlements=tuple(self._sending), held=held)
        # Cancelled in between, it is still not over: something may have been granted.
        self._asked = asyncio.ensure_future(self._ask_store(ask))
        try:
            granted, settled = await asyncio.shield(self._asked)
        except Exception as error:
            self._asked = None
            if isinstance(error, EngineUnavailable):
                self._doubt(ask)
            raise
        self.received = self._clock.elapsed()
        self.took = self.received - self.sent
        self.time.hear(self.sent, self.received, granted.now, alone=not granted.one_clock)
        self._asked, self._sending = None, []
        if held is not None:
            self._unsure = False
            self._compared += 1
            again = self._compared < len(self._compare_after)
            self._compare_at = self.sent + self._compare_after[self._compared] if again else math.inf
        self._note(settled, granted)
        return granted

    async def _ask_store(self, ask: Ask) -> tuple[Granted, Sequence[Settlement]]:
        """The answer, and the settlements that it is about: in place of one that was refused, another."""
        frontier = self._engine.frontier
        try:
            return await frontier.exchange(ask), ask.settlements
        except Exception as error:
            if not ask.settlements or not is_refusal(error):
                raise
        self._sent_before |= {settlement.token for settlement in ask.settlements}  # a part of it may have been heard
        only_settle = msgspec.structs.replace(ask, want=0, held=None, notes=())
        heard = await settle_apart(
            lambda some: frontier.exchange(msgspec.structs.replace(only_settle, settlements=tuple(some))),
            ask.settlements,
            self.handling,
        )
        granted = await frontier.exchange(msgspec.structs.replace(ask, settlements=()))
        return msgspec.structs.replace(granted, late=heard.late), heard.settlements

    def _doubt(self, ask: Ask) -> None:
        """It may have happened or not: what was settled may be late, what was granted is unknown."""
        self._unsure = True
        self._compared, self._compare_at = 0, self._clock.elapsed() + self._compare_after[0]
        self._sent_before |= {settlement.token for settlement in ask.settlements}

    def _note(self, settlements: Sequence[Settlement], granted: Granted) -> None:
        late = set(granted.late)
        self.heard = settlements
        self.stood = [settlement for settlement in settlements if settlement.token not in late]
        again = late & self._sent_before
        if again:
            log.info(log_events.SETTLEMENT_REPEATED, count=len(again))
        if late - again:
            log.warning(log_events.SETTLEMENT_REFUSED, count=len(late - again))
        self._sent_before.clear()
