"""The guard as operators meet it: at the door of a gateway, and in workers that stand elsewhere."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from shoal.fetch.guard.rules import NOT_PUBLIC
from support.command_line import shoal
from support.gateway_process import served


@contextmanager
def listening() -> Iterator[socket.socket]:
    """A port of 127.0.0.1 where every connection that is made can be counted."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        found.setblocking(False)
        yield found


def connections(at: socket.socket) -> int:
    number = 0
    while True:
        try:
            at.accept()[0].close()
        except BlockingIOError:
            return number
        number += 1


def test_what_is_plainly_inside_is_refused_at_the_door(tmp_path: Path) -> None:
    with listening() as inside, served(tmp_path, "http://localhost/", allow="127.0.0.9/32") as gateway:
        port = inside.getsockname()[1]
        hosts = ["127.0.0.1", "LOCALHOST", "2130706433", "0x7f.1", "0", "[::ffff:7f00:1]", "169.254.169.254"]
        answer = gateway.ask("/jobs", {"scraper": "plain", "urls": [f"http://{host}:{port}/" for host in hosts]})
        assert answer.status == 422
        reasons = [each["reason"] for each in answer.body["refused"]]
        assert reasons == [
            "127.0.0.1 is a loopback address",
            "localhost is this machine itself",
            "127.0.0.1 is a loopback address",
            "127.0.0.1 is a loopback address",
            "0.0.0.0 is the unspecified address",
            "::ffff:7f00:1 is a loopback address",
            "169.254.169.254 is a metadata address of a cloud",
        ]
        assert gateway.ask("/late", {"word": "x"}).status == 422, "what the scraper makes of an input is no different"
        some = gateway.ask("/jobs", {"scraper": "plain", "urls": [f"http://127.0.0.1:{port}/", "http://127.0.0.9/"]})
        assert (some.status, len(some.body["refused"])) == (202, 1)
        assert connections(inside) == 0


def test_a_worker_elsewhere_keeps_jobs_out_of_its_own_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gateway was told to allow it, the worker was not: the worker's network is the one that is at stake."""
    monkeypatch.chdir(tmp_path)
    engine = f"sqlite:///{tmp_path}/shoal.db"
    with listening() as inside, served(tmp_path, "http://127.0.0.1/") as gateway:
        url = f"http://127.0.0.1:{inside.getsockname()[1]}/"
        job_id = gateway.submit("/jobs", {"scraper": "plain", "urls": [url]})
        assert shoal("worker", "shop.py", "--engine", engine, "--drain", "--quiet").returncode == 0
        done = gateway.finished(job_id)
        assert (done["status"], done["error"]) == ("failed", NOT_PUBLIC)
        (letter,) = json.loads(shoal("dead", "list", job_id, "--engine", engine, "--json").stdout)
        assert (letter["url"], letter["blame"]) == (url, "policy")
        assert shoal("dead", "requeue", job_id, "--engine", engine).returncode == 0
        assert shoal("worker", "shop.py", "--engine", engine, "--drain", "--quiet").returncode == 0
        assert connections(inside) == 0, "nor when it is tried again"


@pytest.mark.parametrize(
    ("networks", "sentence"),
    [
        ('["10.0.0.1/8"]', "'10.0.0.1/8' is an address in a network; write '10.0.0.0/8' for all of it."),
        ('["intranet"]', '\'intranet\' is no network; one is written as "10.0.0.0/8" or "fd00::/8".'),
    ],
)
def test_a_network_that_cannot_be_read_gets_one_sentence(
    networks: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shoal.toml").write_text(f"[guard]\nallow_networks = {networks}\n")
    answer = shoal("runs")
    assert answer.returncode == 2
    assert answer.stderr.strip().endswith(sentence)
    assert "shoal.toml, line 2: guard.allow_networks = " in answer.stderr
