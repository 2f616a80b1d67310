"""Several workers in this process, each with an engine of its own on one store; what the store told each is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

from shoal.api.scraper import Scraper
from shoal.core.exit_address import parse_exit
from shoal.core.task import DEFAULT_POOL, Lease, Policy
from shoal.frontier.contract.exits import ExitRecord, NewExit
from shoal.frontier.contract.frontier import Ask, Counters, Granted
from shoal.frontier.open import open_engine
from support.working import result_of, start_run, worker_for

PATIENCE = 120.0


class Watched:
    """A real engine, whose exchanges are written down."""

    def __init__(self, engine: Any, heard: list[tuple[Ask, Granted]]) -> None:
        self._engine = engine
        self.frontier = _Watched(engine.frontier, heard)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)


class _Watched:
    def __init__(self, frontier: Any, heard: list[tuple[Ask, Granted]]) -> None:
        self._frontier = frontier
        self._heard = heard

    def __getattr__(self, name: str) -> Any:
        return getattr(self._frontier, name)

    async def exchange(self, ask: Ask) -> Granted:
        granted: Granted = await self._frontier.exchange(ask)
        self._heard.append((ask, granted))
        return granted


@dataclass
class Worked:
    """What a fleet did. `heard`: every exchange, in the order in which the answers came."""

    heard: list[tuple[Ask, Granted]] = field(default_factory=list)
    counters: Counters = field(default_factory=Counters)
    items: Sequence[Mapping[str, Any]] = ()
    exits: Mapping[str, ExitRecord] = field(default_factory=dict)

    @property
    def leases(self) -> list[Lease]:
        return [lease for _, granted in self.heard for lease in granted.leases]


def ways(*addresses: str) -> dict[str, NewExit]:
    """Exits of the default pool, by name."""
    names = {address: parse_exit(address).name for address in addresses}
    return {name: NewExit(name, address, (DEFAULT_POOL,)) for address, name in names.items()}


async def work_together(
    store: str, scraper: Scraper, urls: Iterable[str], exits: Mapping[str, NewExit], *, workers: int, policy: Policy
) -> Worked:
    """Have these pages worked on until nothing is left."""
    worked = Worked()
    async with AsyncExitStack() as stack:
        engines = []
        for _ in range(workers):
            engine = await open_engine(store)
            stack.push_async_callback(engine.close)
            engines.append(engine)
        await start_run(engines[0], scraper, urls=urls, policy=policy)
        async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
            for engine in engines:
                watched: Any = Watched(engine, worked.heard)
                group.create_task(worker_for(watched, scraper, exits=exits).run())
        crawled = await result_of(engines[0])
        worked.counters, worked.items = crawled.counters, crawled.items
        worked.exits = {record.name: record for record in await engines[0].exits.all()}
    return worked
