"""The frontier beside job queues: the same jobs on the same servers, in rounds, each contestant in its own process.

A contestant opens its store, says that it is ready, and is timed from then on: it enqueues all jobs in batches, takes
them, does nothing with each, and finishes it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import venv
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from parts.frontier.load import BATCH
from parts.shared.private_servers import POSTGRESQL, REDIS, PrivateServers, cpu_seconds_of
from parts.shared.report import BenchmarkError, progress
from parts.shared.workshop import WORKSHOP

if TYPE_CHECKING:
    from collections.abc import Sequence

HERE = Path(__file__).parent
ENVIRONMENT = WORKSHOP / "queues"
SHOAL = "shoal"


@dataclass(frozen=True)
class Contestant:
    """A queue on one kind of server. `jobs`: about as many as it does in three seconds. `share`: the goal's ratio."""

    name: str
    server: str
    jobs: int
    concurrency: int
    share: float | None = None


CONTESTANTS = (
    Contestant(SHOAL, POSTGRESQL, 30_000, concurrency=4),
    Contestant("pgqueuer", POSTGRESQL, 30_000, concurrency=64, share=1.0),
    Contestant("procrastinate", POSTGRESQL, 1_500, concurrency=64, share=20.0),
    Contestant(SHOAL, REDIS, 60_000, concurrency=4),
    Contestant("saq", REDIS, 6_000, concurrency=20, share=10.0),
    Contestant("arq", REDIS, 4_000, concurrency=200, share=10.0),
)


@dataclass(frozen=True)
class Contest:
    """One contestant's jobs per second, and per CPU second of its process and its server together."""

    contestant: Contestant
    per_second: float
    per_cpu_second: float


def compare(servers: PrivateServers, contestants: Sequence[Contestant], rounds: int, effort: float) -> list[Contest]:
    """The median of each contestant over all rounds. Each round begins with another. `effort`: share of the jobs."""
    prepare_environment()
    turns: dict[Contestant, list[Contest]] = {contestant: [] for contestant in contestants}
    for turn in range(rounds):
        shift = turn % len(contestants)
        for contestant in (*contestants[shift:], *contestants[:shift]):
            contest = _measure(servers, contestant, int(contestant.jobs * effort))
            turns[contestant].append(contest)
            progress(f"round {turn + 1}: {contestant.name} on {contestant.server}: {contest.per_second:,.0f} jobs/s")
    return [
        Contest(
            contestant,
            median(one.per_second for one in own),
            median(one.per_cpu_second for one in own),
        )
        for contestant, own in turns.items()
    ]


def ratio(contests: Sequence[Contest], peer: Contest) -> float | None:
    """Shoal's jobs per second to those of a peer on the same server; None if Shoal did not take part."""
    for contest in contests:
        if contest.contestant.name == SHOAL and contest.contestant.server == peer.contestant.server:
            return contest.per_second / peer.per_second
    return None


def prepare_environment() -> None:
    """Make the peers' environment, once."""
    requirements = HERE / "queues" / "requirements.txt"
    ready = ENVIRONMENT / "requirements.txt"
    if ready.exists() and ready.read_text() == requirements.read_text():
        return
    progress("making the queues' environment in .bench/queues …")
    venv.create(ENVIRONMENT, with_pip=True, clear=True, symlinks=True)
    command = [_python(), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(requirements)]
    if subprocess.run(command, check=False).returncode != 0:
        raise BenchmarkError("The queues could not be installed (see above); is there a way to the package index?")
    ready.write_text(requirements.read_text())


def versions() -> dict[str, str]:
    """What the peers are, as installed."""
    names = ", ".join(repr(name) for name in ("procrastinate", "pgqueuer", "saq", "arq"))
    code = (
        f"from importlib.metadata import version as v; import json; print(json.dumps({{n: v(n) for n in [{names}]}}))"
    )
    found: dict[str, str] = json.loads(subprocess.run([_python(), "-c", code], capture_output=True, check=True).stdout)
    return found


def _measure(servers: PrivateServers, contestant: Contestant, jobs: int) -> Contest:
    url = servers.fresh_database(contestant.server, "contest")
    python = sys.executable if contestant.name == SHOAL else _python()
    script = str(HERE / "queues" / f"with_{contestant.name}.py")
    command = [python, script, url, str(jobs), str(BATCH), str(contestant.concurrency)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            if _line_of(process) != "ready":
                raise BenchmarkError(f"{contestant.name} did not get ready (see above).")

            def used() -> float:
                return cpu_seconds_of(process.pid) + servers.cpu_seconds(servers.url(contestant.server))

            wall, cpu = time.perf_counter(), used()
            _tell(process, "start")
            said = _line_of(process)
            wall, cpu = time.perf_counter() - wall, used() - cpu
            _tell(process, "end")
        finally:
            process.terminate()
    if not said or json.loads(said)["finished"] != jobs:
        raise BenchmarkError(f"{contestant.name} was to finish {jobs} jobs and said {said or 'nothing'!r}.")
    return Contest(contestant, jobs / wall, jobs / cpu)


def _line_of(process: subprocess.Popen[str]) -> str:
    return process.stdout.readline().strip() if process.stdout else ""


def _tell(process: subprocess.Popen[str], word: str) -> None:
    if process.stdin:
        process.stdin.write(f"{word}\n")
        process.stdin.flush()


def _python() -> str:
    return str(ENVIRONMENT / "bin" / "python")
