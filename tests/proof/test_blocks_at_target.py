"""Rate limits on some of twenty exits, as the target and the store saw them: who waits, who goes on, who goes first."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal.core.clock import Moment
from shoal.core.outcome import Settlement, Snoozed
from shoal.core.task import Policy
from shoal.testing.access_log import AccessLog
from shoal.testing.hostile_site import HostileSite
from support.engine_urls import ENGINES, empty_store
from support.fleet import Worked, ways, work_together
from support.working import reader

EXITS = [f"127.0.0.{number}" for number in range(2, 22)]
ONE_LIMITED, FIVE_LIMITED = "127.0.0.1", "127.0.1.1"
PAGES = 100
DELAY, WAIT = 200, 1
RULES = Policy(delay=DELAY, limit_exits=5)


@pytest.fixture(params=ENGINES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with empty_store(request.param, tmp_path) as url:
        yield url


async def test_a_limit_on_one_exit_is_its_own_and_limits_on_five_stop_the_site(store: str) -> None:
    exits = ways(*(f"source://{address}" for address in EXITS))
    async with HostileSite(host="0.0.0.0") as site:  # noqa: S104 - all of 127.0.0.0/8, and it hangs up on others
        site.limits[ONE_LIMITED, EXITS[0]] = WAIT
        site.limits.update({(FIVE_LIMITED, address): WAIT for address in EXITS[:5]})
        urls = [
            site.url(f"/site/{PAGES}/p/{page}", host=host)
            for page in range(PAGES)
            for host in (ONE_LIMITED, FIVE_LIMITED)
        ]
        worked = await work_together(store, reader(delay=DELAY / 1000), urls, exits, workers=3, policy=RULES)
        log = site.log
    print(f"{len(log)} requests, smallest gap {log.smallest_gap():.4f} s")
    assert {item["url"] for item in worked.items} == set(urls)
    assert log.smallest_gap() >= DELAY / 1000
    assert (worked.counters.snoozes, worked.counters.retries, worked.counters.dead) == (6, 0, 0)
    assert {lease.task.attempts for lease in worked.leases} == {0}
    _only_that_slot_waited(log.filter(host=ONE_LIMITED))
    _the_site_waited(worked, log.filter(host=FIVE_LIMITED))


def _only_that_slot_waited(log: AccessLog) -> None:
    limited = [entry for entry in log if entry.peer == EXITS[0]]
    said = next(entry for entry in limited if entry.status == 429)
    assert said.finished is not None
    later = [entry.started for entry in limited if entry.started > said.started]
    assert all(started >= said.finished + WAIT for started in later)
    back = min(later, default=math.inf)
    assert {entry.peer for entry in log if said.finished < entry.started < back} == set(EXITS[1:]), "the others go on"


def _the_site_waited(worked: Worked, log: AccessLog) -> None:
    blocked_at, over_at = _block(worked)
    of_site = [lease for lease in worked.leases if lease.task.site.startswith(FIVE_LIMITED)]
    granted = sorted(lease.claimed_at for lease in of_site if lease.claimed_at > blocked_at)
    early = [lease for lease in of_site if blocked_at < lease.claimed_at and lease.start_at < over_at]
    assert early == [], "after the block was stored, no worker is granted anything before its end"
    first, *rest = sorted((entry for entry in log if entry.started * 1000 >= over_at), key=lambda entry: entry.started)
    under_way = sum(blocked_at < entry.started * 1000 < over_at for entry in log)
    print(f"{under_way} requests were under way when it was stored; the next came {granted[0] - over_at} ms after it")
    assert first.finished is not None
    assert all(entry.started >= first.finished for entry in rest), "one goes first"
    assert {entry.peer for entry in log if entry.started >= first.started} >= set(EXITS[5:]), "and then the others"


def _block(worked: Worked) -> tuple[Moment, Moment]:
    """When the fifth limit was stored, and until when the site then waits, by the store's clock."""
    stored: list[tuple[Moment, Settlement]] = []
    for ask, granted in worked.heard:
        stored += [(granted.now, settled) for settled in ask.settlements if _is_limit(settled, worked)]
    waits = [now + settled.outcome.wait for now, settled in stored if isinstance(settled.outcome, Snoozed)]
    assert len(stored) == 5
    return max(now for now, _ in stored), max(waits)


def _is_limit(settled: Settlement, worked: Worked) -> bool:
    if not (isinstance(settled.outcome, Snoozed) and settled.outcome.wait):
        return False
    return any(lease.token == settled.token and lease.task.site.startswith(FIVE_LIMITED) for lease in worked.leases)
