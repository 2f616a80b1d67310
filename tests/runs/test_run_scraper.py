"""`books.run()`: from a script, and where a loop is running, as in a notebook."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal import Page, Scraper
from shoal.errors import UsageError
from support.command_line import SHOAL
from support.counting_site import PAGES, Site

NOTEBOOK = """
import asyncio, signal, threading
from shoal import Scraper

books = Scraper("books", start=["{url}/"], delay=1, obey_robots=False)

@books.page
def listing(page):
    yield from page.follow("a")
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

async def cell():
    try:
        books.run(run_id="mine")
    except KeyboardInterrupt:
        print("interrupted")

loop = asyncio.new_event_loop()  # as a notebook has one: it does not mind signals
loop.run_until_complete(cell())
loop.close()
"""


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    yield site
    site.close()


@pytest.fixture
def books(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scraper:
    for name in [name for name in os.environ if name.startswith("SHOAL_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    books = Scraper("books", start=[f"{site.url}/"], delay=0)

    @books.page
    def read(page: Page) -> Iterator[object]:
        yield {"n": int(page.text("h1") or 0)}
        yield from page.follow("a")

    return books


def test_the_result_has_the_items(books: Scraper, site: Site) -> None:
    result = books.run(output="books.jsonl")
    assert result.items is not None
    assert sorted(item["n"] for item in result.items) == [*range(PAGES + 1)]
    assert (result.run.state, result.exported) == ("finished", PAGES + 1)
    some = books.run(urls=[f"{site.url}/7"])
    assert some.items == [{"n": 7}], "of this run alone"
    with pytest.raises(UsageError, match="exists already"):
        books.run(output="books.jsonl")


async def test_it_works_beside_a_running_loop(books: Scraper, site: Site) -> None:
    result = books.run(urls=[f"{site.url}/3"])
    assert result.items == [{"n": 3}]
    assert asyncio.get_running_loop().is_running()


def test_an_interrupt_in_a_notebook_ends_the_run_in_good_order(site: Site, tmp_path: Path) -> None:
    (tmp_path / "notebook.py").write_text(NOTEBOOK.format(url=site.url))
    done = subprocess.run(
        [sys.executable, "notebook.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout.splitlines()[:1]) == (0, ["interrupted"]), done.stderr
    assert "Traceback" not in done.stderr
    run = json.loads(subprocess.check_output([SHOAL, "stats", "mine", "--json"], cwd=tmp_path))
    assert (run["state"], run["claimed"], run["crashes"]) == ("running", 0, 0), "nothing is held any more"
