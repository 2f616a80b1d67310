"""More workers, more pages: 1, 2, 4 and 8 worker processes against a site that takes 200 ms for each answer.

    python benchmarks/scaling.py                      # all engines; takes about six minutes
    python benchmarks/scaling.py --engine redis       # on a server of its own; or the URL of one; may be repeated

Each worker keeps a few requests in flight, so that the site's slowness is the limit and not the processor. The rate is
taken at the site, from when all workers have begun until the first has no work left: starting up is not counted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
from parts.shared.private_servers import DURABILITY, POSTGRESQL, REDIS, PrivateServers
from parts.shared.report import BenchmarkError, Goal, facts, goals_table, machine, number, progress, save_section, table
from parts.shared.stores import delete_store, empty_store
from parts.shared.workshop import PARTS, WORKSHOP

if TYPE_CHECKING:
    from collections.abc import Iterator

LINEAR = 0.9
SCRAPER = """
from shoal import Page, Scraper

slow = Scraper("slow", delay=0, concurrency=100_000, mode="distributed")


@slow.page
def read(page: Page):
    yield {"title": page.text("h1")}
"""


@dataclass(frozen=True)
class Measured:
    """So many workers: pages per second at the site, and how busy the machine's processors were meanwhile."""

    workers: int
    pages_per_s: float
    cpu: float


@contextmanager
def slow_site(latency: float) -> Iterator[int]:
    """The site as a process of its own. Gives its port."""
    command = [sys.executable, str(PARTS / "scaling" / "slow_server.py"), "--latency", str(latency)]
    site = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert site.stdout is not None  # noqa: S101 - it is a pipe
        yield int(site.stdout.readline())
    finally:
        site.terminate()
        site.wait()


def counts(port: int) -> dict[str, int]:
    """Answers so far, by worker."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/counts", timeout=10) as answer:
        found: dict[str, int] = json.load(answer)
    return found


def measure(engine: str, workers: int, options: argparse.Namespace) -> Measured:
    """Fill a store, start so many workers, and watch the site."""
    pages = round(workers * options.concurrency / options.latency * (options.seconds + 4))
    with ExitStack() as stack:
        port = stack.enter_context(slow_site(options.latency))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="shoal-scaling-")))
        (folder / "slow.py").write_text(SCRAPER)
        (folder / "urls.txt").write_text("".join(f"http://127.0.0.1:{port}/{page}\n" for page in range(pages)))
        store = asyncio.run(empty_store(engine, f"scaling-{workers}"))
        stack.callback(lambda: asyncio.run(delete_store(store)))
        shoal = [sys.executable, "-m", "shoal"]
        run = [*shoal, "run", "slow.py", "--engine", store, "--urls-file", "urls.txt", "--quiet"]
        subprocess.run(run, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        work = [*shoal, "worker", "slow.py", "--engine", store, "--concurrency", str(options.concurrency), "--quiet"]
        for place in range(workers):
            environment = {**os.environ, "SHOAL_USER_AGENT": f"worker-{place}"}
            process = subprocess.Popen(work, cwd=folder, env=environment, stderr=subprocess.DEVNULL)
            stack.callback(_end, process)
        return _watch(port, workers, pages, options.seconds)


def _watch(port: int, workers: int, pages: int, seconds: float) -> Measured:
    deadline = time.monotonic() + 120
    while len(counts(port)) < workers:
        if time.monotonic() > deadline:
            raise BenchmarkError(f"Only {len(counts(port))} of {workers} workers have begun after two minutes.")
        time.sleep(0.1)
    time.sleep(1)
    psutil.cpu_percent()
    before, begin = sum(counts(port).values()), time.perf_counter()
    time.sleep(seconds)
    after, end = sum(counts(port).values()), time.perf_counter()
    if after >= pages * 0.97:
        raise BenchmarkError("The work ran out while it was measured; give it fewer --seconds.")
    return Measured(workers, (after - before) / (end - begin), psutil.cpu_percent())


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def show(engine: str, measured: list[Measured]) -> tuple[str, list[Goal]]:
    """A table of one engine, and its goals: as far as the processors were not full."""
    alone = measured[0].pages_per_s / measured[0].workers
    rows = [
        [str(m.workers), number(m.pages_per_s), f"{m.pages_per_s / alone / m.workers:.2f}", f"{m.cpu:.0f} %"]
        for m in measured
    ]
    kind = engine.partition(":")[0]
    text = f"{kind}:\n\n" + table(["workers", "pages/s", "of linear", "CPU in use"], rows)
    goals = [
        Goal(f"{kind}: {m.workers} workers, of linear", LINEAR, m.pages_per_s / alone / m.workers)
        for m in measured[1:]
        if m.cpu < 90
    ]
    return text, goals


def measure_all(engines: list[str], options: argparse.Namespace) -> Iterator[tuple[str, list[Goal]]]:
    """Each engine with each number of workers."""
    with PrivateServers([engine for engine in engines if engine in DURABILITY]) as servers:
        for engine in engines:
            url = servers.url(engine) if engine in DURABILITY else engine
            if engine == "sqlite":
                url = f"sqlite:///{WORKSHOP / 'scaling.db'}"
            measured = []
            for workers in options.workers:
                progress(f"{url.partition(':')[0]}: {workers} workers …")
                measured.append(measure(url, workers, options))
            yield show(url, measured)


def main() -> int:
    """Read the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", action="append", help="sqlite, postgresql, redis, or a URL; may be repeated")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--concurrency", type=int, default=8, help="requests in flight of each worker")
    parser.add_argument("--latency", type=float, default=0.2, help="seconds that the site takes for an answer")
    parser.add_argument("--seconds", type=float, default=10.0, help="how long the site is watched")
    parser.add_argument("--save", action="store_true", help="write the figures to RESULTS.md")
    options = parser.parse_args()
    parts, goals = [], []
    try:
        for text, reached in measure_all(options.engine or ["sqlite", POSTGRESQL, REDIS], options):
            parts.append(text)
            goals += reached
    except BenchmarkError as error:
        print(error, file=sys.stderr)
        return 2
    about = f"Site: {options.latency:g} s an answer; {options.concurrency} requests in flight per worker."
    body = "\n\n".join(["## Scaling", facts(machine()), about, *parts, goals_table(goals)])
    print(body)
    if options.save:
        save_section("scaling", body)
    return 0


if __name__ == "__main__":
    sys.exit(main())
