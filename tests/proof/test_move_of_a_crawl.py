"""A crawl moves to another store in the middle, whatever dies: nothing is lost, doubled, or fetched too soon."""

from __future__ import annotations

import asyncio
import json
import random
import secrets
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pytest

from servers.postgres import shared_server
from servers.redis import running_redis
from shoal.frontier.open import open_engine
from shoal.testing.access_log import AccessLog
from support.command_line import shoal as call
from support.crawling import items, kill_all, shoal, site_process, start, stats, wait_for, write_scraper
from support.engine_urls import mainly_on
from support.waiting import until

DELAY = 0.25
PAGES = 30
SITES = 4


@pytest.fixture(params=mainly_on("postgresql", others=["redis"]))
def fleet(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "postgresql":
        yield shared_server().url(schema=f"fleet_{secrets.token_hex(4)}", password="hidden")  # noqa: S106 - trusted anyway
        return
    with running_redis() as server:
        yield server.url


def test_to_a_fleet_with_kills_on_the_way(tmp_path: Path, fleet: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The crawl is killed, the move is killed at random moments and given again, then workers go on in the fleet."""
    chance = random.Random(5)
    with site_process(tmp_path) as (port, log):
        scraper = _scraper(tmp_path, port)
        crawl = start(tmp_path, "run", scraper, "--quiet", "--workers", "2")
        wait_for(log, SITES * 3)
        kill_all(crawl)
        kills = 0
        for attempt in range(1, 4):
            moving = start(tmp_path, *_move(fleet))
            asyncio.run(_begun(tmp_path, attempt))
            time.sleep(chance.uniform(0, 0.15))  # anywhere: in the middle, or after it has ended
            kills += moving.poll() is None
            kill_all(moving)
        if (code := subprocess.run(shoal(*_move(fleet)), cwd=tmp_path, check=False).returncode) == 2:
            assert _run(tmp_path, fleet)["state"] == "running", "the last one was not killed but had ended"
        assert code in (0, 2)
        workers = [start(tmp_path, "worker", scraper, "--engine", fleet, "--drain", "--quiet") for _ in range(2)]
        assert [worker.wait(120) for worker in workers] == [0, 0], (tmp_path / "command.log").read_text()
        print(f"{kills} moves were killed")
        _check(tmp_path, log, fleet, monkeypatch)
    shown = subprocess.run(shoal("runs"), cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert "moved to " in shown
    assert "hidden" not in shown, "secrets are masked where it says where a run went"


def test_while_a_worker_is_at_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old worker finishes what it has and ends; the new ones begin at once. Then on to a third store."""
    with running_redis() as server, site_process(tmp_path) as (port, log):
        database = shared_server().url(schema=f"fleet_{secrets.token_hex(4)}")
        scraper = _scraper(tmp_path, port)
        crawl = start(tmp_path, "run", scraper, "--quiet")
        wait_for(log, SITES * 2)
        first = subprocess.run(shoal(*_move(server.url), "--json"), cwd=tmp_path, check=True, capture_output=True)
        moved = json.loads(first.stdout)
        assert (moved["from"], moved["to"], moved["dead"]) == ("sqlite:///shoal.db", server.url, 0)
        worker = start(tmp_path, "worker", scraper, "--engine", server.url, "--quiet")
        assert crawl.wait(60) == 1, "the run went elsewhere"
        wait_for(log, SITES * 6)
        subprocess.run(shoal("move", "--from", server.url, "--to", database), cwd=tmp_path, check=True)
        kill_all(worker)
        subprocess.run(shoal("run", scraper, "--engine", database, "--resume", "--quiet"), cwd=tmp_path, check=True)
        _check(tmp_path, log, database, monkeypatch)


def test_what_cannot_be_moved_is_said_in_one_sentence(tmp_path: Path) -> None:
    scraper = _scraper(tmp_path, 9)
    nowhere = ("move", "--to", "sqlite:///other.db")
    assert "No runs yet" in _refused(tmp_path, *nowhere)
    for run_id in ("one", "two"):
        _done(tmp_path, "run", str(scraper), "--mode", "distributed", "--run-id", run_id)
    assert "has 2 unfinished runs" in _refused(tmp_path, *nowhere)
    assert "are the same store" in _refused(tmp_path, "move", "one", "--to", f"sqlite:///{tmp_path}/shoal.db")
    assert "There is no run 'three'" in _refused(tmp_path, "move", "three", "--to", "sqlite:///other.db")
    _done(tmp_path, "move", "one", "--to", "sqlite:///other.db")
    assert "was moved to sqlite:///other.db: resume it there" in _refused(
        tmp_path, "run", scraper, "--resume", "--run-id", "one"
    )
    _done(tmp_path, "cancel", "two")
    assert "is cancelled" in _refused(tmp_path, "move", "two", "--to", "sqlite:///other.db")


def _scraper(folder: Path, port: int) -> Path:
    starts = [f"http://127.0.0.{number}:{port}/site/{PAGES}/" for number in range(1, SITES + 1)]
    return write_scraper(folder, starts, delay=DELAY)


def _move(to: str) -> tuple[str, ...]:
    return ("move", "--from", "sqlite:///shoal.db", "--to", to)


def _run(folder: Path, engine: str) -> dict[str, object]:
    command = shoal("stats", "last", "--json", "--engine", engine)
    answer = subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE)
    found: dict[str, object] = json.loads(answer.stdout)
    return found


async def _begun(folder: Path, attempt: int) -> None:
    """Until a move is under way, or was made."""
    store = await open_engine(f"sqlite:///{folder}/shoal.db", create=False)
    run = (await store.reader.runs())[0]

    async def moving() -> bool:
        now = await store.reader.run(run.run_id)
        return now.ended_at is not None or (now.move is not None and now.move.attempt >= attempt)

    await until(moving, f"move {attempt} has begun", again=0.005)
    await store.close()


def _done(folder: Path, *words: str) -> None:
    with chdir(folder):
        answer = call(*words)
    assert answer.returncode == 0, answer


def _refused(folder: Path, *words: str | Path) -> str:
    """What a command says that ends with exit code 2: one line."""
    with chdir(folder):
        answer = call(*map(str, words))
    assert answer.returncode == 2, answer
    assert len(answer.stderr.splitlines()) == 1, answer.stderr
    return answer.stderr


def _check(folder: Path, log: Path, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Items as of an undisturbed run, none twice; and the target saw no two requests of a site too close."""
    seen = AccessLog.read(log)
    with monkeypatch.context() as there:
        there.setenv("SHOAL_ENGINE", engine)
        found = Counter(str(item["url"]) for item in items(folder))
        counters = stats(folder)
    print(f"{len(seen)} requests, smallest gap {seen.smallest_gap():.4f} s; {counters}")
    assert len(found) == SITES * PAGES
    assert set(found.values()) == {1}
    assert seen.smallest_gap() >= DELAY
    assert seen.most_at_once() == 1
    assert (counters["completed"], counters["remaining"], counters["failed"]) == (SITES * PAGES, 0, 0)
