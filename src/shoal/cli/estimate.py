"""How long a run must take, as the store knows it now, for people and for `--json`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from shoal.cli.text import count, duration
from shoal.eta import PoliteETA, polite_eta
from shoal.pools import exits_in, pools_from

if TYPE_CHECKING:
    from shoal.frontier.engine import Engine
    from shoal.frontier.protocol import Run
    from shoal.settings import Settings

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
        return polite_eta(await store.reader.sites_of(run.queue, LOOKED_AT), len(usable), now)

    return estimate


def sentence(eta: PoliteETA) -> str:
    """Why it takes so long, in a few words."""
    pace = f"one request each {duration(eta.delay / 1000)}" if eta.delay else "without a delay"
    return f"{eta.site} has {eta.waiting:,} waiting, {pace} by {count(eta.exits, 'exit')}"


def as_data(eta: PoliteETA | None) -> dict[str, Any] | None:
    """What `--json` prints of it; times in seconds."""
    if eta is None:
        return None
    return {
        "seconds": eta.left / 1000,
        "site": eta.site,
        "waiting": eta.waiting,
        "delay": eta.delay / 1000,
        "exits": eta.exits,
        "resting": eta.resting / 1000,
    }
