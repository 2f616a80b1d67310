"""What a worker and its store say to each other: settlements go out, leases come in, and none is forgotten."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Sequence

import msgspec
import structlog

from shoal.clock import Clock, Millis
from shoal.errors import EngineError, EngineUnavailable
from shoal.frontier.protocol import Ask, Granted
from shoal.outcome import Settlement
from shoal.patience import PatientEngine
from shoal.work.store_time import StoreTime

LAST_WORD = 5.0
"""Seconds that the store is given to take back leases when the work ends by an error or is cancelled."""

COMPARE_AFTER: tuple[Millis, ...] = (0, 2_000, 8_000, 32_000)
"""When, after a lost answer, the store is told what is held: at the next exchange, and so long after each time. A
question that nobody waits for any more may still be answered: a store that stood still finds it when it goes on."""

log = structlog.get_logger("shoal")


class Unheard(Exception):
    """The time to end is over, and the store has not answered."""


class Talks:
    """One exchange at a time. `sent`, `received`: when the last one was, by `elapsed`. `took`: how long the last
    answer did. `heard`: what was brought to it; `stood`: what of that it settled. `time`: what all of them have told
    of the store's clock.

    `ask`: makes the next question, without settlements. `held`: the tokens of what is in hand now.
    """

    def __init__(
        self, engine: PatientEngine, clock: Clock, ask: Callable[[], Ask], held: Callable[[], Iterable[int]]
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._ask = ask
        self._held = held
        self._finished: list[Settlement] = []
        self._sending: list[Settlement] = []
        self._sent_before: set[int] = set()
        self._asked: asyncio.Future[Granted] | None = None
        self._unsure = False
        self._compare_at = math.inf
        self._compared = 0
        self.sent = self.received = self.took = 0.0
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

    async def last_word(self, give_back: Callable[[Granted], Iterable[Settlement]]) -> None:
        """Where the work has ended by an error or a cancellation: settle, and give back what is granted meanwhile. The
        store may not hear it."""
        if self.are_over:
            return
        if self._engine.patience.is_away:
            self.give_up()
            return
        try:
            async with asyncio.timeout(LAST_WORD):
                if self._asked is not None:
                    granted = await self._asked
                    self._asked, self._sending = None, []
                    self._finished += give_back(granted)
                if not self.are_over:
                    await self._exchange()
        except Exception as error:  # noqa: BLE001 - we end already, and with a better reason than this
            _say_left_behind(str(error) or "no answer in time")

    def give_up(self) -> None:
        """Nobody waits for an answer any more."""
        if self._asked is not None:
            self._asked.cancel()
        if not self.are_over:
            _say_left_behind(self._engine.patience.reason or "no answer in time")

    async def _exchange(self) -> Granted:
        """Nothing is forgotten if it fails: the next one brings it again."""
        self._sending += self._finished
        self._finished = []
        self.sent = self._clock.elapsed()
        held = tuple(self._held()) if self.sent >= self._compare_at else None
        ask = msgspec.structs.replace(self._ask(), settlements=tuple(self._sending), held=held)
        # Cancelled in between, we still want to know what was granted: it has to be given back.
        self._asked = asyncio.ensure_future(self._engine.frontier.exchange(ask))
        try:
            granted = await asyncio.shield(self._asked)
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
            again = self._compared < len(COMPARE_AFTER)
            self._compare_at = self.sent + COMPARE_AFTER[self._compared] if again else math.inf
        self._note(ask.settlements, granted)
        return granted

    def _doubt(self, ask: Ask) -> None:
        """It may have happened or not: what was settled may be late, what was granted is unknown."""
        self._unsure = True
        self._compared, self._compare_at = 0, self._clock.elapsed() + COMPARE_AFTER[0]
        self._sent_before |= {settlement.token for settlement in ask.settlements}

    def _note(self, settlements: Sequence[Settlement], granted: Granted) -> None:
        late = set(granted.late)
        self.heard = settlements
        self.stood = [settlement for settlement in settlements if settlement.token not in late]
        again = late & self._sent_before
        if again:
            log.info(
                "settlements that were sent again had been stored already, or their lease is over", count=len(again)
            )
        if late - again:
            log.warning("settlements came too late and were thrown away", count=len(late - again))
        self._sent_before.clear()


def _say_left_behind(reason: str) -> None:
    log.warning("leases could not be given back; they will run out", reason=reason)


def of_the_store(error: BaseException) -> BaseException:
    """What went wrong with the store, out of the group of tasks that it ended; anything else as it is."""
    while isinstance(error, BaseExceptionGroup):
        store = error.subgroup((EngineError, Unheard))
        if store is None:
            break
        error = store.exceptions[0]
    return error
