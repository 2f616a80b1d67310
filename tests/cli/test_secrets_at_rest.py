"""Secrets of a crawl: sent where they belong, and neither readable in the store nor shown anywhere."""

from __future__ import annotations

import json
import stat
import threading
from collections.abc import Iterator
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from support.command_line import shoal

SECRET = "0pen-se5ame"  # noqa: S105 - one to be looked for
SCRAPER = """
from shoal import Page, Request, Scraper

shop = Scraper("shop", start=["{url}/first"], delay=0, obey_robots=False, attempts=1)
LOGIN = {{"Authorization": "Bearer {secret}", "Cookie": "sid={secret}", "Accept-Language": "de"}}

@shop.page
def first(page: Page):
    yield Request("{url}/second", to="second", headers=LOGIN)

@shop.page("second")
def second(page: Page):
    yield {{"same": page.request.headers == LOGIN}}
    yield Request("{url}/third", to="third", headers=page.request.headers)
    yield Request("{url}/gone", to="third", headers=page.request.headers)
    yield Request("{with_password}/item", to="third")
    yield Request("{with_password}/gone2", to="third")
    yield Request("{with_password}:99999/", to="third")

late = Scraper("late", delay=0, obey_robots=False, attempts=1)

@late.start
def begin():
    yield Request("{url}/late", headers=LOGIN)

@late.page
@shop.page("third")
def third(page: Page):
    yield {{"path": page.url.rpartition("/")[2]}}
"""


class Site(ThreadingHTTPServer):
    """Notes what it was asked with."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Page)
        self.asked: dict[str, dict[str, str]] = {}


class _Page(BaseHTTPRequestHandler):
    server: Site

    def do_GET(self) -> None:
        self.server.asked[self.path] = dict(self.headers.items())
        self.send_response(404 if "gone" in self.path else 200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as site:
        thread = threading.Thread(target=site.serve_forever, args=(0.05,))
        thread.start()
        yield site
        site.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def folder(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SHOAL_EVENTS", str(tmp_path / "events"))
    monkeypatch.setenv("SHOAL_LOG_LEVEL", "debug")
    port = site.server_address[1]
    text = SCRAPER.format(
        url=f"http://127.0.0.1:{port}", secret=SECRET, with_password=f"http://anna:{SECRET}-url@127.0.0.1:{port}"
    )
    (tmp_path / "shop.py").write_text(text)
    return tmp_path


def kept(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")]


def test_headers_and_proxies_are_sealed_and_passwords_never_shown(site: Site, folder: Path) -> None:
    ran = shoal("run", "shop.py:shop", "-o", "items.jsonl")
    assert ran.returncode == 1, ran.stderr
    for path in ("/second", "/third", "/gone"):
        sent = site.asked[path]
        assert (sent["Authorization"], sent["Cookie"]) == (f"Bearer {SECRET}", f"sid={SECRET}")
    assert site.asked["/item"]["Authorization"].startswith("Basic ")
    assert {"same": True} in [json.loads(line) for line in Path("items.jsonl").read_text().splitlines()]

    assert shoal("exits", "add", f"http://anna:{SECRET}-exit@127.0.0.1:8118", "--pool", "later").returncode == 0
    listed = shoal("exits", "list")
    assert "http://***@127.0.0.1:8118" in listed.stdout

    for file in kept(folder):
        content = file.read_bytes().replace(f"{SECRET}-url".encode(), b"")  # of pages, as they are asked for
        assert SECRET.encode() not in content, file
        assert stat.S_IMODE(file.stat().st_mode) == 0o600 or file.name == "items.jsonl", file
    run = json.loads(shoal("runs", "--json").stdout)[0]["run_id"]
    looks = [
        ("dead", "list", run), ("dead", "list", run, "--json"), ("items", run), ("items", run, "--json"),
        ("stats", run), ("explain", f"http://127.0.0.1:{site.server_address[1]}/gone2"), ("export", run, "-o", "-"),
        ("audit", run), ("exits", "list", "--json"),
    ]  # fmt: skip
    answers = {" ".join(look): shoal(*look) for look in looks}
    assert "gone2" in answers[f"dead list {run}"].stdout
    for look, answer in {"run": ran, **answers}.items():
        assert SECRET not in answer.stdout + answer.stderr, look


def test_a_worker_without_the_key_says_what_to_do(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each machine of a fleet that was given no key has one of its own: that is said, and nothing is sent."""
    first, other = "the key of the machine that began it", "the key of the machine that goes on"
    monkeypatch.setenv("SHOAL_SECRET_KEY", first)
    began = shoal("run", "shop.py:late", "--mode", "distributed")
    assert began.returncode == 0, began.stderr
    run = json.loads(began.stdout)["run_id"]
    assert shoal("exits", "add", f"http://anna:{SECRET}@127.0.0.1:8118").returncode == 0

    monkeypatch.setenv("SHOAL_SECRET_KEY", other)
    worked = shoal("worker", "shop.py:late", "--drain")
    assert "SHOAL_SECRET_KEY" in worked.stderr
    assert "/late" not in site.asked
    (letter,) = json.loads(shoal("dead", "list", run, "--json").stdout)
    assert "the same secret_key" in letter["reason"]
    listed = shoal("exits", "list")
    assert "(not known here)" in listed.stdout
    assert "the same secret_key" in listed.stderr

    monkeypatch.setenv("SHOAL_SECRET_KEY", f"{other},{first}")
    assert "***@127.0.0.1" in shoal("exits", "list").stdout
    assert shoal("exits", "remove", "127.0.0.1:8118~" + sha256(b"anna").hexdigest()[:6]).returncode == 0
    assert shoal("dead", "requeue", run).returncode == 0
    worked = shoal("worker", "shop.py:late", "--drain")
    assert site.asked["/late"]["Authorization"] == f"Bearer {SECRET}", worked.stderr
    assert not Path("shoal.db.key").exists(), "where a key is given, none is made"


def test_a_key_is_changed_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = "o" * 32, "n" * 32
    monkeypatch.setenv("SHOAL_SECRET_KEY", old)
    assert shoal("keys", "create", "website").returncode == 0
    assert shoal("exits", "add", f"http://anna:{SECRET}@127.0.0.1:8118").returncode == 0
    monkeypatch.setenv("SHOAL_SECRET_KEY", new)
    assert "not here" in shoal("keys", "reseal").stderr
    monkeypatch.setenv("SHOAL_SECRET_KEY", f"{new},{old}")
    done = shoal("keys", "reseal")
    assert (done.returncode, "1 webhook secret, 1 password" in done.stderr) == (0, True), done.stderr
    monkeypatch.setenv("SHOAL_SECRET_KEY", new)
    assert "***@127.0.0.1" in shoal("exits", "list").stdout
    assert shoal("keys", "reseal").returncode == 0
