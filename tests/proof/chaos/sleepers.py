"""A worker that sleeps through the end of its leases with requests out, and wakes up when others have its slots."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from proof.chaos.crawl import Scene
from proof.chaos.drill import RUN, Ground, Outcome, hurt
from shoal.frontier.open import open_engine
from shoal.testing.access_log import AccessLog
from support.crawling import wait_for
from support.waiting import until, wait_until

ANSWER_MS = 3_300
"""How long the target takes for the page that is out: well beyond the lease, and well within the hard timeout after
it."""

STEPS = 5
"""Redirects in a row, each a request of one lease: whenever its worker is stopped, it is between two of them."""


@dataclass(frozen=True, slots=True)
class Sleep(Scene):
    """On one host a page is answered slowly the first time. On another, the first page is at the end of redirects."""

    hosts: int = 2
    delay: float = 0.3
    timeout: float = 3.5
    results_ttl: float = 1.0
    reading: float = 0.0
    pages: int = 5

    def starts(self, port: int) -> list[str]:
        first, second = (f"http://127.0.0.{host}:{port}" for host in (1, 2))
        linked = [f"{host}/site/{self.pages}/" for host in (first, second)]
        return [f"{first}/delay/first/1/{ANSWER_MS}/out", f"{second}/redirect/{STEPS}", *linked]


def sleep_through_a_lease(folder: Path, engine: str) -> Outcome:
    """One worker has both hosts and is stopped; another takes over; the first one goes on in the middle of that.

    The rules then tell whether the target had two requests of a slot at once, or too close to each other.
    """
    what = f"a worker on {engine} is stopped while its requests are out, and goes on when others have its slots"
    return hurt(folder, engine, Sleep(), _harm, what, workers=2, concurrency=2, compared=False)


def _harm(ground: Ground) -> None:
    fleet = ground.fleet
    fleet.start(0)
    _wait_for_both(ground.access)
    fleet.stop(0)
    while ground.store.is_locked():
        fleet.go_on(0)
        fleet.stop(0)
    fleet.start(1)
    asyncio.run(_see_leases_lost(ground.store.direct))
    wait_for(ground.access, len(AccessLog.read(ground.access)) + 6)
    fleet.go_on(0)


def _wait_for_both(access: Path) -> None:
    """Until the slow page is out, and the redirects have begun."""
    wait_until(
        lambda: {"/delay", "/redirect"} <= {f"/{entry.path.split('/')[1]}" for entry in AccessLog.read(access)},
        "the target is asked for both pages",
        again=0.005,
    )


async def _see_leases_lost(url: str) -> None:
    """Sweep until both leases are known to be lost: as soon as they run out, without a look at the other worker."""
    engine = await open_engine(url, create=False)
    try:

        async def lost() -> bool:
            await engine.frontier.sweep()
            return (await engine.reader.run(RUN)).counters.crashes >= 2

        await until(lost, "both leases are lost", again=0.05)
    finally:
        await engine.close()
