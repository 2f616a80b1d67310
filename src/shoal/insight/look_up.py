"""Looking up a URL in a store: where it is, with all that can keep it waiting, explained."""

from __future__ import annotations

from shoal.config.pools import exits_in, pools_from
from shoal.config.settings import Settings
from shoal.core.clock import Millis, Moment
from shoal.core.exit_address import TOR
from shoal.core.site_key import site_by
from shoal.core.task import DEFAULT_POOL, RunState
from shoal.core.url import dedup_key, normalise, site_of, without_credentials
from shoal.fetch.robots.cache import RobotsCache, origin_of
from shoal.frontier.contract.engine import Engine
from shoal.frontier.contract.frontier import Run
from shoal.frontier.contract.mover import MoveState
from shoal.frontier.contract.reader import Whereabouts
from shoal.insight.explain import Explanation, Surroundings, duplicate_of, explain
from shoal.insight.workers import lives, works_lane


async def look_up(
    store: Engine, settings: Settings, url: str, run_id: str | None = None
) -> tuple[Moment, list[tuple[Whereabouts, Explanation]]]:
    """Where a URL is, in each run that has seen it or in one, and why; and when that was looked up. Raises BadURL."""
    address = without_credentials(normalise(url))
    own = pools_from(settings)
    reader = store.reader
    key = dedup_key(normalise(url))
    found = await reader.whereabouts(site_of(address), address, key, run_id)
    now = await reader.now()
    workers = await reader.workers()
    health = await store.exits.all()
    rules = await RobotsCache(store.cache, settings.agent).known(origin_of(address))
    disallowed = rules is not None and not rules.unavailable and not rules.allowed(address)
    explained = []
    for first_found in found:
        run, place = await reader.run(first_found.run_id), first_found
        site = site_by(run.policy.sites, address)
        if site != site_of(address):  # the run keeps it elsewhere
            [place] = await reader.whereabouts(site, address, key, run.run_id) or [place]
        record, slots = await reader.site(site), await reader.slots(site)
        pool = place.pool or DEFAULT_POOL
        around = Surroundings(
            now,
            record,
            slots,
            exits_in(pool, own, health, now, all_of_them=True),
            health,
            staffed=any(lives(worker) and works_lane(worker, run, place.lane or "") for worker in workers),
            by_tor=TOR in own and pool in own[TOR].pools,
            disallowed=disallowed,
            moved_to=run.move.other if run.move is not None and run.move.state is MoveState.LEFT else None,
            delay=run.policy.delay,
            stricter=[] if record is None else await _stricter(store, run, record.delay),
        )
        said = explain(place, around)
        said.duplicate_of = duplicate_of(url, place.url or address)
        explained.append((place, said))
    return now, explained


async def _stricter(store: Engine, run: Run, delay: Millis) -> list[str]:
    """The other runs that go on, or are paused, and ask for just that delay, where it is longer than this run's."""
    if delay <= run.policy.delay:
        return []
    over = (RunState.FINISHED, RunState.CANCELLED)
    return [it.run_id for it in await store.reader.runs() if it.policy.delay == delay and it.state not in over]
