"""What the harnesses of all engines have in common: handles on one store, on one clock that jumps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Generic, Self, TypeVar

from shoal.core.clock import Millis
from shoal.frontier.contract.jobs import Store
from shoal.testing.contract.harness import Capability
from shoal.testing.jump_clock import JumpClock

Opened = TypeVar("Opened", bound=Store)


class JumpingHarness(ABC, Generic[Opened]):
    """A `Harness` of the contract. Made with `await Kind(…).open()`; `close` closes every handle."""

    lacks: ClassVar[Mapping[Capability, str]] = {}

    def __init__(self) -> None:
        self.clock = JumpClock()
        self.engine: Opened
        self.others: list[Opened] = []

    @abstractmethod
    async def handle(self) -> Opened:
        """One more handle on the store, on `self.clock`."""

    async def open(self) -> Self:
        self.engine = await self.handle()
        return self

    async def advance(self, ms: Millis) -> None:
        self.clock.advance(ms)

    async def another(self) -> Opened:
        self.others.append(await self.handle())
        return self.others[-1]

    async def reopen(self) -> None:
        await self.engine.close()
        self.engine = await self.handle()

    async def close(self) -> None:
        for engine in (self.engine, *self.others):
            await engine.close()
