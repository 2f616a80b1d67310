"""A short, seeded drill on each engine: whatever is done to a fleet and its store, the rules are kept.

`make chaos` does the same for as long as you like, from any seed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.crawl import Scene
from chaos.drill import WORKERS, drill
from chaos.plan import WEIGHTS, Kind, make_plan

SECONDS = {"sqlite": 4.0, "postgres": 9.0, "redis": 9.0}
"""How long each is disturbed."""
SEEDS = {"sqlite": 14, "postgres": 15, "redis": 53}
PAGES = {"sqlite": 28, "postgres": 36, "redis": 36}


@pytest.mark.parametrize("engine", SECONDS)
def test_a_fleet_that_is_hurt_keeps_every_rule(tmp_path: Path, engine: str) -> None:
    pages = PAGES[engine]
    scene = Scene(hosts=3, pages=pages, delay=0.1, results_ttl=2.0, reading=0.08, retries=2)
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
