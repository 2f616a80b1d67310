"""Stores that cannot be used, as people meet them: one sentence and exit code 2 from `shoal run` and `worker`, and a
finding of `shoal doctor`. What a store can lose is said, and the work goes on."""

from __future__ import annotations

import json
import os
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from servers.postgres import shared_server
from servers.redis import free_port, running_redis
from shoal.errors import EngineRefused
from shoal.frontier.postgres.schema import prepare
from shoal.frontier.postgres.store.address import read_address
from support.command_line import script, shoal

SHOP = """
from shoal import Scraper
shop = Scraper("shop", start="http://127.0.0.1:9/", mode="distributed")
shop.page(lambda page: None)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("SHOAL_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.py").write_text(SHOP)


def said_by(engine: str, *, worker: bool = True) -> str:
    """The one sentence about an engine, the same from every command, with exit code 2; of `doctor`, a finding."""
    run = shoal("run", "shop.py", "--engine", engine)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith("shoal: ")
    assert run.stderr.count("\n") == 1
    sentence = run.stderr.removeprefix("shoal: ").strip()
    assert "secret" not in sentence
    if worker:
        answer = shoal("worker", "shop.py", "--drain", "--engine", engine)
        assert (answer.returncode, answer.stderr) == (2, run.stderr)
    doctor = shoal("doctor", "--json", "--engine", engine)
    [found] = [finding for finding in json.loads(doctor.stdout) if finding["check"] == "engine"]
    assert (doctor.returncode, found["verdict"], found["advice"]) == (1, "fail", sentence)
    assert "secret" not in doctor.stdout
    return sentence


# PostgreSQL


def test_postgres_wrong_password() -> None:
    server = shared_server()
    server.sql("DROP ROLE IF EXISTS guarded")
    server.sql("CREATE ROLE guarded LOGIN PASSWORD 'right'")
    assert "refused the password of user 'guarded'" in said_by(server.url(user="guarded", password="secret"))  # noqa: S106


def test_postgres_wrong_database() -> None:
    assert "There is no database 'missing'" in said_by(shared_server().url("missing"))


def test_postgres_no_such_host() -> None:
    sentence = said_by("postgresql://shoal:secret@nowhere.invalid/shoal", worker=False)
    assert "There is no host nowhere.invalid" in sentence


def test_postgres_nobody_listens() -> None:
    port = free_port()
    assert "Nothing answers at" in said_by(f"postgresql://shoal:secret@127.0.0.1:{port}/shoal", worker=False)


async def test_postgres_too_old() -> None:
    old: Any = SimpleNamespace(get_server_version=lambda: SimpleNamespace(major=12))
    with pytest.raises(EngineRefused, match="PostgreSQL 12 at h is too old; Shoal needs 13 or newer"):
        await prepare(old, read_address("postgresql://u@h/db"), create=True, migrate=False)


# Redis


def test_redis_passwords() -> None:
    with running_redis("--requirepass", "right") as guarded:
        assert "asks for a password" in said_by(guarded.url)
        assert "or password in the engine URL" in said_by(f"redis://:secret@127.0.0.1:{guarded.port}/0")


def test_redis_wrong_database_and_eviction() -> None:
    with running_redis("--maxmemory-policy", "allkeys-lru") as forgetful:
        assert "has fewer databases than the engine URL names" in said_by(f"redis://127.0.0.1:{forgetful.port}/999")
        assert "throws data away when its memory is full (maxmemory-policy allkeys-lru)" in said_by(forgetful.url)


def test_redis_no_such_host() -> None:
    assert "no-such-host.invalid" in said_by("redis://:secret@no-such-host.invalid/0", worker=False)


def test_redis_nobody_listens() -> None:
    assert "cannot be reached" in said_by(f"redis://:secret@127.0.0.1:{free_port()}/0", worker=False)


def test_redis_too_old() -> None:
    with answering_as_redis_5() as port:
        assert "Redis 5.0.14 at" in said_by(f"redis://127.0.0.1:{port}/0")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--appendonly", "no"), "everything since its last snapshot is lost"),
        (("--appendfsync", "everysec"), "can lose up to one second"),
    ],
)
def test_redis_that_can_lose_something_is_used_and_that_is_said(options: tuple[str, ...], words: str) -> None:
    with running_redis(*options) as lossy:
        run = script("run", "shop.py", "--engine", lossy.url)
        assert run.returncode == 0
        assert json.loads(run.stdout)["enqueued"] == 1
        assert words in run.stderr
        assert words not in script("stats", "last", "--engine", lossy.url).stderr, "it need not be said all the time"
        doctor = script("doctor", "--engine", lossy.url)
        assert doctor.returncode == 0
        assert "warn  durability" in doctor.stdout
        assert words in doctor.stdout


class Redis5(socketserver.StreamRequestHandler):
    """As much of an old Redis as is asked for: none can be had here any more."""

    def handle(self) -> None:
        while line := self.rfile.readline():
            words = []
            for _ in range(int(line[1:])):
                length = int(self.rfile.readline()[1:])
                words.append(self.rfile.read(length + 2)[:-2])
            self.wfile.write(self._answer(words[0].upper()))

    def _answer(self, command: bytes) -> bytes:
        info = b"redis_version:5.0.14\r\nredis_mode:standalone\r\nmaxmemory_policy:noeviction\r\naof_enabled:1\r\n"
        match command:
            case b"INFO":
                return b"$%d\r\n%s\r\n" % (len(info), info)
            case b"CONFIG":
                return b"*2\r\n$11\r\nappendfsync\r\n$6\r\nalways\r\n"
            case b"HELLO" | b"CLIENT":
                return b"-ERR unknown command\r\n"
        return b"+OK\r\n"


@contextmanager
def answering_as_redis_5() -> Iterator[int]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Redis5) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield int(server.server_address[1])
        server.shutdown()
