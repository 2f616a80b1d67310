"""Turns for large reads: few at once, and clients one after the other. Whoever asks for much waits for itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from shoal.gateway.http.answer import unavailable
from shoal.gateway.limits.fair_queue import FairQueue

AT_ONCE = 2
"""Large reads of one process: more of them would take memory, and the loop's time, from those who read little."""

MOST_WAITING = 1000
"""Beyond these, whoever has most waiting is told to come again."""


class ReadTurns:
    """A semaphore whose line is fair between clients."""

    def __init__(self, at_once: int = AT_ONCE, most_waiting: int = MOST_WAITING) -> None:
        self._free = at_once
        self._waiting: FairQueue[asyncio.Future[None]] = FairQueue(most_waiting)

    @asynccontextmanager
    async def turn(self, client: str) -> AsyncIterator[None]:
        """Within the block, it is this client's turn. Raises Problem 503 if too many wait, of this client above all."""
        if self._free:
            self._free -= 1
        else:
            await self._wait(client)
        try:
            yield
        finally:
            self._pass_on()

    async def _wait(self, client: str) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        sent_away = self._waiting.put(client, turn)
        if sent_away is not None and not sent_away.done():
            sent_away.set_exception(unavailable("overloaded", "Too many large answers are being read.", 5))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._pass_on()  # the turn came as the client left
            raise

    def _pass_on(self) -> None:
        while (following := self._waiting.take()) is not None:
            _, turn = following
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
