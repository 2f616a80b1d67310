"""Real crawls for the tests that take part in proof: the site, the scraper file and the command, each a process."""

from __future__ import annotations

import json
import random
import re
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import chdir, closing, contextmanager
from pathlib import Path
from typing import Any

from shoal.testing.access_log import AccessLog
from support.command_line import Answer
from support.command_line import shoal as call
from support.waiting import wait_until

SCRAPER = """
from shoal import Page, Scraper

proof = Scraper("proof", start={start!r}, delay={delay!r}, concurrency={concurrency!r})


@proof.page
def read(page: Page):
    yield {{"url": page.url, "title": page.text("h1")}}
    yield from page.follow("a")
"""

SITEMAP_SCRAPER = """
import re
from shoal import Scraper, Sitemap

big = Scraper("big", sitemaps={sitemaps!r}, allow={allow!r}, delay=0, obey_robots=False, concurrency=8, timeout=60)


@big.page
def read(page):
    return {{"url": page.url}}
"""


@contextmanager
def site_process(folder: Path, *options: str) -> Iterator[tuple[int, Path]]:
    """The hostile site as a process of its own, on all of 127.0.0.0/8. Gives its port and its access log."""
    log = folder / "access.jsonl"
    command = [
        sys.executable,
        "-m",
        "shoal.testing.hostile_site",
        "--host",
        "0.0.0.0",
        "--port",
        "0",
        "--log",
        str(log),
    ]
    site = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True)
    try:
        assert site.stdout is not None
        ready = site.stdout.readline()
        yield int(ready.rsplit(":", 1)[1]), log
    finally:
        site.terminate()
        site.wait()
        assert site.stdout is not None
        site.stdout.close()


def write_scraper(folder: Path, start: list[str], *, delay: float, concurrency: int = 1) -> Path:
    """The scraper file of these tests."""
    file = folder / "proof.py"
    file.write_text(SCRAPER.format(start=start, delay=delay, concurrency=concurrency))
    return file


def shoal(*words: str | Path) -> list[str]:
    """The command line, as a user types it."""
    return [sys.executable, "-m", "shoal", *map(str, words)]


def start(folder: Path, *words: str | Path) -> subprocess.Popen[str]:
    """Start a command in a session of its own, so that all of it can be killed."""
    output = (folder / "command.log").open("a")
    with output:
        return subprocess.Popen(
            shoal(*words), cwd=folder, text=True, stdout=output, stderr=output, start_new_session=True
        )


def kill_all(process: subprocess.Popen[str]) -> None:
    """`kill -9` to a process, without a word of warning; its own children notice by themselves."""
    process.send_signal(signal.SIGKILL)
    process.wait()


def crawl_with_kills(folder: Path, scraper: Path, log: Path, *options: str, kills: int, pages: int, seed: int) -> int:
    """Crawl, killed after random numbers of requests and resumed each time, until done.

    Answers how many kills struck a live crawl.
    """
    chance = random.Random(seed)
    struck = 0
    for _ in range(kills):
        process = start(folder, "run", scraper, "--quiet", *(["--resume"] if struck else []), *options)
        wanted = _requests(log) + chance.randint(1, max(2, 2 * pages // (kills + 3)))
        wait_until(
            lambda: process.poll() is not None or _requests(log) >= wanted,  # noqa: B023 - waited for within the turn
            f"the target has seen {wanted} requests",
            within=240,
        )
        if process.poll() is not None:
            break
        kill_all(process)
        struck += 1
    last = start(folder, "run", scraper, "--quiet", "--resume", *options)
    assert last.wait(1800) in (0, 2), "2 = there was nothing left to resume"
    return struck


def _requests(log: Path) -> int:
    return log.read_bytes().count(b'"began"') if log.exists() else 0


def items(folder: Path) -> list[dict[str, object]]:
    """All items of the newest run."""
    answer = _here(folder, "export", "last", "-o", "-")
    assert answer.returncode == 0, answer.stderr
    return [json.loads(line) for line in answer.stdout.splitlines()]


def stats(folder: Path) -> dict[str, int]:
    """The counters of the newest run."""
    answer = _here(folder, "stats", "last", "--json")
    assert answer.returncode == 0, answer.stderr
    counters: dict[str, int] = json.loads(answer.stdout)
    return counters


def said(folder: Path, *words: str) -> Any:
    """What a command with `--json` prints."""
    answer = _here(folder, *words)
    assert answer.returncode in (0, 1), answer.stderr
    return json.loads(answer.stdout)


def _here(folder: Path, *words: str) -> Answer:
    """A command that only looks, in this process: another one takes longer to start than to look."""
    with chdir(folder):
        return call(*words)


def wait_for(log: Path, requests: int) -> None:
    """Until the target has seen so many requests."""
    wait_until(lambda: _requests(log) >= requests, f"the target has seen {requests} requests")


def tasks_let_in(folder: Path, crawl: subprocess.Popen[str]) -> int:
    """How many tasks the crawl in this folder has had so far.

    A file is read at once. A server is asked by a command, and the crawl stands still meanwhile: on a busy machine it
    would be over before the answer.
    """
    if not (folder / "shoal.db").exists():
        crawl.send_signal(signal.SIGSTOP)
        counts = stats(folder)
        crawl.send_signal(signal.SIGCONT)
        return counts["remaining"] + counts["completed"]
    return _counted(folder / "shoal.db", "waiting + leased + done")


def pages_done(store: Path) -> int:
    """How many pages the runs in a SQLite store have done so far. Asking disturbs nobody."""
    return _counted(store, "done") if store.exists() else 0


def _counted(store: Path, counters: str) -> int:
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as opened:
        try:
            return int(opened.execute(f"SELECT coalesce(sum({counters}), 0) FROM run").fetchone()[0])  # noqa: S608
        except sqlite3.OperationalError:  # it is just being made
            return 0


def killed_in_the_middle(folder: Path) -> None:
    """A crawl whose worker is killed while it reads a large sitemap, and another that ends it: nothing is missing."""
    listed, wanted = 60_000, 59
    with site_process(folder) as (port, log):
        file = folder / "big.py"
        sitemap = f"http://127.0.0.1:{port}/sitemap/urls/{listed}"
        file.write_text(SITEMAP_SCRAPER.format(sitemaps=sitemap, allow=[re.compile(r"/p/\d*[1-9]000$|/p/\d+0000$")]))
        first = start(folder, "run", file, "--quiet")
        wait_for(log, 1)

        def some_let_in() -> int:
            assert first.poll() is None
            return number if (number := tasks_let_in(folder, first)) >= 3 else 0

        struck = wait_until(some_let_in, "some tasks of the sitemap are let in")
        kill_all(first)
        again = start(folder, "run", file, "--quiet", "--resume")
        assert again.wait(120) == 0, (folder / "command.log").read_text()
        requests = AccessLog.read(log).counts()
    found = Counter(str(item["url"]) for item in items(folder))
    print(f"killed when there were {struck}; the sitemap was asked for {requests[f'/sitemap/urls/{listed}']} times")
    assert struck < wanted
    assert len(found) == wanted
    assert set(found.values()) == {1}
