"""A real engine that a test makes fail: as one whose server is away, stands on its hands, or whose answers get lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shoal.errors import EngineError, EngineUnavailable
from shoal.frontier.contract.engine import Engine
from shoal.frontier.contract.frontier import Ask, Granted, Renewal, WorkerInfo


class FaultyEngine:
    """Passes everything on to the engine behind it, which stays the caller's.

    `away`: no question reaches it. `lose`: so many exchanges happen, and their answers are lost. `broken`: what every
    exchange raises. `asked`: the exchanges that were asked for, `lost` and `renewed` how many were.
    """

    def __init__(self, engine: Engine) -> None:
        self.reader, self.cache, self.exits = engine.reader, engine.cache, engine.exits
        self.shares_clock = engine.shares_clock
        self.frontier: Any = self
        self._verbs = engine.frontier
        self.away = False
        self.lose = 0
        self.broken: EngineError | None = None
        self.asked: list[Ask] = []
        self.tried = 0
        self.lost = 0
        self.renewed = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._verbs, name)

    async def exchange(self, ask: Ask) -> Granted:
        self.tried += 1
        if self.away:
            raise EngineUnavailable("Nobody answers.")
        if self.broken is not None:
            raise self.broken
        self.asked.append(ask)
        granted = await self._verbs.exchange(ask)
        if self.lose:
            self.lose -= 1
            self.lost += len(granted.leases)
            raise EngineUnavailable("The answer was lost.")
        return granted

    async def renew(self, worker: WorkerInfo, leases: Sequence[Renewal]) -> Sequence[int]:
        if self.away:
            raise EngineUnavailable("Nobody answers.")
        self.renewed += len(leases)
        return await self._verbs.renew(worker, leases)

    async def close(self) -> None:
        """It belongs to someone else."""
