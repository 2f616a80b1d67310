"""How much of the pace that a site allows is used, and whether it is ever broken: 50 sites, 20 exits, 1 s between two.

    python benchmarks/politeness.py                     # SQLite, PostgreSQL, Redis: under six minutes
    python benchmarks/politeness.py --quick             # to see that it works
    python benchmarks/politeness.py --engine redis      # one of them; may be repeated

The sites are addresses of one process (`watched_target.py`), the exits are local addresses, and the only witness is the
log of that process. 1,000 requests/s are possible: each exit once a second at each site.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from parts.politeness.watched_target import gaps, read_log
from parts.shared.private_servers import PrivateServers, cpu_seconds_of
from parts.shared.report import BenchmarkError, Goal, facts, goals_table, machine, number, progress, save_section, table
from parts.shared.stores import delete_store, empty_store
from parts.shared.workshop import PARTS, WORKSHOP

if TYPE_CHECKING:
    from parts.politeness.watched_target import Seen

ENGINES = ("sqlite", "postgresql", "redis")
SHARE = 0.98
QUIET = 0.25
"""Processors that the rest of the machine may use before the figures are called provisional."""

SCRAPERS = """
from shoal import Page, Scraper

polite = Scraper("polite", delay={delay}, mode="distributed")
unpaced = Scraper("unpaced", delay=0, mode="distributed")


@polite.page
@unpaced.page
def read(page: Page):
    yield {{"title": page.text("h1")}}
"""


@dataclass(frozen=True)
class Plan:
    """How much is measured. `ceiling_pages`: so many are fetched without a delay, to see what the processors allow."""

    sites: int = 50
    exits: int = 20
    workers: int = 4
    delay: float = 1.0
    seconds: float = 30.0
    kills: int = 4
    kill_every: float = 4.0
    ceiling_pages: int = 20_000

    @property
    def slots(self) -> int:
        """So many requests are possible in each delay."""
        return self.sites * self.exits

    @property
    def possible(self) -> float:
        """Requests per second that the pace allows."""
        return self.slots / self.delay


QUICK = Plan(sites=10, exits=5, workers=2, seconds=5, kills=2, kill_every=2, ceiling_pages=2000)


@dataclass(frozen=True)
class Phase:
    """What was seen in one stretch of time: requests per second, and processors in use (1 = one of them, all of it)."""

    rate: float
    workers: float
    store: float
    target: float
    others: float


@dataclass(frozen=True)
class Measured:
    """One engine. `gaps`: of the polite crawl, kills included, in seconds."""

    engine: str
    steady: Phase
    killed: Phase
    ceiling: Phase
    gaps: list[float]
    plan: Plan

    @property
    def allowed(self) -> float:
        """Requests per second that both the pace and the processors allow."""
        return min(self.plan.possible, self.ceiling.rate)

    @property
    def too_close(self) -> int:
        """Requests that came sooner than the delay after the last of their slot."""
        return sum(gap < self.plan.delay for gap in self.gaps)


class Crawl:
    """One scraper, a store, a target and workers, each a process, for as long as the block runs."""

    def __init__(self, plan: Plan, scraper: str, pages: int, store: str, servers: PrivateServers) -> None:
        self.plan, self._scraper, self._pages, self._store, self._servers = plan, scraper, pages, store, servers
        self._stack = ExitStack()
        self._workers: list[subprocess.Popen[bytes]] = []
        self._spent = 0.0

    def __enter__(self) -> Crawl:
        with ExitStack() as stack:
            self._folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="shoal-polite-")))
            self.log = self._folder / "access.log"
            command = [sys.executable, str(PARTS / "politeness" / "watched_target.py"), str(self.log)]
            self._target = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            stack.callback(_end, self._target)
            self._write_files(int(self._target.stdout.readline()))
            asyncio.run(delete_store(self._store))
            stack.callback(lambda: asyncio.run(delete_store(self._store)))
            run = self._shoal("run", f"polite.py:{self._scraper}", "--urls-file", "urls.txt")
            subprocess.run(run, cwd=self._folder, check=True, stdout=subprocess.DEVNULL)
            stack.callback(self._end_workers)
            for _ in range(self.plan.workers):
                self._start_worker()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _write_files(self, port: int) -> None:
        plan = self.plan
        ways = ", ".join(f'"source://127.0.0.{number + 2}"' for number in range(plan.exits))
        (self._folder / "shoal.toml").write_text(f"[exits.default]\nways = [{ways}]\n")
        (self._folder / "polite.py").write_text(SCRAPERS.format(delay=plan.delay))
        urls = (f"http://127.0.1.{page % plan.sites + 1}:{port}/{page}\n" for page in range(self._pages))
        (self._folder / "urls.txt").write_text("".join(urls))

    def _shoal(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "shoal", *words, "--engine", self._store, "--quiet"]

    def _start_worker(self) -> None:
        command = self._shoal("worker", f"polite.py:{self._scraper}")
        errors = (self._folder / "worker.log").open("ab")
        with errors:
            self._workers.append(subprocess.Popen(command, cwd=self._folder, stderr=errors))

    def _end_workers(self) -> None:
        for worker in self._workers:
            _end(worker)

    def replace_worker(self) -> None:
        """Kill the worker that has lived longest, and start another."""
        worker = self._workers.pop(0)
        self._spent += cpu_seconds_of(worker.pid)
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        self._start_worker()

    def wait_until_steady(self) -> None:
        """Until every slot has been used."""
        deadline = time.monotonic() + 90
        while len({(seen.site, seen.peer) for seen in self.seen()}) < self.plan.slots:
            if time.monotonic() > deadline:
                said = (self._folder / "worker.log").read_text()[-1000:]
                raise BenchmarkError(f"Not every slot has been used after 90 s. The workers say: {said or 'nothing'}")
            time.sleep(0.2)
        time.sleep(2 * self.plan.delay)

    def wait_for(self, pages: int) -> None:
        """Until the target has seen so many."""
        deadline = time.monotonic() + 120
        while len(self.seen()) < pages and time.monotonic() < deadline:
            time.sleep(0.05)

    def seen(self) -> list[Seen]:
        """What the target has seen so far."""
        return read_log(self.log) if self.log.exists() else []

    def used(self) -> tuple[float, ...]:
        """CPU seconds so far: of the workers, the store, the target, and of the whole machine."""
        workers = self._spent + sum(cpu_seconds_of(worker.pid) for worker in self._workers)
        return workers, self._servers.cpu_seconds(self._store), cpu_seconds_of(self._target.pid), _machine_busy()


class Watch:
    """A stretch of time in which a crawl is watched: from when this is made until `end`.

    Slots that are used together come in waves, one in each delay. Their count must not depend on whether the last wave
    is still inside: so requests less than `blur` seconds from the beginning or the end count in part.
    """

    def __init__(self, crawl: Crawl, blur: float = 0.0) -> None:
        self._crawl = crawl
        self._blur = blur
        self._begin, self._before = time.monotonic_ns(), crawl.used()

    def end(self) -> Phase:
        """What has happened."""
        after, end = self._crawl.used(), time.monotonic_ns()
        seconds = (end - self._begin) / 1e9
        time.sleep(0.3)  # until the target has written what it saw
        requests = sum(self._weight(min(seen.at - self._begin, end - seen.at) / 1e9) for seen in self._crawl.seen())
        workers, store, target, busy = ((late - soon) / seconds for soon, late in zip(self._before, after, strict=True))
        rate = requests / (seconds - self._blur)
        return Phase(rate, workers, store, target, max(0.0, busy - workers - store - target))

    def _weight(self, inside: float) -> float:
        """How much a request counts that is so many seconds from the nearer end."""
        if inside < 0:
            return 0.0
        return 1.0 if inside >= self._blur else inside / self._blur


def _machine_busy() -> float:
    """CPU seconds that the machine was not idle, waiting for disks not counted."""
    user, nice, system, _idle, _waiting, *interrupts = map(int, Path("/proc/stat").read_text().split()[1:9])
    return (user + nice + system + sum(interrupts[:2])) / os.sysconf("SC_CLK_TCK")


def _end(process: subprocess.Popen[bytes] | subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


def measure(kind: str, plan: Plan, servers: PrivateServers) -> Measured:
    """The polite crawl, undisturbed and with kills, and as many pages without any delay."""
    engine = f"sqlite:///{WORKSHOP / 'polite.db'}" if kind == "sqlite" else servers.url(kind)
    store = asyncio.run(empty_store(engine, "polite"))
    pages = round(plan.possible * (plan.seconds + plan.kills * plan.kill_every + 20))
    progress(f"{kind}: {plan.workers} workers, {plan.sites} sites, {plan.exits} exits, {plan.delay:g} s …")
    with Crawl(plan, "polite", pages, store, servers) as crawl:
        crawl.wait_until_steady()
        watch = Watch(crawl, plan.delay)
        time.sleep(plan.seconds)
        steady = watch.end()
        progress(f"{kind}: {number(steady.rate)} requests/s; while workers are killed …")
        watch = Watch(crawl, plan.delay)
        for _ in range(plan.kills):
            crawl.replace_worker()
            time.sleep(plan.kill_every)
        killed = watch.end()
        seen = crawl.seen()
    if len(seen) >= pages * 0.98:
        raise BenchmarkError("The pages ran out while they were counted; give it fewer --seconds.")
    progress(f"{kind}: {number(killed.rate)} requests/s; without a delay …")
    with Crawl(plan, "unpaced", plan.ceiling_pages, store, servers) as crawl:
        crawl.wait_for(plan.ceiling_pages // 5)
        watch = Watch(crawl)
        crawl.wait_for(round(plan.ceiling_pages * 0.9))
        ceiling = watch.end()
    progress(f"{kind}: {number(ceiling.rate)} requests/s")
    return Measured(kind, steady, killed, ceiling, gaps(seen), plan)


def show(measured: list[Measured]) -> tuple[str, list[Goal]]:
    """Tables of all engines, and the goals."""
    rows = []
    for m in measured:
        for name, phase in (("steady", m.steady), ("with kills", m.killed), ("no delay", m.ceiling)):
            used = [f"{share:.2f}" for share in (phase.workers, phase.store, phase.target, phase.others)]
            of_possible = "" if phase is m.ceiling else f"{phase.rate / m.plan.possible:.1%}"
            of_allowed = "" if phase is m.ceiling else f"{phase.rate / m.allowed:.1%}"
            rows.append([m.engine, name, number(phase.rate), of_possible, of_allowed, *used])
    head = [
        "engine",
        "phase",
        "requests/s",
        "of possible",
        "of what CPU allows",
        "workers",
        "store",
        "target",
        "others",
    ]
    parts = [table(head, rows)]
    slots = [
        [m.engine, number(len(m.gaps)), f"{min(m.gaps):.4f}", f"{statistics.median(m.gaps):.4f}", str(m.too_close)]
        for m in measured
    ]
    parts.append(table(["engine", "gaps", "smallest s", "median s", "below the delay"], slots))
    goals = []
    for m in measured:
        goals.append(
            Goal(f"{m.engine}: of the possible rate, or of what the CPU allows", SHARE, m.steady.rate / m.allowed)
        )
        goals.append(Goal(f"{m.engine}: gaps below the delay, kills included", 0, m.too_close, at_least=False))
    return "\n\n".join(parts), goals


def main() -> int:
    """Read the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", action="append", choices=ENGINES, help="default: all. May be repeated.")
    parser.add_argument("--quick", action="store_true", help="small, to see that it works")
    parser.add_argument("--seconds", type=float, help="how long the steady crawl is watched")
    parser.add_argument("--workers", type=int, help="worker processes")
    parser.add_argument("--save", action="store_true", help="write the figures to RESULTS.md")
    options = parser.parse_args()
    plan = QUICK if options.quick else Plan()
    plan = replace(plan, seconds=options.seconds or plan.seconds, workers=options.workers or plan.workers)
    engines = options.engine or ENGINES
    try:
        with PrivateServers([kind for kind in engines if kind != "sqlite"]) as servers:
            measured = [measure(kind, plan, servers) for kind in engines]
    except BenchmarkError as error:
        print(error, file=sys.stderr)
        return 2
    text, goals = show(measured)
    about = (
        f"{plan.sites} sites, {plan.exits} exits, a delay of {plan.delay:g} s: {number(plan.possible)} requests/s are "
        f"possible. {plan.workers} worker processes; steady: {plan.seconds:g} s; with kills: one every "
        f"{plan.kill_every:g} s, {plan.kills} in all. Counted at the target. The last columns are processors in use."
    )
    busiest = max(phase.others for m in measured for phase in (m.steady, m.killed, m.ceiling))
    if busiest > QUIET:
        about += (
            f" PROVISIONAL: other work used up to {busiest:.1f} processors meanwhile; no goal can be judged by that."
        )
    body = "\n\n".join(["## Politeness", facts(machine()), about, text, goals_table(goals)])
    print(body)
    if options.save:
        save_section("politeness", body)
    return 0


if __name__ == "__main__":
    sys.exit(main())
