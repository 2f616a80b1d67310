"""Request coalescing: whatever was asked while the last read was under way is read together next."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import islice
from typing import Generic, TypeVar

from shoal.core.clock import Clock
from shoal.gateway.http.answer import Problem

Value = TypeVar("Value")

REST = 1.0
"""After a read, this many times as long as it took passes before the next, so that others come to their turn."""

LONGEST_REST = 0.25


class SharedReads(Generic[Value]):
    """Values by key, each asked for by any number of clients, read at most `most` keys at a time."""

    def __init__(
        self, read: Callable[[Sequence[str]], Awaitable[Mapping[str, Value]]], most: int, clock: Clock
    ) -> None:
        self._read = read
        self._most = most
        self._clock = clock
        self._asked: dict[str, list[asyncio.Future[Value | None]]] = {}
        self._some = asyncio.Event()

    async def get(self, key: str) -> Value | None:
        """The value as it is now or later, never earlier; None = there is none. Raises what the read raises."""
        future: asyncio.Future[Value | None] = asyncio.get_running_loop().create_future()
        self._asked.setdefault(key, []).append(future)
        self._some.set()
        return await future

    async def run(self) -> None:
        """Read what is asked for, until cancelled."""
        while True:
            await self._some.wait()
            asked = dict(islice(self._asked.items(), self._most))
            for key in asked:
                del self._asked[key]
            if not self._asked:
                self._some.clear()
            began = self._clock.elapsed()
            await self._answer(asked)
            took = (self._clock.elapsed() - began) / 1000
            await self._clock.sleep(min(LONGEST_REST, REST * took))

    async def _answer(self, asked: dict[str, list[asyncio.Future[Value | None]]]) -> None:
        found: Mapping[str, Value] = {}
        trouble: Exception | None = None
        try:
            found = await self._read(list(asked))
        except Problem as problem:  # the store is away: those who came meanwhile have waited for it just as well
            trouble = problem
            for key, futures in self._asked.items():
                asked.setdefault(key, []).extend(futures)
            self._asked.clear()
            self._some.clear()
        except Exception as error:  # noqa: BLE001 - it belongs to those who asked, and the next read may do better
            trouble = error
        for key, futures in asked.items():
            for future in futures:
                if future.done():  # whoever asked has gone
                    continue
                if trouble is None:
                    future.set_result(found.get(key))
                else:
                    future.set_exception(trouble)
