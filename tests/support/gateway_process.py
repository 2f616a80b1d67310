"""The gateway for tests as its users have it: `shoal serve` in a process of its own, the demo shop in another."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from support.waiting import wait_until

SCRAPERS = """
import time
from pydantic import BaseModel, Field
from shoal import Page, Request, Scraper

SHOP = {shop!r}


class Cart(BaseModel):
    items: list[str] = Field(max_length=50)
    zipcode: str


class Word(BaseModel):
    word: str


cart = Scraper("cart", input=Cart, delay=0, concurrency=4, obey_robots=False)


@cart.start
def searches(cart: Cart):
    for item in cart.items:
        yield Request(f"{{SHOP}}search?q={{item}}&zip={{cart.zipcode}}", group=item)


@cart.page
def products(page: Page):
    for card in page.css("article.card"):
        yield {{"title": card.css_first("h3").text(), "price": card.css_first(".price").text()}}


sick = Scraper("sick", input=Word)


@sick.start
def fail(word: Word):
    raise ValueError(f"no {{word.word}}\\ntoday")


slow = Scraper("slow", input=Word)


@slow.start
def doze(word: Word):
    time.sleep(3)
    yield SHOP


late = Scraper("late", input=Word, delay=60, obey_robots=False)


@late.start
async def pages(word: Word):
    for number in range(3):
        yield f"{{SHOP}}page/{{number + 1}}"


plain = Scraper("plain", delay=0, obey_robots=False, attempts=1)


@late.page
@plain.page
def title(page: Page):
    yield {{"title": page.text("h1")}}


jobs = Scraper("jobs", input=Word)
"""


CART = {"items": ["milk", "eggs", "bread"], "zipcode": "10001"}
NOBODY = "cart-" + "0" * 32


@dataclass(slots=True)
class Reply:
    """An answer of the gateway. `body`: as JSON, if it is."""

    status: int
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.raw)


@dataclass(slots=True)
class Served:
    """A gateway that listens."""

    url: str
    process: subprocess.Popen[str]
    folder: Path

    def ask(self, path: str, body: object = None, *, method: str | None = None, **headers: str) -> Reply:
        """One request. `body`: bytes as they are, anything else as JSON. `headers`: `_` stands for `-`."""
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        request = Request(f"{self.url}{path}", data, names, method=method)  # noqa: S310 - our own server
        try:
            with urlopen(request, timeout=60) as answer:  # noqa: S310 - as above
                return Reply(answer.status, {k.lower(): v for k, v in answer.headers.items()}, answer.read())
        except HTTPError as error:
            with error:
                return Reply(error.code, {k.lower(): v for k, v in error.headers.items()}, error.read())

    def submit(self, path: str, body: object, **headers: str) -> str:
        """Submit what must be accepted. Answers the id of the job."""
        answer = self._once_there_is_time(path, body, **headers)
        assert answer.status == 202, answer.raw
        job_id: str = answer.body["job_id"]
        return job_id

    def finished(self, job_id: str, **headers: str) -> Any:
        """The document of a job that must end soon."""
        answer = self._once_there_is_time(f"/results/{job_id}?wait=30", **headers)
        assert answer.status == 200, answer.raw
        assert answer.body["status"] not in ("queued", "processing"), answer.body
        return answer.body

    def _once_there_is_time(self, path: str, body: object = None, **headers: str) -> Reply:
        """As `ask`. Where the machine is so busy that the store seems to be away, it is asked again, as it wants."""

        def answered() -> Reply | None:
            answer = self.ask(path, body, **headers)
            return None if answer.status == 503 else answer

        return wait_until(answered, f"{path} is answered", again=0.5)

    def stop(self) -> int:
        """Ask it to end. Answers the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(120)


def problem(answer: Reply, status: int, kind: str) -> str:
    """What a problem says, checked for its form."""
    assert answer.status == status, answer.raw
    assert answer.headers["content-type"] == "application/problem+json"
    document = answer.body
    assert (document["status"], document["type"]) == (status, f"tag:shoal,2026:{kind}")
    assert document["title"]
    detail: str = document["detail"]
    return detail


@contextmanager
def open_shop() -> Iterator[str]:
    """The demo shop. Gives its URL, with the slash."""
    shop = subprocess.Popen([sys.executable, "-m", "shoal.demo", "--port", "0"], stdout=subprocess.PIPE, text=True)
    assert shop.stdout is not None
    with shop.stdout:
        try:
            yield shop.stdout.readline().split()[-1]
        finally:
            shop.terminate()
            shop.wait()


@contextmanager
def served(
    folder: Path, shop: str, *options: str, allow: str = "127.0.0.0/8", engine: str = "", **settings: str
) -> Iterator[Served]:
    """A gateway on a free port, on SQLite unless `engine` says otherwise.

    `allow`: a network that jobs may go to. `settings`: of the table `serve`.
    """
    (folder / "shop.py").write_text(SCRAPERS.format(shop=shop))
    variables = {f"SHOAL_SERVE__{name.upper()}": value for name, value in settings.items()}
    variables["SHOAL_GUARD__ALLOW_NETWORKS"] = json.dumps([allow])
    engine = engine or f"sqlite:///{folder}/shoal.db"
    with serving(folder, "shop.py", "--port", "0", *options, engine=engine, at=folder, **variables) as gateway:
        yield gateway


@contextmanager
def serving(folder: Path, target: str, *options: str, engine: str, at: Path, **variables: str) -> Iterator[Served]:
    """A gateway for any scrapers, started at `at`, its log in `folder`. `variables`: of the environment."""
    command = [sys.executable, "-m", "shoal", "serve", target, "--engine", engine, *options]
    log = folder / "serve.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            command,
            cwd=at,
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL,
            stderr=output,
            text=True,
            start_new_session=True,
        )
    try:
        gateway = Served(_announced(process, log), process, folder)
        _wait_until_listening(gateway)
        yield gateway
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait(120)


def _announced(process: subprocess.Popen[str], log: Path) -> str:
    def said() -> bool:
        assert process.poll() is None, log.read_text()
        return "http://" in log.read_text()

    wait_until(said, "the gateway says where it listens")
    return "http://" + log.read_text().split("http://")[1].split()[0]


def _wait_until_listening(gateway: Served) -> None:
    def listens() -> bool:
        assert gateway.process.poll() is None, "the gateway has ended"
        try:
            return gateway.ask("/health/live").status == 204
        except OSError:
            return False

    wait_until(listens, "the gateway listens")
