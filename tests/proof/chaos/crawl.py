"""What is crawled in a drill: linked pages on several hosts, and on each some that fail in their own ways."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.crawling import shoal, site_process

SCRAPER = '''
import asyncio
from urllib.parse import urlsplit
from zlib import crc32

import msgspec

from shoal import Page, Scraper


class Hasty(Scraper):
    """Leases so short that a stopped worker loses them."""

    def policy(self):
        rules = dict(lease={lease}, hard_timeout={hard_timeout}, crashes=1000)
        return msgspec.structs.replace(super().policy(), **rules)


drill = Hasty(
    "drill", start={start!r}, delay={delay}, timeout={timeout}, attempts={attempts}, mode={mode!r},
    results_ttl={results_ttl},
)


@drill.page
async def read(page: Page):
    place = urlsplit(page.url)
    await asyncio.sleep({long_reading} if crc32(place.path.encode()) % 20 == 0 else {reading})
    yield {{"host": place.hostname, "path": place.path, "query": place.query, "title": page.text("h1")}}
    yield page.follow("a")
'''

HARD_MARGIN = 500


@dataclass(frozen=True, slots=True)
class Scene:
    """How large a drill is. Times in seconds.

    `reading`: how long a handler takes, so that there are leases to lose. One page in twenty takes longer than a lease.
    """

    hosts: int = 6
    pages: int = 40
    delay: float = 0.2
    lease: float = 2.0
    timeout: float = 2.0
    results_ttl: float = 6.0
    reading: float = 0.15
    attempts: int = 3

    def starts(self, port: int) -> list[str]:
        """Where the crawl begins: each host's linked pages, and some of its traps."""
        urls = []
        for host in range(1, self.hosts + 1):
            site, neighbour = (f"http://127.0.0.{number}:{port}" for number in (host, host % self.hosts + 1))
            urls += [f"{site}/site/{self.pages}/", *(f"{site}{path}" for path in _traps(host, self.attempts))]
            urls.append(f"{site}/redirect-to?url={neighbour}/delay/5")
        return urls

    def write(self, file: Path, port: int, **changes: object) -> Path:
        """The scraper file."""
        values: dict[str, object] = {
            "start": self.starts(port), "delay": self.delay, "timeout": self.timeout, "mode": "distributed",
            "lease": round(self.lease * 1000), "hard_timeout": round(self.timeout * 1000) + HARD_MARGIN,
            "results_ttl": self.results_ttl, "reading": self.reading, "long_reading": self.lease * 1.5,
            "attempts": self.attempts,
        }  # fmt: skip
        file.write_text(SCRAPER.format(**{**values, **changes}))
        return file


def _traps(host: int, attempts: int) -> Iterator[str]:
    """Some of what can go wrong with a page; each host has its share."""
    every = (
        (f"/flaky/{attempts - 1}/a{host}", "/redirect/2", "/drop"),
        (f"/flaky/1/b{host}", f"/429/first/2/1/c{host}", "/status/404"),
        ("/reset", "/delay/900", "/private/secret"),
    )
    yield from (f"/delay/{ms}?slow" for ms in range(100, 500, 70))
    yield from every[host % len(every)]


class Undisturbed:
    """The same crawl without any disturbance, in one process of its own, on SQLite and without a delay."""

    def __init__(self, folder: Path, scene: Scene, port: int) -> None:
        self._folder = folder
        file = scene.write(
            folder / "drill.py", port, mode="single", delay=0, lease=60_000, results_ttl=None, reading=0, long_reading=0
        )
        with (folder / "run.log").open("ab") as log:
            self._process = subprocess.Popen(
                shoal("run", file, "--quiet", "-o", "items.jsonl"), cwd=folder, stdout=log, stderr=log
            )

    def wait(self) -> tuple[list[bytes], set[str]]:
        """Its items, and the places of its dead letters."""
        code = self._process.wait(300)
        assert code in (0, 1), (self._folder / "run.log").read_text()  # 1 = there are dead letters
        letters = subprocess.run(
            shoal("dead", "list", "last", "--json"), cwd=self._folder, check=True, stdout=subprocess.PIPE
        ).stdout
        dead = {place_of(letter["url"]) for letter in json.loads(letters)}
        return (self._folder / "items.jsonl").read_bytes().splitlines(), dead

    def end(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


def place_of(url: str) -> str:
    """Host and path, without the port."""
    host, _, path = url.removeprefix("http://").partition("/")
    return f"{host.partition(':')[0]}/{path}"


@contextmanager
def undisturbed(folder: Path, scene: Scene) -> Iterator[Undisturbed]:
    """The undisturbed crawl, under way while the block runs."""
    folder.mkdir()
    with site_process(folder, "--robots", "disallow-private") as (port, _):
        crawl = Undisturbed(folder, scene, port)
        try:
            yield crawl
        finally:
            crawl.end()
