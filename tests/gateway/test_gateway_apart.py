"""Clients of one gateway have nothing to do with each other: not their results, not their limits."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from support.command_line import shoal
from support.engine_urls import ENGINES, empty_store
from support.gateway_process import Served, served

PAGES = 5


class Numbered(ThreadingHTTPServer):
    """A site that gives a different page to each request, and knows how many it has had."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Page)
        self.numbers = count()
        self.asked: list[str] = []


class _Page(BaseHTTPRequestHandler):
    disable_nagle_algorithm = True
    server: Numbered

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        body = f"<h1>{self.path} {next(self.server.numbers)}</h1>".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def numbered() -> Iterator[Numbered]:
    with Numbered() as site:
        thread = threading.Thread(target=site.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield site
        finally:
            site.shutdown()
            thread.join()


@pytest.fixture(scope="module", params=ENGINES)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with empty_store(request.param, tmp_path_factory.mktemp("store")) as url:
        yield url


@pytest.fixture(scope="module")
def gateway(store: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("apart")
    with served(folder, "http://127.0.0.1:9/", "--with-workers", engine=store) as running:
        yield running


@pytest.fixture
def make(store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes a key, and answers how to send it."""
    monkeypatch.chdir(tmp_path)

    def made(name: str, *options: str) -> str:
        answer = shoal("keys", "create", name, *options, "--engine", store)
        assert answer.returncode == 0, answer.stderr
        return f"Bearer {answer.stdout.strip()}"

    return made


def test_identical_jobs_of_two_clients_share_nothing(gateway: Served, make: Any) -> None:
    ada, bob = make("ada"), make("bob")
    with numbered() as site:
        port = site.server_address[1]
        order = {"scraper": "plain", "urls": [f"http://127.0.0.1:{port}/{page}" for page in range(PAGES)]}
        who = [ada, bob] * 4
        with ThreadPoolExecutor(len(who)) as pool:
            ids = list(pool.map(lambda key: gateway.submit("/jobs", order, Authorization=key), who))
            done = list(pool.map(lambda job, key: gateway.finished(job, Authorization=key), ids, who))
        titles = [{item["title"] for item in each["results"]} for each in done]
        assert [len(each) for each in titles] == [PAGES] * len(who)
        assert len(set().union(*titles)) == PAGES * len(who), "no page was given to two of them"
        assert len(site.asked) == PAGES * len(who)

    hers = ids[0]
    for path, more in (
        (f"/results/{hers}", {}),
        (f"/results/{hers}?wait=5", {}),
        (f"/results/{hers}", {"If_None_Match": 'W/"1"'}),
        (f"/jobs/{hers}", {}),
        (f"/jobs/{hers}/items", {}),
        (f"/jobs/{hers}/items", {"Accept": "application/x-ndjson"}),
        (f"/jobs/{hers}/events", {}),
    ):
        assert gateway.ask(path, Authorization=ada, **more).status in (200, 304)
        answer = gateway.ask(path, Authorization=bob, **more)
        assert (answer.status, answer.body["job_status"]) == (404, "not_found"), path
        nobody = gateway.ask(path.replace(hers, "plain-" + "0" * 32), Authorization=bob, **more)
        assert answer.raw.replace(hers.encode(), b"") == nobody.raw.replace(b"plain-" + b"0" * 32, b""), (
            "a job of another is no different from one that does not exist"
        )
    assert gateway.ask(f"/jobs/{hers}", method="DELETE", Authorization=bob).status == 404
    listed = {job["job_id"] for job in gateway.ask("/jobs", Authorization=bob).body["jobs"]}
    assert listed == {job for job, key in zip(ids, who, strict=True) if key == bob}


def test_what_a_scope_does_not_allow(gateway: Served, make: Any) -> None:
    writer = make("writer", "--scope", "submit")
    looker = make("looker", "--scope", "read")
    order = {"scraper": "plain", "urls": ["http://127.0.0.1:9/"]}
    job = gateway.submit("/jobs", order, Authorization=writer)
    for path in (f"/results/{job}", f"/jobs/{job}", f"/jobs/{job}/items", f"/jobs/{job}/events", "/jobs"):
        assert gateway.ask(path, Authorization=writer).status == 403, path
    assert gateway.ask("/jobs", order, Authorization=looker).status == 403
    assert gateway.ask(f"/jobs/{job}", method="DELETE", Authorization=looker).status == 403


def test_jobs_are_limited_by_key(gateway: Served, make: Any) -> None:
    limited = make("limited", "--limit", "2", "--scraper", "cart")
    cart = {"items": ["milk"], "zipcode": "1"}
    other = gateway.ask("/late", {"word": "x"}, Authorization=limited)
    assert (other.status, other.body["type"]) == (403, "tag:shoal,2026:not-allowed")
    assert [each["name"] for each in gateway.ask("/scrapers", Authorization=limited).body] == ["cart"]
    answers = [gateway.ask("/cart", cart, Authorization=limited) for _ in range(5)]
    statuses = [answer.status for answer in answers]
    assert 429 in statuses, "five in a minute, unless it has just turned"
    over = answers[statuses.index(429)]
    assert over.body["type"] == "tag:shoal,2026:too-many-jobs"
    assert over.headers["content-type"] == "application/problem+json"
    assert over.headers["ratelimit-policy"] == '"jobs";q=2;w=60'
    assert over.headers["ratelimit"] == f'"jobs";r=0;t={over.headers["retry-after"]}'
    assert answers[0].headers["ratelimit"].startswith('"jobs";r=1;')


def test_looks_are_limited_by_key(store: str, gateway: Served, make: Any) -> None:
    eager, calm = make("eager", "--reads", "3"), make("calm")
    job = gateway.submit("/jobs", {"scraper": "plain", "urls": ["http://127.0.0.1:9/"]}, Authorization=eager)
    paths = [f"/results/{job}", f"/jobs/{job}/items", f"/jobs/{job}/events", "/jobs"] * 2
    answers = [gateway.ask(path, Authorization=eager) for path in paths]
    statuses = [answer.status for answer in answers]
    assert 429 in statuses, "eight in a minute, unless it has just turned"
    over = answers[statuses.index(429)]
    assert over.body["type"] == "tag:shoal,2026:too-many-reads"
    assert over.headers["content-type"] == "application/problem+json"
    assert over.headers["ratelimit-policy"] == '"reads";q=3;w=60'
    assert f";t={over.headers['retry-after']}" in over.headers["ratelimit"]
    assert answers[0].headers["ratelimit"].startswith('"reads";r=2;')
    assert gateway.submit("/jobs", {"scraper": "plain", "urls": ["http://127.0.0.1:9/"]}, Authorization=eager)
    assert {gateway.ask("/jobs", Authorization=calm).status for _ in range(8)} == {200}
    listed = shoal("keys", "list", "--engine", store).stdout
    assert "3 reads/min" in listed


def test_the_documentation_asks_nobody_else(gateway: Served, make: Any) -> None:
    key = make("reader")
    answer = gateway.ask("/docs", Authorization=key)
    assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    page = answer.raw.decode()
    assert not any(word in page for word in ("<script", "http://", "https://", "src="))
    document = gateway.ask("/openapi.json", Authorization=key).body
    for path, methods in document["paths"].items():
        for method in methods:
            assert f"<h2>{method.upper()} {path}</h2>" in page
    assert json.dumps("zipcode")[1:-1] in page, "inputs are shown"
    assert gateway.ask("/redoc", Authorization=key).status == 404
