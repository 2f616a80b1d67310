"""Seeing the fleet: who is at work, on what, and what nobody takes on. On every engine, with real workers."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from shoal import Orchestrator, Scraper
from shoal.frontier.contract.frontier import WorkerInfo
from shoal.frontier.contract.reader import WorkerRecord
from shoal.frontier.open import open_engine
from shoal.frontier.shared.liveness import started, this_machine
from shoal.insight.workers import WorkerState, state_of
from shoal.work.process.missing_code import report_missing_code
from support.command_line import SHOAL, shoal
from support.counting_site import Site
from support.engine_urls import ENGINES, empty_store
from support.waiting import until, wait_until

SHOPS = """
import time
from shoal import Page, Scraper

books = Scraper("books", start=["{url}/"], delay=0, mode="distributed")
books.page(lambda page: page.follow("a"))

slow = Scraper("slow", start=["{url}/1", "{url}/2"], delay=0, concurrency=2, mode="distributed")

@slow.page
async def read(page: Page):
    import asyncio
    await asyncio.sleep(600)
"""


@pytest.fixture(autouse=True)
def site(counting_site: Site, own_folder: Path) -> Site:
    (own_folder / "shops.py").write_text(SHOPS.format(url=counting_site.url))
    return counting_site


@pytest.fixture(params=ENGINES)
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with empty_store(request.param, tmp_path) as url:
        monkeypatch.setenv("SHOAL_ENGINE", url)
        yield url


def workers(*words: str) -> list[dict[str, Any]]:
    answer = shoal("stats", *words, "--workers", "--json")
    assert answer.returncode == 0, answer.stderr
    found: list[dict[str, Any]] = json.loads(answer.stdout)
    return found


def test_workers_are_seen_at_work_idle_and_gone(store: str) -> None:
    Orchestrator("shops.py").start("slow", run_id="sleepy")
    nobody = shoal("stats", "--workers")
    assert (nobody.returncode, nobody.stdout) == (0, "")
    assert nobody.stderr == "No worker has been seen in the last hour. Start one with `shoal worker file.py`.\n"
    crew = [
        subprocess.Popen([SHOAL, "worker", "shops.py:slow", "--run-id", "sleepy", "-q"], stderr=subprocess.PIPE),
        subprocess.Popen([SHOAL, "worker", "shops.py:books", "-q"], stderr=subprocess.PIPE),
    ]
    try:
        wait_until(lambda: [worker["leases"] for worker in workers()] in ([0, 2], [2, 0]), "one is at work, one idle")
        busy, idle = sorted(workers(), key=lambda worker: -worker["leases"])
        assert (busy["state"], busy["pid"], busy["leases"], busy["scrapers"]) == ("working", crew[0].pid, 2, ["slow"])
        assert busy["queues"] == ["sleepy"]
        assert {task["run_id"] for task in busy["tasks"]} == {"sleepy"}
        assert {task["url"].rsplit("/", 1)[1] for task in busy["tasks"]} == {"1", "2"}
        assert (idle["state"], idle["pid"], idle["tasks"], idle["queues"]) == ("idle", crew[1].pid, [], None)
        wait_until(lambda: workers("sleepy")[0]["seen_at"] > busy["seen_at"], "the busy one is heard of again")
        wait_until(
            lambda: [w["seen_at"] for w in workers() if w["pid"] == idle["pid"]] > [idle["seen_at"]],
            "the idle one is heard of again",
        )
        assert [worker["pid"] for worker in workers("sleepy")] == [crew[0].pid]
        text = shoal("stats", "--workers").stdout
        assert f"{crew[0].pid}  working" in text
        assert "(sleepy) and 1 more" in text
        assert json.loads(shoal("stats", "sleepy", "--json").stdout)["workers"] == 1
        assert "No live worker" not in shoal("stats", "sleepy").stderr
        crew[1].terminate()
        crew[1].wait()
        crew[0].send_signal(signal.SIGKILL)
        crew[0].wait()
        assert {worker["state"] for worker in workers()} == {"gone"}
        after = shoal("stats", "--workers").stdout
        assert "1 worker gone within the last hour.\n" in after, "the other is shown while it holds leases"
        hint = shoal("stats", "sleepy").stderr
        assert "No live worker takes it on" in hint
        assert "shoal worker TARGET --run-id sleepy" in hint
        assert "takes on what is left of slow." in shoal("runs").stderr
    finally:
        for process in crew:
            process.kill()
            process.communicate()


def test_stats_of_nothing_in_particular() -> None:
    answer = shoal("stats")
    assert answer.returncode == 2
    assert answer.stderr == "shoal: Name a run (`shoal stats last`), or ask for --workers.\n"
    assert shoal("stats", "--workers", "--json").stdout == "[]\n"


@pytest.mark.parametrize(
    ("silent", "leases", "state"),
    [
        (0, 0, WorkerState.IDLE),
        (30_000, 3, WorkerState.WORKING),
        (30_001, 3, WorkerState.SILENT),
        (300_001, 3, WorkerState.GONE),
    ],
)
def test_how_a_worker_of_another_machine_is(silent: int, leases: int, state: WorkerState) -> None:
    assert state_of(WorkerRecord(WorkerInfo("w", "elsewhere", 1, 1), 0, leases, silent)) is state


def test_a_process_of_this_machine_is_known_to_be_gone_at_once() -> None:
    here = WorkerInfo("w", this_machine(), os.getpid(), started(os.getpid()) or 0)
    ended = subprocess.Popen([sys.executable, "-c", ""])
    gone = WorkerInfo("w", this_machine(), ended.pid, started(ended.pid) or 1)
    ended.wait()
    assert state_of(WorkerRecord(here, 0, 0, 0)) is WorkerState.IDLE
    assert state_of(WorkerRecord(gone, 0, 0, 0)) is WorkerState.GONE


# Work that is left to others


def test_a_worker_says_which_work_it_leaves_to_others(store: str) -> None:
    Orchestrator("shops.py").start("books", run_id="theirs")
    worker = subprocess.Popen([SHOAL, "worker", "shops.py:slow", "-q"], stderr=subprocess.PIPE, text=True)
    try:
        assert worker.stderr is not None
        line = worker.stderr.readline()
        assert "left for workers that have the code of this scraper" in line
        assert "scraper=books" in line
        assert "tasks=1" in line
    finally:
        worker.terminate()
        _, rest = worker.communicate(timeout=120)
    assert (worker.returncode, rest) == (0, "")
    assert Orchestrator("shops.py").stats("theirs").pending == 1


def _is_named(logs: Sequence[Mapping[str, object]], name: str) -> bool:
    return any(line.get("scraper") == name for line in logs)


async def test_each_scraper_is_named_once_and_new_ones_when_they_come(store: str) -> None:
    engine = await open_engine(store)
    try:
        with capture_logs() as logs:
            looking = asyncio.create_task(report_missing_code(engine.reader, ["mine"], every=0.01))
            for name in ("mine", "theirs", "others", "last"):
                scraper = Scraper(name, mode="distributed")
                scraper.page(lambda page: None)
                await asyncio.to_thread(Orchestrator(scraper, engine=store).start, urls=[f"http://{name}.example/"])
                if name != "mine":
                    await until(partial(_is_named, logs, name), f"{name} is named")
            looking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await looking
    finally:
        await engine.close()
    assert [line["scraper"] for line in logs] == ["theirs", "others", "last"]


def test_a_worker_for_a_run_it_has_no_code_for_is_refused(store: str) -> None:
    Orchestrator("shops.py").start("books", run_id="theirs")
    answer = shoal("worker", "shops.py:slow", "--run-id", "theirs", "--drain")
    assert (answer.returncode, answer.stderr.count("\n")) == (2, 1)
    assert "The run theirs is one of the scraper 'books', and this worker has slow" in answer.stderr
