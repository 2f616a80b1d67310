"""Stores that go away under a crawl: workers wait, say so, go on, and nothing is lost or done twice."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from servers.postgres import PostgresServer, need_programs, shared_server
from servers.redis import RedisServer, free_port, running_redis
from shoal.testing.access_log import AccessLog
from support.command_line import shoal as call
from support.crawling import items, shoal, site_process, wait_for, write_scraper
from support.waiting import WITHIN, wait_until

DELAY = 0.1
PAGES = 20
SITES = 4
AWAY = "the store does not answer; trying again"
BACK = "the store answers again"


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@contextmanager
def workers(folder: Path, number: int, *words: str | Path) -> Iterator[list[tuple[subprocess.Popen[bytes], Path]]]:
    """So many processes of one command, each with a log of its own."""
    started = []
    try:
        for place in range(number):
            log = folder / f"worker-{place}.log"
            with log.open("wb") as output:
                started.append((subprocess.Popen(shoal("worker", *words), cwd=folder, stderr=output), log))
        yield started
    finally:
        for process, _ in started:
            process.kill()
            process.wait()


def counters() -> dict[str, int]:
    """Of the newest run in the engine of the environment."""
    found: dict[str, int] = json.loads(call("stats", "last", "--json").stdout)
    return found


@dataclass
class Trouble:
    """A server, and what befalls it: it dies and comes back, and something smaller."""

    url: str
    die: Callable[[], object]
    come_back: Callable[[], object]
    befall: Callable[[], object]


@contextmanager
def postgres() -> Iterator[PostgresServer]:
    server = PostgresServer(need_programs())
    try:
        server.create()
        yield server
    finally:
        server.destroy()


@contextmanager
def trouble_with(engine: str) -> Iterator[Trouble]:
    if engine == "postgresql":
        with postgres() as server:
            terminate = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'shoal'"
            yield Trouble(server.url(), lambda: server.stop("immediate"), server.start, lambda: server.sql(terminate))
        return
    with running_redis() as redis:  # with appendfsync always
        yield Trouble(redis.url, redis.kill, redis.start, lambda: redis.ask("SCRIPT", "FLUSH"))


@pytest.mark.parametrize("engine", ["postgresql", "redis"])
def test_two_workers_outlive_their_store(tmp_path: Path, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with trouble_with(engine) as trouble, site_process(tmp_path) as (port, log):
        monkeypatch.setenv("SHOAL_ENGINE", trouble.url)
        starts = [f"http://127.0.0.{number}:{port}/site/{PAGES}/" for number in range(1, SITES + 1)]
        scraper = write_scraper(tmp_path, starts, delay=DELAY)
        assert call("run", str(scraper), "--mode", "distributed").returncode == 0
        with workers(tmp_path, 2, scraper, "--batch-size", "3") as staff:
            wait_for(log, SITES * PAGES // 4)
            trouble.die()
            wait_until(lambda: all(attempts(said) for _, said in staff), "all have missed their store")
            trouble.come_back()
            wait_for(log, SITES * PAGES // 2)
            trouble.befall()
            wait_until(lambda: counters()["remaining"] == 0, "nothing is left")
            said = [log_file.read_text() for _, log_file in staff]
            for process, _ in staff:
                assert process.poll() is None, "a worker died"
                process.send_signal(signal.SIGTERM)
            assert [process.wait(WITHIN) for process, _ in staff] == [0, 0]
        seen, stored = AccessLog.read(log), items(tmp_path)
    found = Counter(str(item["url"]) for item in stored)
    print(f"{len(seen)} requests, smallest gap {seen.smallest_gap():.4f} s")
    assert len(found) == SITES * PAGES
    assert set(found.values()) == {1}
    assert seen.smallest_gap() >= DELAY
    for text in said:
        assert re.search(rf"{AWAY} .*attempt=1 doing=\w+ next_try='in 0\.\d\d s' reason=['\"]?[A-Z]", text), text
        assert re.search(rf"{BACK} .*after='\d+\.\d s' attempts=\d", text), text


def let_the_echo_pass(said: Path) -> None:
    """A second signal that comes within half a second of the first is taken for its echo: from when it was heard."""
    wait_until(lambda: "Stopping: " in said.read_text(), "the first signal is heard")
    time.sleep(0.6)


def attempts(log: Path) -> int:
    return log.read_text().count(AWAY)


@pytest.mark.parametrize("engine", ["postgresql", "redis"])
def test_a_worker_waits_for_a_store_that_is_not_up_yet(
    tmp_path: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with site_process(tmp_path) as (port, _), late_server(engine, tmp_path) as (url, start_server):
        monkeypatch.setenv("SHOAL_ENGINE", url)
        scraper = write_scraper(tmp_path, [f"http://127.0.0.1:{port}/site/5/"], delay=0)
        at_once = call("run", str(scraper))
        assert (at_once.returncode, at_once.stderr.count("\n")) == (2, 1), at_once.stderr
        with workers(tmp_path, 1, scraper) as [(process, log)]:
            wait_until(lambda: attempts(log) >= 2, "it was tried twice")
            start_server()
            wait_until(lambda: BACK in log.read_text(), "the store is back")
            assert call("run", str(scraper), "--mode", "distributed").returncode == 0
            wait_until(lambda: counters()["completed"] == 5, "all pages are done")
            process.send_signal(signal.SIGTERM)
            assert process.wait(WITHIN) == 0
    assert "doing=open" in log.read_text()


@contextmanager
def late_server(engine: str, folder: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    """The URL of a server that does not run yet, and how to start it."""
    if engine == "postgresql":
        with postgres() as server:
            server.stop()
            yield server.url(), server.start
        return
    place = folder / "redis"
    place.mkdir()
    redis = RedisServer(place)
    try:
        yield redis.url, redis.start
    finally:
        redis.kill()


def test_a_worker_can_be_stopped_while_it_waits_for_its_store(tmp_path: Path) -> None:
    scraper = write_scraper(tmp_path, ["http://127.0.0.1:1/"], delay=0)
    with workers(tmp_path, 1, scraper, "--engine", f"redis://127.0.0.1:{free_port()}/0") as [(process, log)]:
        wait_until(lambda: attempts(log) >= 1, "it was tried once")
        process.send_signal(signal.SIGTERM)
        assert process.wait(WITHIN) == 0
    assert "Traceback" not in log.read_text()


def test_what_will_not_pass_ends_a_worker_at_once(tmp_path: Path) -> None:
    scraper = str(write_scraper(tmp_path, ["http://127.0.0.1:1/"], delay=0))
    (tmp_path / "torn.db").write_bytes(b"this is not a database" * 100)
    with running_redis("--requirepass", "right") as guarded:
        engines = {
            f"redis://:wrong@127.0.0.1:{guarded.port}/0": "refused",
            shared_server().url("missing"): "no database",
            f"sqlite:///{tmp_path}/torn.db": "not a SQLite file",
            f"sqlite:///{tmp_path}/no/such/folder.db": "Check that its folder",
        }
        for engine, sentence in engines.items():
            ended = call("worker", scraper, "--engine", engine)
            assert (ended.returncode, ended.stderr.count("\n")) == (2, 1), ended.stderr
            assert sentence in ended.stderr
            assert "wrong" not in ended.stderr


def test_a_second_signal_ends_a_worker_at_once_though_its_store_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_redis() as redis, site_process(tmp_path) as (port, log):
        monkeypatch.setenv("SHOAL_ENGINE", redis.url)
        scraper = write_scraper(tmp_path, [f"http://127.0.0.1:{port}/delay/60000"], delay=0)
        assert call("run", str(scraper), "--mode", "distributed").returncode == 0
        with workers(tmp_path, 1, scraper) as [(process, said)]:
            wait_for(log, 2)  # robots.txt, and the page
            redis.kill()
            wait_until(lambda: attempts(said) >= 1, "the store is missed")
            process.send_signal(signal.SIGTERM)
            let_the_echo_pass(said)
            assert process.poll() is None, "its request gets its grace"
            process.send_signal(signal.SIGTERM)
            assert process.wait(WITHIN) == 130
        assert "leases could not be given back; they will run out" in said.read_text()
        redis.start()


def test_a_run_that_is_under_way_waits_too_and_can_be_interrupted_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_redis() as redis, site_process(tmp_path) as (port, log):
        monkeypatch.setenv("SHOAL_ENGINE", redis.url)
        scraper = write_scraper(tmp_path, [f"http://127.0.0.1:{port}/site/20/"], delay=DELAY)
        said = tmp_path / "run.log"
        with said.open("wb") as output:
            crawl = subprocess.Popen(shoal("run", scraper), cwd=tmp_path, stdout=output, stderr=output)
        try:
            wait_for(log, 5)
            redis.kill()
            wait_until(lambda: attempts(said) > 0, "the store is missed")
            redis.start()
            wait_until(lambda: BACK in said.read_text(), "the store is back")
            wait_for(log, 10)
            redis.kill()
            before = attempts(said)
            wait_until(lambda: attempts(said) > before, "the store is missed again")
            crawl.send_signal(signal.SIGINT)
            let_the_echo_pass(said)
            crawl.send_signal(signal.SIGINT)
            assert crawl.wait(WITHIN) in (130, -signal.SIGINT), "the latter if it had all but ended"
        finally:
            crawl.kill()
            crawl.wait()
        last = said.read_text().splitlines()[-1]
        assert re.fullmatch(r"Stopped\. Redis at .* Nothing is lost\. Go on with: shoal run .* --resume .*", last), last
        redis.start()
        subprocess.run(shoal("run", scraper, "--quiet", "--resume"), cwd=tmp_path, check=True)
        found = Counter(str(item["url"]) for item in items(tmp_path))
        assert len(found) == 20
        assert set(found.values()) == {1}
        assert AccessLog.read(log).smallest_gap() >= DELAY
