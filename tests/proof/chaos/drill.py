"""One drill: a fleet crawls, all kinds of harm are done to it, and what it did is held against the rules."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import json
import os
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from proof.chaos.crawl import Scene, place_of, undisturbed
from proof.chaos.fleet import Fleet
from proof.chaos.plan import Kind, Plan, Strike
from proof.chaos.stores import Store, opened_store
from shoal.core.clock import SystemClock
from shoal.core.task import RunState
from shoal.frontier.contract.engine import Engine
from shoal.frontier.contract.frontier import Run
from shoal.frontier.contract.reader import DeadLetter, Item
from shoal.frontier.open import open_engine
from shoal.testing.access_log import AccessLog
from shoal.testing.history import (
    Breach,
    Disturbance,
    DisturbanceLog,
    Evidence,
    History,
    Rest,
    Sighting,
    Verdict,
    check,
)
from support.crawling import shoal, site_process, wait_for
from support.waiting import until

WORKERS = 8
END_WITHIN = 120.0
"""Seconds in which the crawl has to end after the last strike."""

GIVEN_UP_AFTER = 20_000
"""Milliseconds after which a worker gives up a connection that does not answer."""

RUN = "drill"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a drill has shown. `breaches`: of the rules, and of what else is asked of a fleet."""

    harm: str
    verdict: Verdict
    breaches: Sequence[Breach]
    seconds: float
    logs: str

    def text(self) -> str:
        others = [str(breach) for breach in self.breaches if breach not in self.verdict.breaches]
        return "\n".join([self.harm, f"ended after {self.seconds:.1f} s", self.verdict.text(), *others])


@dataclass(slots=True)
class Findings:
    """What could be read when all was over."""

    run: Run
    items: Sequence[Item]
    dead: Sequence[DeadLetter]
    sightings: list[Sighting] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Ground:
    """Where harm is done: a fleet that has not been started yet, its store, and the target's access log."""

    fleet: Fleet
    store: Store
    access: Path
    events: Path


def drill(folder: Path, plan: Plan, scene: Scene) -> Outcome:
    """A fleet at work is hurt as planned."""

    def harm(ground: Ground) -> None:
        ground.fleet.start_all()
        wait_for(ground.access, scene.hosts)
        _Strikes(ground.fleet, ground.store, DisturbanceLog(ground.events)).carry_out(plan)

    return hurt(folder, plan.engine, scene, harm, str(plan))


def hurt(
    folder: Path, engine: str, scene: Scene, harm: Callable[[Ground], None], what: str, *, workers: int = WORKERS,
    concurrency: int = 1, compared: bool = True,
) -> Outcome:  # fmt: skip
    """Do it all. `folder` is empty, and keeps whatever was written. `harm`: starts the fleet and does things to it;
    `what`: says which. `workers`, and how many requests each has out at once. `compared`: with an undisturbed crawl."""
    began = time.monotonic()
    (folder / "tmp").mkdir()
    events = folder / "events"
    with (
        opened_store(engine, folder) as store,
        site_process(folder, "--robots", "disallow-private") as (port, access),
        undisturbed(folder / "undisturbed", scene) if compared else nullcontext() as control,
    ):
        environment = {"SHOAL_ENGINE": store.url, "SHOAL_EVENTS": str(events), "TMPDIR": str(folder / "tmp")}
        scraper = scene.write(folder / "drill.py", port)
        _create_run(folder, scraper, environment)
        command: list[str | Path] = ["worker", scraper, "--run-id", RUN, "--quiet", "--concurrency", str(concurrency)]
        fleet = Fleet(folder, workers, command, environment)
        try:
            harm(Ground(fleet, store, access, events))
            findings = asyncio.run(_await_end(store.direct, fleet))
        finally:
            codes = fleet.dismiss()
        asyncio.run(_see_results_go(store.direct, findings))
        items, dead = control.wait() if control else (None, {place_of(letter.url) for letter in findings.dead})
        evidence = Evidence(
            History.read(events), findings.run, findings.items, findings.dead, AccessLog.read(access), items,
            [*store.rests(), _notebooks(folder)], findings.sightings,
        )  # fmt: skip
    verdict = check(evidence)
    others = [*_of_the_fleet(codes, fleet), *_of_the_dead(findings.dead, dead)]
    return Outcome(what, verdict, [*verdict.breaches, *others], time.monotonic() - began, fleet.logs())


def _create_run(folder: Path, scraper: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(
        shoal("run", scraper, "--run-id", RUN), cwd=folder, env={**os.environ, **environment},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["status"] == "queued"


class _Strikes:
    """Carries out a plan, strike by strike, and writes down what was done."""

    def __init__(self, fleet: Fleet, store: Store, log: DisturbanceLog) -> None:
        self._fleet, self._store, self._log = fleet, store, log
        self._clock = SystemClock()

    def carry_out(self, plan: Plan) -> None:
        began = time.monotonic()
        order = itertools.count()
        agenda: list[tuple[float, int, Callable[[], None]]] = []

        def put(at: float, act: Callable[[], None]) -> None:
            heapq.heappush(agenda, (at, next(order), act))

        for strike in plan.strikes:
            match strike:
                case Strike(kind=Kind.KILL, worker=int(place)):
                    put(strike.at, partial(self._fleet.kill, place))
                    put(strike.at + strike.seconds, partial(self._fleet.start, place))
                case Strike(kind=Kind.END, worker=int(place)):
                    put(strike.at, partial(self._fleet.end, place))
                    put(strike.at + strike.seconds, partial(self._fleet.start, place))
                case Strike(kind=Kind.STOP, worker=int(place)):
                    put(strike.at, partial(self._fleet.stop, place))
                    put(strike.at + strike.seconds, partial(self._fleet.go_on, place))
                case _:
                    put(strike.at, partial(self._hurt_store, strike.kind, strike.seconds))
        while agenda:
            at, _, act = heapq.heappop(agenda)
            time.sleep(max(0.0, began + at - time.monotonic()))
            act()

    def _hurt_store(self, kind: Kind, seconds: float) -> None:
        at = self._clock.now()
        self._store.strike(kind, seconds)
        deaf = GIVEN_UP_AFTER if kind is Kind.HALF_OPEN else 0
        self._log.add(Disturbance(at, self._clock.now() + deaf, kind.value))


async def _await_end(url: str, fleet: Fleet) -> Findings:
    """Until the run is finished, with a fleet that is kept up; then what can be read of it."""
    engine = await open_engine(url, create=False)
    try:
        until = time.monotonic() + END_WITHIN
        run = await engine.reader.run(RUN)
        while run.state is not RunState.FINISHED and time.monotonic() < until:
            fleet.keep_up()
            await asyncio.sleep(0.2)
            run = await engine.reader.run(RUN)
        since = SystemClock().now()
        items = await _items(engine)
        sighting = Sighting(since, SystemClock().now(), len(items))
        return Findings(run, items, await engine.reader.dead(RUN, limit=10_000), [sighting])
    finally:
        await engine.close()


async def _see_results_go(url: str, findings: Findings) -> None:
    """Sweep when the time of the results is over, and look again."""
    run = findings.run
    if run.ended_at is None or run.policy.results_ttl is None:
        return
    clock = SystemClock()
    engine = await open_engine(url, create=False)
    try:
        over = run.ended_at + run.policy.results_ttl
        await until(lambda: clock.now() > over, "the time of the results is over", again=0.05)
        swept_at = clock.now()
        while (await engine.frontier.sweep()).more:
            pass
        since = clock.now()
        findings.sightings.append(Sighting(since, clock.now(), len(await _items(engine)), swept_at))
    finally:
        await engine.close()


async def _items(engine: Engine) -> list[Item]:
    items: list[Item] = []
    cursor: int | None = 0
    while cursor is not None:
        page = await engine.reader.items(RUN, cursor)
        items.extend(page.items)
        cursor = page.cursor
    return items


def _notebooks(folder: Path) -> Rest:
    """Notebooks of workers that ended with nothing in hand are thrown away. One that is told to end while the store is
    away may leave its own behind."""
    ends = sum(each.kind in (Kind.KILL, Kind.END) for each in History.read(folder / "events").disturbances)
    return Rest("notebooks", len(list((folder / "tmp").glob("shoal-*.hand"))), ends)


def _of_the_fleet(codes: Sequence[int], fleet: Fleet) -> list[Breach]:
    """A worker ends when it is told to, with 0, and not by itself."""
    breaches = [Breach("fleet", f"a worker ended with {code} when it was told to") for code in codes if code]
    ended = fleet.ended_by_themselves
    return breaches + [Breach("fleet", f"worker {place} ended by itself, with {code}") for place, code in ended]


def _of_the_dead(found: Sequence[DeadLetter], expected: set[str]) -> list[Breach]:
    """The dead letters are those of the undisturbed crawl."""
    places = {place_of(letter.url): letter for letter in found}
    return [
        *(Breach("dead", f"{place} is a dead letter: {places[place].reason}") for place in places.keys() - expected),
        *(Breach("dead", f"{place} should be a dead letter") for place in expected - places.keys()),
    ]
