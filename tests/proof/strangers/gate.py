"""A gateway under attack: the real `shoal serve`, two keys, and what its other client and its memory felt meanwhile."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from statistics import quantiles
from urllib.parse import urlsplit

import psutil

from support.crawling import site_process
from support.engine_urls import empty_store
from support.gateway_process import Reply, Served, serving

SCRAPERS = """
import time
from pydantic import BaseModel
from shoal import Page, Request, Scraper

SITE = {site!r}


class Words(BaseModel):
    words: list[str]


searches = Scraper("searches", input=Words, delay=0, concurrency=8, obey_robots=False, attempts=1)


@searches.start
def each(words: Words):
    for word in words.words:
        yield Request(f"{{SITE}}?q={{word}}", group=word)


sick = Scraper("sick", input=Words)


@sick.start
def fail(words: Words):
    raise ValueError(f"no {{words.words}}" + words.words[0])


slow = Scraper("slow", input=Words)


@slow.start
def doze(words: Words):
    time.sleep(2)
    yield SITE


plain = Scraper("plain", delay=0, obey_robots=False, attempts=1)
heavy = Scraper("heavy", input=Words, delay=0, obey_robots=False, attempts=1)


@heavy.start
def one(words: Words):
    yield SITE


@heavy.page
def much(page: Page):
    for number in range(400):
        yield {{"number": number, "text": "x" * 20_000}}


@searches.page
@plain.page
def title(page: Page):
    yield {{"title": page.text("h1")}}
"""


@dataclass
class Gate:
    """What an attack has in its hands. `key`: one that is good, for the client who means harm."""

    served: Served
    key: str
    scale: int

    @property
    def address(self) -> tuple[str, int]:
        parts = urlsplit(self.served.url)
        return parts.hostname or "", parts.port or 0

    def ask(self, path: str, body: object = None, *, method: str | None = None) -> Reply:
        return self.served.ask(path, body, method=method, Authorization=f"Bearer {self.key}")

    def connect(self, timeout: float = 30.0) -> socket.socket:
        return socket.create_connection(self.address, timeout)

    def head(self, line: str, *more: str) -> bytes:
        """The head of a request with the key, as bytes."""
        lines = (line, f"Host: {self.address[0]}:{self.address[1]}", f"Authorization: Bearer {self.key}", *more)
        return "\r\n".join((*lines, "", "")).encode("latin-1")

    def says(self, raw: bytes, timeout: float = 30.0) -> bytes:
        """What is answered to these bytes until the connection is closed, or `timeout` has passed without a word."""
        received = b""
        with self.connect(timeout) as line, suppress(OSError):
            line.sendall(raw)
            while piece := line.recv(65536):
                received += piece
        return received

    def first_word(self, raw: bytes, timeout: float) -> bytes:
        """The beginning of the first answer to these bytes; empty = within `timeout` there is none."""
        with self.connect(timeout) as line, suppress(OSError):
            line.sendall(raw)
            return line.recv(4096)
        return b""


@dataclass
class Neighbour:
    """Another client, who submits and reads all the time. Answers are timed, and faults are kept."""

    gate: Gate
    key: str
    seconds: list[float] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def watching(self) -> Iterator[Neighbour]:
        thread = threading.Thread(target=self._live)
        thread.start()
        try:
            yield self
        finally:
            self._over.set()
            thread.join()

    @property
    def p99(self) -> float:
        return quantiles(self.seconds, n=100)[-1] if len(self.seconds) > 1 else 0.0

    def _live(self) -> None:
        job = ""
        while not self._over.wait(0.02):
            status, body = self._timed("POST", "/searches", {"words": ["milk"]})
            if status != 202:
                self.faults.append(f"submission: {status} {body[:200]!r}")
                continue
            job = json.loads(body)["job_id"]
            status, body = self._timed("GET", f"/results/{job}")
            if status != 200:
                self.faults.append(f"reading: {status} {body[:200]!r}")

    def _timed(self, method: str, path: str, document: object = None) -> tuple[int, bytes]:
        begun = time.monotonic()
        line = HTTPConnection(*self.gate.address, timeout=60)
        try:
            body = None if document is None else json.dumps(document)
            line.request(
                method, path, body, {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
            )
            answer = line.getresponse()
            return answer.status, answer.read()
        except (OSError, HTTPException) as error:
            return 0, repr(error).encode()
        finally:
            line.close()
            self.seconds.append(time.monotonic() - begun)


@dataclass
class MemoryWatch:
    """The most memory that a process has had, looked at twenty times a second. Bytes."""

    pid: int
    most: int = 0
    _over: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def watching(self) -> Iterator[MemoryWatch]:
        thread = threading.Thread(target=self._look)
        thread.start()
        try:
            yield self
        finally:
            self._over.set()
            thread.join()

    def _look(self) -> None:
        process = psutil.Process(self.pid)
        with suppress(psutil.Error):
            while True:
                self.most = max(self.most, process.memory_info().rss)
                if self._over.wait(0.05):
                    return


@contextmanager
def attacked(folder: Path, engine: str, scale: int) -> Iterator[tuple[Gate, str]]:
    """A gateway on an empty store of this engine, with a site for its jobs; and the key of a neighbour."""
    with (
        site_process(folder) as (port, _log),
        empty_store(engine, folder) as store,
        open_gate(folder, store, f"http://127.0.0.1:{port}/site/3/", scale) as opened,
    ):
        yield opened


@contextmanager
def open_gate(folder: Path, engine: str, site: str, scale: int) -> Iterator[tuple[Gate, str]]:
    """A gateway with a worker on this engine, and the key of a neighbour. It must end well when it is told to."""
    (folder / "strangers.py").write_text(SCRAPERS.format(site=site))
    variables = {"SHOAL_GUARD__ALLOW_NETWORKS": '["127.0.0.0/8"]', "SHOAL_ENGINE": engine}
    options = ("--port", "0", "--with-workers")
    keys = [_key(folder, name, variables) for name in ("stranger", "neighbour")]
    with serving(folder, "strangers.py", *options, engine=engine, at=folder, **variables) as served:
        yield Gate(served, keys[0], scale), keys[1]
        assert served.process.poll() is None, "the gateway has ended"
        assert served.stop() == 0


def _key(folder: Path, name: str, variables: dict[str, str]) -> str:
    made = subprocess.run(
        [sys.executable, "-m", "shoal", "keys", "create", name],
        cwd=folder,
        env={**os.environ, **variables},
        check=True,
        capture_output=True,
        text=True,
    )
    return made.stdout.strip()
