"""A lease client for those who have nothing but the URL of an engine. The one place here that opens engines."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from shoal.core.lanes import PAGE_LANES
from shoal.delivery.lease_client import DIRECTLY, LeaseClient
from shoal.delivery.options import LeaseOptions, UsableExits
from shoal.frontier.open import open_engine


@asynccontextmanager
async def open_leases(
    engine: str,
    scrapers: Sequence[str],
    *,
    lanes: Sequence[str] = PAGE_LANES,
    queues: Sequence[str] | None = None,
    concurrency: int = 1,
    drain: bool = False,
    charge_all: bool = True,
    exits: UsableExits | Mapping[str, Sequence[str]] = DIRECTLY,
) -> AsyncIterator[LeaseClient]:
    """A LeaseClient on the store behind a URL: `async with open_leases("sqlite:///shoal.db", ["books"]) as leases:`.

    `engine`: its store must be there already. `scrapers`: the names of those whose tasks are claimed. The others as of
    LeaseOptions and LeaseClient; `queues` also takes the ids of runs.
    """
    options = LeaseOptions(
        scrapers, lanes, queues, concurrency=concurrency, drain=drain, charge_all=charge_all,
    )  # fmt: skip
    opened = await open_engine(engine, create=False)
    try:
        async with LeaseClient(opened, options, exits=exits) as leases:
            yield leases
    finally:
        await opened.close()
