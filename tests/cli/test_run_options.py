"""What `shoal run` can be told besides: lines for requests, a log file, an archive, live items, resume or start."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator  # type: ignore[import-untyped]

from support.command_line import SHOAL, script, shoal
from support.counting_site import PAGES, Site
from support.waiting import wait_until

SCRAPER = """
from shoal import Page, Scraper

books = Scraper("books", start=["{url}/"], delay={delay})

@books.page
def listing(page: Page):
    yield from page.follow("a", to="detail")

@books.page("detail")
def detail(page: Page):
    yield {{"n": int(page.text("h1"))}}
"""


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    yield site
    site.close()


@pytest.fixture(autouse=True)
def folder(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("SHOAL_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.py").write_text(SCRAPER.format(url=site.url, delay=0))
    (tmp_path / "slow.py").write_text(SCRAPER.format(url=site.url, delay=0.1))
    return tmp_path


def test_lines_an_archive_and_a_table_of_one_run(site: Site) -> None:
    words = (
        "-v",
        "--log-file",
        "run.log",
        "--warc",
        "answers.warc.gz",
        "-o",
        "sqlite:///own.db#books",
        "-o",
        "a.csv.gz",
    )
    answer = script("run", "shop.py", *words, "--workers", "2")
    assert (answer.returncode, "answered" in answer.stderr) == (0, False)
    assert f"sqlite:///own.db#books and a.csv.gz ({PAGES} items)" in answer.stderr
    lines = [line for line in Path("run.log").read_text().splitlines() if "[request.answered]" in line]
    assert len(lines) == len(site.seen), "of both processes, robots.txt included"
    assert any("status=200" in line and f"url={site.url}/7" in line.split() for line in lines)
    archived = []
    for path in Path().glob("answers*.warc.gz"):
        with path.open("rb") as stream:
            archived += [
                each.rec_headers["WARC-Target-URI"] for each in ArchiveIterator(stream) if each.rec_type == "response"
            ]
    assert sorted(archived) == sorted(f"{site.url}{path}" for path in site.seen)
    with closing(sqlite3.connect("own.db")) as connection:
        assert connection.execute("SELECT sum(n) FROM books").fetchone() == (sum(range(PAGES + 1)),)


def test_items_can_be_read_while_the_run_works(site: Site) -> None:
    process = subprocess.Popen([SHOAL, "run", "slow.py", "--quiet", "-o", "live.jsonl", "--follow"])
    wait_until(
        lambda: Path("live.jsonl").exists() and Path("live.jsonl").read_text().count("\n") >= 2, "some are there"
    )
    assert process.poll() is None, "it still works"
    assert process.wait(120) == 0
    assert sorted(json.loads(line)["n"] for line in Path("live.jsonl").read_text().splitlines()) == [
        *range(1, PAGES + 1)
    ]
    again = shoal("export", "last", "-o", "-", "--follow")
    assert (again.returncode, again.stdout.count("\n")) == (0, PAGES), "of a run that has ended: all, and an end"


def test_resume_or_start_starts_once_and_then_goes_on(site: Site) -> None:
    assert shoal("run", "shop.py", "--resume-or-start", "--quiet").returncode == 0
    assert shoal("run", "shop.py", "--mode", "distributed", "--run-id", "left").returncode == 0
    site.forget()
    gone_on = shoal("run", "shop.py", "--resume-or-start", "--url", f"{site.url}/1", "--mode", "single")
    assert (gone_on.returncode, "Going on with left" in gone_on.stderr) == (0, True)
    assert len(site.seen) == PAGES + 1, "URLs are for a run that is started"
    assert shoal("run", "shop.py", "--resume-or-start", "--run-id", "new", "--quiet").returncode == 0
    known = {run["run_id"] for run in json.loads(shoal("runs", "--json").stdout)}
    assert (len(known), known > {"left", "new"}) == (3, True)


def test_stats_are_watched_until_the_end(site: Site) -> None:
    assert shoal("run", "slow.py", "--mode", "distributed", "--run-id", "mine").returncode == 0
    watching = subprocess.Popen([SHOAL, "stats", "mine", "--watch", "--json"], stdout=subprocess.PIPE, text=True)
    assert watching.stdout is not None
    first = json.loads(watching.stdout.readline())
    assert (first["state"], first["completed"]) == ("running", 0)
    assert shoal("run", "slow.py", "--resume", "--run-id", "mine", "--mode", "single", "--quiet").returncode == 0
    rest = [json.loads(line) for line in watching.communicate(timeout=120)[0].splitlines()]
    assert (rest[-1]["state"], rest[-1]["completed"]) == ("finished", PAGES + 1)
    assert watching.returncode == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["-o", "a.jsonl", "--replace", "--append"], "written anew (--replace) or added to (--append), not both."),
        (["--follow"], "--follow says how items are written; say where with -o."),
        (["-o", "a.parquet", "--follow"], "can be written live"),
        (["-o", "a.csv", "--columns", "a,,b"], "must be names with commas between them, each once."),
        (["--warc", "a.zip"], "The archive 'a.zip' must be called NAME.warc.gz."),
        (["--warc", "none/a.warc.gz"], "does not exist; create it first."),
        (["--warc", "a.warc.gz", "--mode", "distributed"], "for this run, give it to the workers."),
        (["--log-file", "none/run.log"], "The log file 'none/run.log' cannot be written"),
        (["-a", "x"], "'x' is no argument; write it as -a name=value."),
        (["-a", "x=1"], "Scraper 'books' takes no input."),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_fetched(site: Site, words: list[str], sentence: str) -> None:
    answer = shoal("run", "shop.py", *words)
    assert (answer.returncode, answer.stderr.count("\n")) == (2, 1)
    assert sentence in answer.stderr
    assert site.seen == []
