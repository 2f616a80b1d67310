"""How long a run must take at least, as the store knows it now and with the exits that the settings know."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from shoal.config.pools import exits_in, pools_from
from shoal.insight.polite_eta import PoliteETA, polite_eta

if TYPE_CHECKING:
    from shoal.config.settings import Settings
    from shoal.core.clock import Moment
    from shoal.frontier.contract.engine import Engine
    from shoal.frontier.contract.frontier import Run

LOOKED_AT = 100
"""Of the sites of a run, those that keep it busy for longest."""

Estimate = Callable[["Run"], Awaitable[PoliteETA | None]]


def estimate_by(store: Engine, settings: Settings) -> Estimate:
    """What says how long a run takes at least. It looks at sites, so that it is not for every moment."""
    own = pools_from(settings)

    async def estimate(run: Run) -> PoliteETA | None:
        if run.ended_at is not None or not run.counters.waiting:
            return None
        now = await store.reader.now()
        usable = exits_in(run.policy.pool, own, await store.exits.all(), now)
        eta = polite_eta(await store.reader.sites_of(run.queue, LOOKED_AT), len(usable), now)
        return None if eta is None else replace(eta, cause=await _cause(store, eta, now))

    return estimate


async def _cause(store: Engine, eta: PoliteETA, now: Moment) -> str | None:
    """What keeps its site from being visited, besides the pace: of its exits, the one that is free last says it."""
    if not eta.resting:
        return None
    blocked = [slot for slot in await store.reader.slots(eta.site) if slot.blocked_until > now and slot.cause]
    return max(blocked, key=lambda slot: slot.blocked_until).cause if blocked else None
