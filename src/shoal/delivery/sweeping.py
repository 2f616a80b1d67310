"""The loop that brings back what lost workers held, at once where the death of one is noticed on this machine."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress

import structlog

from shoal.core import log_events
from shoal.core.clock import Clock
from shoal.delivery.local_deaths import LocalDeaths
from shoal.delivery.options import LeaseTiming
from shoal.errors import EngineUnavailable
from shoal.frontier.contract.frontier import Swept
from shoal.frontier.retrying import RetryingEngine

log = structlog.get_logger("shoal")


class Sweeping:
    """Sweeps for all who work on the store: whoever comes first does it."""

    def __init__(self, engine: RetryingEngine, clock: Clock, chance: random.Random, timing: LeaseTiming) -> None:
        self._engine = engine
        self._clock = clock
        self._chance = chance
        self._timing = timing

    async def keep_sweeping(self, is_over: Callable[[], bool]) -> None:
        """Not while the store is away, nor just after: those who could not renew their leases meanwhile come first.

        A cancellation may be swallowed on its way (`asyncio.wait_for` does so in Python 3.11 where an answer comes at
        the same moment), so it is not relied on alone.
        """
        with LocalDeaths(self._clock) as deaths:
            while not is_over():
                deaths.look_around()  # before the sweep: who dies after this look ends the wait
                swept = await self._sweep()
                if is_over():
                    break
                pause = 0 if swept.more else self._timing.sweep_every * self._chance.uniform(0.8, 1.2)
                if await deaths.wait(pause):
                    await self._clock.sleep(self._timing.sweep_after_a_death * self._chance.random())

    async def _sweep(self) -> Swept:
        swept = Swept()
        if self._engine.patience.is_steady:
            with suppress(EngineUnavailable):
                swept = await self._engine.frontier.sweep()
        if swept.returned or swept.buried:
            log.warning(log_events.LEASE_RECLAIMED, returned=swept.returned, dead=swept.buried)
        return swept
