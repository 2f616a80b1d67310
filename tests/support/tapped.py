"""A real engine that a test listens to, and what it comes to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from typing import Any

from shoal.core.notes import Entry
from shoal.core.task import Policy
from shoal.errors import EngineBroken
from shoal.frontier.contract.frontier import Ask, Granted, Renewal, WorkerInfo
from shoal.frontier.sqlite.engine import SqliteEngine

SHORT = Policy(delay=0, concurrency=64, lease=1200, hard_timeout=100)
"""Leases that are soon over."""


class Tapped:
    """A real engine, of which a test is told what it is asked; what the test raises then, the engine has raised."""

    shares_clock = True

    def __init__(self, engine: SqliteEngine) -> None:
        self.reader = engine.reader
        self.frontier = TappedFrontier(engine)
        self.cache = TappedCache(engine)
        self.exits = engine.exits

    async def close(self) -> None:
        """It belongs to someone else."""


class TappedFrontier:
    def __init__(self, engine: SqliteEngine) -> None:
        self._frontier: Any = engine.frontier
        self.asked: list[Ask] = []
        self.renewed = 0
        self.before: Callable[[Ask], None] = lambda _ask: None
        self.after: Callable[[Granted], None] = lambda _granted: None
        self.pause: Callable[[], Awaitable[None]] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._frontier, name)

    async def exchange(self, ask: Ask) -> Granted:
        self.asked.append(ask)
        self.before(ask)
        granted: Granted = await self._frontier.exchange(ask)
        self.after(granted)
        if self.pause is not None:
            await self.pause()
        return granted

    async def renew(self, worker: WorkerInfo, leases: Sequence[Renewal]) -> Sequence[int]:
        self.renewed += len(leases)
        lost: Sequence[int] = await self._frontier.renew(worker, leases)
        return lost


class TappedCache:
    def __init__(self, engine: SqliteEngine) -> None:
        self._cache = engine.cache
        self.broken = False

    async def get(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        if self.broken:
            raise EngineBroken("The cache is gone.")
        return await self._cache.get(keys)

    async def put(self, entries: Sequence[Entry]) -> None:
        await self._cache.put(entries)

    async def hold(self, entries: Sequence[Entry]) -> Set[str]:
        return await self._cache.hold(entries)


def leased(engine: SqliteEngine, number: int) -> Callable[[], Awaitable[bool]]:
    async def so() -> bool:
        return (await engine.reader.run("run")).counters.leased == number

    return so
