"""The other workers of this machine, watched so that the death of one is known at once and not at the next sweep."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from types import TracebackType
from typing import Self

from shoal.core.clock import Clock
from shoal.delivery.waiting import news_or_time
from shoal.frontier.shared.liveness import owners_of_notebooks

MOST = 256
"""How many are watched; each takes a descriptor."""


class LocalDeaths:
    """Knows them by their notebooks, whatever store they work for. Open within a `with` block, in an event loop.

    Where the system does not tell of deaths (Linux does, by pidfd), nothing is noticed.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: set[str] = set()
        self._descriptors: set[int] = set()
        self._death = asyncio.Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: type[BaseException] | None, _error: object, _trace: TracebackType | None) -> None:
        for descriptor in list(self._descriptors):
            self._let_go(descriptor)

    def look_around(self) -> None:
        """Watch those who have come since the last time. Nobody is watched twice: the dead leave their notebooks."""
        if not hasattr(os, "pidfd_open"):
            return
        owners = owners_of_notebooks()
        self._seen &= owners.keys()
        for name in owners.keys() - self._seen:
            if len(self._descriptors) >= MOST:
                return
            self._seen.add(name)
            if owners[name] != os.getpid():
                with suppress(OSError):  # it is dead already, or there are no more descriptors
                    self._watch(os.pidfd_open(owners[name]))

    async def wait(self, seconds: float) -> bool:
        """Until one of those who were seen dies, or so many seconds are over. Answers whether one has died."""
        return await news_or_time(self._death, seconds, self._clock)

    def _watch(self, descriptor: int) -> None:
        self._descriptors.add(descriptor)
        asyncio.get_running_loop().add_reader(descriptor, self._died, descriptor)

    def _died(self, descriptor: int) -> None:
        self._let_go(descriptor)
        self._death.set()

    def _let_go(self, descriptor: int) -> None:
        asyncio.get_running_loop().remove_reader(descriptor)
        self._descriptors.discard(descriptor)
        os.close(descriptor)
