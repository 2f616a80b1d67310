"""A circuit breaker for the store: whether it can be reached, and what clients are told while it cannot."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from shoal.core import log_events
from shoal.errors import EngineError, Unstorable
from shoal.gateway.http.answer import Problem, unavailable

Result = TypeVar("Result")

TURNS = 10
LOOK_EVERY = 2.0
LOOK_AGAIN = 0.25
"""Seconds until the next look at a store that is well, and at one that is not."""

log = structlog.get_logger("shoal")


class StoreBreaker:
    """Every call to the store goes through here: bounded in time, and refused at once while the store is known to be
    away. One look at a time finds out when it is back.
    """

    def __init__(self, look: Callable[[], Awaitable[object]], patience: float) -> None:
        self._look = look
        self._patience = patience
        self._doubt = asyncio.Event()
        self.trouble: str | None = None
        """What is wrong with the store; None = nothing that we know of."""

    async def ask(self, call: Callable[[], Awaitable[Result]]) -> Result:
        """What the store answers. Raises Problem 503 if it does not in time, or is known not to."""
        return await self.bounded(self.ask_patiently(call))

    async def bounded(self, asking: Awaitable[Result]) -> Result:
        """The same for several calls that together may take no longer than one."""
        try:
            return await within(self._patience, asking)
        except TimeoutError:
            self._doubt.set()
            raise away() from None

    async def ask_patiently(self, call: Callable[[], Awaitable[Result]]) -> Result:
        """The same for calls whose end must be known, however long it takes. Raises Unstorable where the store is well
        and refuses what it is given."""
        self.check()
        try:
            return await call()
        except Unstorable:  # the store is well
            raise
        except EngineError as error:
            self._note(str(error))
            raise away() from error

    def check(self) -> None:
        """Raise Problem 503 if the store is known to be away."""
        if self.trouble is not None:
            raise away()

    async def run(self) -> None:
        """Keep looking."""
        while True:
            try:
                await within(self._patience, self._look())
            except TimeoutError:
                self._note("it does not answer in time")
            except EngineError as error:
                self._note(str(error))
            else:
                if self.trouble is not None:
                    log.warning(log_events.BREAKER_CLOSED)
                self.trouble = None
            self._doubt.clear()
            try:
                async with asyncio.timeout(LOOK_EVERY if self.trouble is None else LOOK_AGAIN):
                    await self._doubt.wait()
            except TimeoutError:
                continue

    def _note(self, trouble: str) -> None:
        if self.trouble is None:
            log.warning(log_events.BREAKER_OPENED, reason=trouble)
        self.trouble = trouble
        self._doubt.set()


async def within(seconds: float, call: Awaitable[Result]) -> Result:
    """What a call gives, or TimeoutError.

    The time is counted in turns of this process: one that is so busy that a turn takes a second must not take its own
    slowness for that of the store, and refuse everybody for it.
    """
    task = asyncio.ensure_future(call)
    try:
        for _ in range(TURNS):
            done, _ = await asyncio.wait({task}, timeout=seconds / TURNS)
            if done:
                return task.result()
        raise TimeoutError
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task})


def away() -> Problem:
    """What clients are told. The sentence of the engine may name hosts and files: that is for the log."""
    return unavailable("store-unavailable", "The store of this service cannot be used at the moment.")
