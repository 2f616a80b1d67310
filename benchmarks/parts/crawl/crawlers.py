"""The crawlers that are compared: how each is started on the site, and what it says it saw."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import venv
from dataclasses import dataclass
from pathlib import Path

from parts.shared.measured import Cost, run_measured
from parts.shared.report import BenchmarkError, progress
from parts.shared.workshop import WORKSHOP

HERE = Path(__file__).parent
"""Everything the benchmarks make: sites, the peers' environment, stores. Not in git; may be deleted at any time."""

PEERS = {"Scrapy": "with_scrapy.py", "Crawlee": "with_crawlee.py", "bare loop": "bare_loop.py"}
SHOAL = "Shoal"


@dataclass(frozen=True)
class Crawl:
    """One crawl of the whole site by one crawler."""

    crawler: str
    pages: int
    items: int
    cost: Cost

    @property
    def pages_per_cpu_second(self) -> float:
        """The figure that is compared: how long others held the processor does not change it."""
        return self.pages / self.cost.cpu_seconds


def crawl_with_peer(name: str, start: str, timeout: float) -> Crawl:
    """Let a peer crawl from `start`."""
    script = HERE / "peers" / PEERS[name]
    with _scratch() as folder:
        cost = run_measured([str(_peers_python()), str(script), start], folder, timeout)
    said = json.loads(cost.output.splitlines()[-1])
    return Crawl(name, said["pages"], said["items"], cost)


def crawl_with_shoal(start: str, timeout: float) -> Crawl:
    """Let Shoal crawl from `start` into a new store, then count in the store what is there."""
    with _scratch() as folder:
        engine = f"sqlite:///{folder}/crawl.db"
        command = [sys.executable, "-m", "shoal", "run", str(HERE / "shoal_site.py")]
        command += ["--url", start, "--engine", engine, "--concurrency", "64", "--quiet"]
        cost = run_measured(command, folder, timeout)
        pages, items = asyncio.run(_stored(engine))
    return Crawl(SHOAL, pages, items, cost)


def prepare_peers() -> None:
    """Make the peers' environment, once."""
    ready = WORKSHOP / "peers" / "requirements.txt"
    wanted = (HERE / "peers" / "requirements.txt").read_text()
    if ready.exists() and ready.read_text() == wanted:
        return
    progress("making the peers' environment in .bench/peers …")
    venv.create(WORKSHOP / "peers", with_pip=True, clear=True, symlinks=True)
    command = [str(_peers_python()), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run([*command, "-r", str(HERE / "peers" / "requirements.txt")], check=False)
    if done.returncode != 0:
        raise BenchmarkError("The peers could not be installed (see above); is there a way to the package index?")
    ready.write_text(wanted)


def peer_versions() -> dict[str, str]:
    """Which versions of the peers are compared with."""
    code = (
        "import importlib.metadata as m, json;"
        "print(json.dumps({n: m.version(n) for n in ('scrapy', 'crawlee', 'aiohttp', 'uvloop', 'selectolax')}))"
    )
    answer = subprocess.run([str(_peers_python()), "-c", code], capture_output=True, check=True, text=True)
    return dict(json.loads(answer.stdout))


async def _stored(engine_url: str) -> tuple[int, int]:
    from shoal.frontier.open import open_engine  # noqa: PLC0415 - the peers can be measured without a Shoal that runs

    engine = await open_engine(engine_url)
    try:
        (run,) = await engine.reader.runs()
        items = 0
        cursor: int | None = 0
        while cursor is not None:
            page = await engine.reader.items(run.run_id, cursor, limit=10_000)
            items, cursor = items + len(page.items), page.cursor
        return run.counters.done, items
    finally:
        await engine.close()


def _peers_python() -> Path:
    return WORKSHOP / "peers" / "bin" / "python"


def _scratch() -> tempfile.TemporaryDirectory[str]:
    """A folder for one crawl, on the same disk as the checkout: /tmp may be memory, where syncing costs nothing."""
    WORKSHOP.mkdir(exist_ok=True)
    return tempfile.TemporaryDirectory(prefix="crawl-", dir=WORKSHOP)
