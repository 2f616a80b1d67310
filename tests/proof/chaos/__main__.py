"""`make chaos ARGS="…"`: drills of any length, on any engine, from any seed."""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from proof.chaos.crawl import Scene
from proof.chaos.drill import WORKERS, Outcome, drill
from proof.chaos.plan import WEIGHTS, make_plan
from proof.chaos.sleepers import sleep_through_a_lease


def main() -> int:
    """Run the drills that were asked for. Exit code 1 if a rule was broken in one; its seed does it again."""
    parser = argparse.ArgumentParser(prog="make chaos", description="Hurt a fleet, and prove that it kept its rules.")
    parser.add_argument("--engine", choices=list(WEIGHTS), action="append", help="default: each of them")
    parser.add_argument("--seed", type=int, help="what the plan of disturbances is made from (default: any)")
    parser.add_argument("--seeds", type=int, default=1, help="so many drills, of this seed and the next ones")
    parser.add_argument("--minutes", type=float, default=1.0, help="how long it is disturbed (default: %(default)s)")
    parser.add_argument("--hosts", type=int, default=8, help="sites that are crawled (default: %(default)s)")
    parser.add_argument("--pages", type=int, help="pages of each site (default: as many as the time needs)")
    parser.add_argument("--delay", type=float, default=0.2, help="seconds between two starts of a site (%(default)s)")
    parser.add_argument("--keep", action="store_true", help="keep the folder of a drill that broke a rule")
    options = parser.parse_args()
    first = random.randrange(1_000_000) if options.seed is None else options.seed
    broken: list[str] = []
    for engine in options.engine or list(WEIGHTS):
        broken += _told(
            f"--engine {engine} (a worker that sleeps)", partial(sleep_through_a_lease, engine=engine), options
        )
    for seed in range(first, first + options.seeds):
        for engine in options.engine or list(WEIGHTS):
            broken += _one(engine, seed, options)
    print(f"{len(broken)} drills broke a rule" + "".join(f"\n  {name}" for name in broken))
    return 1 if broken else 0


def _one(engine: str, seed: int, options: argparse.Namespace) -> list[str]:
    seconds, delay = options.minutes * 60, options.delay
    pages = options.pages or max(20, round(seconds / delay))
    scene = Scene(hosts=options.hosts, pages=pages, delay=delay, reading=0.75 * delay)
    plan = make_plan(seed, engine, seconds=seconds, workers=WORKERS, lease=scene.lease)
    name = f"--engine {engine} --seed {seed} --minutes {options.minutes} --hosts {options.hosts} --delay {delay}"
    return _told(name, partial(drill, plan=plan, scene=scene), options)


def _told(name: str, do: Callable[[Path], Outcome], options: argparse.Namespace) -> list[str]:
    """Do one drill and print what it showed. Answers its name if it broke a rule."""
    folder = Path(tempfile.mkdtemp(prefix="shoal-chaos-"))
    outcome = do(folder)
    print(outcome.text(), flush=True)
    if outcome.breaches:
        print(outcome.logs)
    if outcome.breaches and options.keep:
        print(f"kept: {folder}")
    else:
        shutil.rmtree(folder)
    return [name] if outcome.breaches else []


if __name__ == "__main__":
    sys.exit(main())
