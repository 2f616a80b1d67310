"""A short, seeded drill on each engine: whatever is done to a fleet and its store, the rules are kept.

`make chaos`, and `make proof` with it, does the same for as long as you like, from any seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from proof.chaos.crawl import Scene
from proof.chaos.drill import WORKERS, Outcome, drill
from proof.chaos.plan import WEIGHTS, Kind, make_plan
from proof.chaos.sleepers import sleep_through_a_lease

SECONDS = {"sqlite": 4.0, "postgres": 9.0, "redis": 9.0}
"""How long each is disturbed."""
SEEDS = {"sqlite": 14, "postgres": 15, "redis": 53}
PAGES = {"sqlite": 28, "postgres": 36, "redis": 36}


@pytest.mark.parametrize("engine", SECONDS)
def test_a_fleet_that_is_hurt_keeps_every_rule(tmp_path: Path, engine: str) -> None:
    pages = PAGES[engine]
    scene = Scene(hosts=3, pages=pages, delay=0.1, results_ttl=2.0, reading=0.08, attempts=2)
    plan = make_plan(SEEDS[engine], engine, seconds=SECONDS[engine], workers=WORKERS, lease=scene.lease)
    outcome = drill(tmp_path, plan, scene)
    print(outcome.text())
    assert not outcome.breaches, f"{outcome.text()}\n{outcome.logs}"
    done = outcome.verdict.counted("done")
    assert done["kill"] >= 1
    assert {strike.kind for strike in plan.strikes if strike.worker is None} <= set(done)
    assert outcome.verdict.counted("I6")["tasks compared"] > pages


@pytest.mark.parametrize("engine", WEIGHTS)
def test_a_plan_comes_from_its_seed_alone(engine: str) -> None:
    plans = [make_plan(seed, engine, seconds=60, workers=WORKERS, lease=2.0) for seed in (1, 1, 2)]
    assert plans[0] == plans[1]
    assert plans[0] != plans[2]
    assert {strike.kind for strike in plans[0].strikes} == set(WEIGHTS[engine])


@pytest.mark.parametrize("engine", SECONDS)
def test_the_short_drills_do_every_kind_of_harm(engine: str) -> None:
    """But for connections that stay half-open, which take longer. No worker is hurt twice: one that has just ended
    could not be killed."""
    plan = make_plan(SEEDS[engine], engine, seconds=SECONDS[engine], workers=WORKERS, lease=2.0)
    assert {strike.kind for strike in plan.strikes} == set(WEIGHTS[engine]) - {Kind.HALF_OPEN}
    hurt = [strike.worker for strike in plan.strikes if strike.worker is not None]
    assert len(hurt) == len(set(hurt))


@pytest.fixture(scope="module")
def sleepers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[Outcome]]]:
    """One drill on each engine, all at the same time: nearly all of it is waiting."""
    with ThreadPoolExecutor(len(SECONDS)) as pool:
        yield {
            engine: pool.submit(sleep_through_a_lease, tmp_path_factory.mktemp(f"sleeper-{engine}"), engine)
            for engine in SECONDS
        }


@pytest.mark.parametrize("engine", SECONDS)
def test_a_worker_that_sleeps_through_its_leases_disturbs_nobody(
    sleepers: dict[str, Future[Outcome]], engine: str
) -> None:
    """Its requests are over before others use its slots, and it starts none when it wakes up."""
    outcome = sleepers[engine].result()
    print(outcome.text())
    assert not outcome.breaches, f"{outcome.text()}\n{outcome.logs}"
    assert outcome.verdict.counted("I2")["late"] >= 1
    assert outcome.verdict.counted("I4")["slots taken over from the living"] == 2
