"""Identical jobs at the same moment, several worker processes and exits: what the target sees, and who gets what."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from shoal.testing.access_log import AccessLog
from support.crawling import shoal, site_process, wait_for
from support.engine_urls import empty_store, mainly_on
from support.gateway_process import Served, serving

JOBS = 12
WORKERS = 3

SCRAPERS = """
from pydantic import BaseModel
from shoal import Page, Scraper


class Word(BaseModel):
    word: str


scraper = Scraper("look", input=Word, delay=0, concurrency=4, obey_robots=False, timeout={timeout}, cache={cache})


@scraper.start
def pages(word: Word):
    yield "http://127.0.0.1:{port}/ticking/{{}}?pause={pause}".format(word.word)


@scraper.page
def look(page: Page):
    yield {{"title": page.text("h1"), "number": page.text("#token")}}
"""


@dataclass
class Stage:
    """A gateway, and workers with two exits each that no other has, so that one knows who has asked. A worker takes
    four tasks at once: three are needed for all the jobs."""

    gateway: Served
    workers: list[subprocess.Popen[bytes]]
    log: Path

    def submit_at_once(self) -> list[str]:
        """So many jobs, all the same, as simultaneous as can be."""
        with ThreadPoolExecutor(JOBS) as pool:
            return list(pool.map(lambda _: self.gateway.submit("/look", {"word": "milk"}), range(JOBS)))

    def submit_and_strike(self, blow: signal.Signals) -> list[str]:
        """The same, and the worker that asks first is hurt while it waits for its answer."""
        with ThreadPoolExecutor(1) as aside:
            submitted = aside.submit(self.submit_at_once)
            self.holder().send_signal(blow)
            return submitted.result()

    def all_end_before(self, jobs: list[str], requests: int) -> bool:
        """Whether all of these end before the target has seen so many requests."""
        while len(self.seen) < requests:
            if all(self.gateway.ask(f"/jobs/{job}").body["status"] == "complete" for job in jobs):
                return True
            time.sleep(0.2)
        return False

    def numbers(self, jobs: list[str]) -> list[str]:
        """Which answer of the target each job was given: one, and all of it."""
        ended = [self.gateway.finished(job) for job in jobs]
        assert all(job["status"] == "complete" for job in ended), ended
        found = [job["results"] for job in ended]
        assert [len(results) for results in found] == [1] * len(jobs)
        assert {results[0]["title"] for results in found} == {"milk v1"}
        return [results[0]["number"] for results in found]

    @property
    def seen(self) -> AccessLog:
        return AccessLog.read(self.log)

    def holder(self) -> subprocess.Popen[bytes]:
        """The worker that asked the target first."""
        wait_for(self.log, 1)
        entry = self.seen.entries[0]
        return self.workers[(int(entry.peer.rsplit(".", 1)[1]) - 2) // 2]


@contextmanager
def running(folder: Path, kind: str, *, cache: int | None, pause: int = 800, timeout: int = 30) -> Iterator[Stage]:
    with ExitStack() as stack:
        url = stack.enter_context(empty_store(kind, folder))
        port, log = stack.enter_context(site_process(folder))
        file = folder / "look.py"
        file.write_text(SCRAPERS.format(port=port, pause=pause, timeout=timeout, cache=cache))
        allow = {"SHOAL_GUARD__ALLOW_NETWORKS": json.dumps(["127.0.0.0/8"])}
        gateway = stack.enter_context(serving(folder, "look.py", "--port", "0", engine=url, at=folder, **allow))
        workers = []
        for number in range(WORKERS):
            ways = json.dumps([f"source://127.0.0.{2 + 2 * number}", f"source://127.0.0.{3 + 2 * number}"])
            with (folder / f"worker-{number}.log").open("wb") as output:
                worker = subprocess.Popen(
                    shoal("worker", file, "--engine", url, "--concurrency", "4", "--quiet"),
                    cwd=folder,
                    env={**os.environ, **allow, "SHOAL_EXITS__DEFAULT__WAYS": ways},
                    stdout=output,
                    stderr=output,
                )
            workers.append(worker)
            stack.callback(worker.wait)
            stack.callback(worker.kill)
        yield Stage(gateway, workers, log)


@pytest.fixture(params=mainly_on("postgresql"))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_identical_jobs_cost_the_target_one_request_if_answers_may_be_shared(tmp_path: Path, kind: str) -> None:
    with running(tmp_path, kind, cache=60, pause=2_000) as stage:
        assert stage.numbers(stage.submit_at_once()) == ["1"] * JOBS
        assert len(stage.seen) == 1
        stage.numbers(stage.submit_at_once())
        assert len(stage.seen) == 1, "and none while the answer is fresh"


def test_identical_jobs_share_nothing_if_it_was_not_asked_for(tmp_path: Path, kind: str) -> None:
    with running(tmp_path, kind, cache=None) as stage:
        numbers = stage.numbers(stage.submit_at_once())
        assert sorted(map(int, numbers)) == list(range(1, JOBS + 1))
        assert len(stage.seen) == JOBS
        print(f"in flight at once, by slot: {stage.seen.most_at_once()}; exits: {len({e.peer for e in stage.seen})}")


def test_when_the_one_that_asks_is_killed_one_other_asks(tmp_path: Path, kind: str) -> None:
    """It goes on with the same task elsewhere; or, if all others wait already, when the flight has ended by itself.

    Where the target had answered before the blow fell, nobody was hurt in flight, and it is done again.
    """
    for number in range(4):
        folder = tmp_path / str(number)
        folder.mkdir()
        with running(folder, kind, cache=60, pause=3_000, timeout=5) as stage:
            jobs = stage.submit_and_strike(signal.SIGKILL)
            assert len(set(stage.numbers(jobs))) == 1, "of the second: the target may not even have counted the first"
            first, *others = [entry.status for entry in stage.seen.entries]
            if (first, others) == (200, []):
                continue
            assert (first in (0, 200), others) == (True, [200])
            return
    pytest.fail("the blow came too late each time")


def test_when_the_one_that_asks_stands_still_its_flight_ends_by_itself(tmp_path: Path, kind: str) -> None:
    """Others ask when as much time has passed as the request may take, and then some; nobody waits for the lease.

    Where all had their answer before the blow fell, nobody was hurt in flight, and it is done again.
    """
    for number in range(4):
        folder = tmp_path / str(number)
        folder.mkdir()
        with running(folder, kind, cache=60, pause=3_000, timeout=5) as stage:
            jobs = stage.submit_and_strike(signal.SIGSTOP)
            if stage.all_end_before(jobs, requests=2):
                continue
            first, second = stage.seen.entries
            print(f"the second request came {second.started - first.started:.1f} s after the first")
            stage.holder().send_signal(signal.SIGCONT)
            assert stage.numbers(jobs).count("2") >= JOBS - 1, (
                "the one that woke up may have its own answer, or ask again"
            )
            assert len(stage.seen) <= 3
            return
    pytest.fail("the blow came too late each time")
