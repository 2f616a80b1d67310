"""A handler with a mistake, or one that never returns: what a person sees of it, in real processes."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.command_line import SHOAL, script, shoal
from support.counting_site import PAGES, Site

if TYPE_CHECKING:
    pass

SCRAPER = """
from shoal import Page, Scraper

shop = Scraper("shop", start=["{url}/"], delay=0.02)

@shop.page
def listing(page: Page):
    yield from page.follow("a", to="book")

@shop.page("book")
def book(page: Page):
    price = page.text(".prize")
    yield {{"n": int(page.text("h1")), "price": price.strip()}}
"""
STUCK = {
    "in Python": "time.sleep(60)",
    "in C": """sqlite3.connect(":memory:").execute(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    ).fetchall()""",
}
MISTAKE = "price.strip()"
PLACE = "shop.py:13 in book"
WORDS = "AttributeError: 'NoneType' object has no attribute 'strip'"


@pytest.fixture(autouse=True)
def site(counting_site: Site, own_folder: Path) -> Site:
    (own_folder / "shop.py").write_text(SCRAPER.format(url=counting_site.url))
    return counting_site


def mend() -> None:
    code = Path("shop.py")
    code.write_text(code.read_text().replace(MISTAKE, '"mended"'))


def stats() -> dict[str, Any]:
    counts: dict[str, Any] = json.loads(shoal("stats", "last", "--json").stdout)
    return counts


def test_the_traceback_is_shown_by_dead_show_and_by_debug(site: Site) -> None:
    Path("shop.py").write_text(Path("shop.py").read_text().replace('page("book")', "page").replace(
        "@shop.page\ndef listing", '@shop.page("list")\ndef listing'
    ))  # fmt: skip
    quiet = shoal("run", "shop.py", "--url", f"{site.url}/1")
    assert (quiet.returncode, WORDS in quiet.stderr, "Traceback" in quiet.stderr) == (1, True, False)
    assert PLACE in quiet.stderr
    shown = shoal("dead", "show", "last", "1").stdout
    assert f'\nTraceback (most recent call last):\n  File "{Path.cwd()}/shop.py", line 13, in book\n' in shown
    assert shown.endswith(f"\n{WORDS}\n")
    letter = json.loads(shoal("dead", "show", "last", "1", "--json").stdout)
    assert letter["traceback"].endswith(WORDS)
    loud = script("run", "shop.py", "--url", f"{site.url}/1", "--debug")
    assert f'Traceback (most recent call last):\n  File "{Path.cwd()}/shop.py", line 13, in book\n' in loud.stderr


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_run_that_cannot_succeed_stops_and_goes_on_when_mended(site: Site, processes: str) -> None:
    """All pages are given, so that none is read well before the others fail."""
    pages = [f"{site.url}/{number}" for number in range(1, PAGES + 1)]
    Path("urls.txt").write_text("\n".join(pages))
    code = Path("shop.py")
    code.write_text(code.read_text().replace("@shop.page\ndef listing", '@shop.page("list")\ndef listing'))
    code.write_text(code.read_text().replace('@shop.page("book")', "@shop.page"))
    answer = script("run", "shop.py", "--urls-file", "urls.txt", "--run-id", "mine", "--workers", processes)
    assert answer.returncode == 1
    assert f"shoal: The first 10 pages all failed in the handler in the same way: {WORDS} ({PLACE})." in answer.stderr
    assert "shoal dead requeue mine && shoal run shop.py --resume --run-id mine" in answer.stderr
    counts = stats()
    assert (counts["state"], counts["halted"] is not None) == ("paused", True)
    assert 10 <= counts["failed"] <= 30
    assert counts["failed"] + counts["pending"] == PAGES
    assert "all failed in the handler in the same way" in shoal("stats", "mine").stdout
    mend()
    assert shoal("dead", "requeue", "mine").returncode == 0
    again = shoal("run", "shop.py", "--resume", "--run-id", "mine", "-q")
    assert (again.returncode, stats()["items"], stats()["halted"]) == (0, PAGES, None)


@pytest.mark.parametrize("command", ["run", "worker"])
@pytest.mark.parametrize("how", STUCK)
def test_ctrl_c_is_heard_while_a_handler_blocks_and_the_second_ends_it(site: Site, how: str, command: str) -> None:
    """Also where no step of Python is done, so that no signal handler of Python is called."""
    code = f"""
import sqlite3, time
from shoal import Page, Scraper

stuck = Scraper("stuck", start=["{site.url}/1"], delay=0)

@stuck.page
def never(page: Page):
    {STUCK[how]}
"""
    Path("stuck.py").write_text(code)
    if command == "worker":
        assert shoal("run", "stuck.py", "--mode", "distributed").returncode == 0
    process = subprocess.Popen([SHOAL, command, "stuck.py"], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        said = next(line for line in process.stderr if "[loop.blocked]" in line)
        assert all(each in said for each in ("handler=(default)", f"{site.url}/1", "stuck.py:9 in never"))
        process.send_signal(signal.SIGINT)
        heard = next(line for line in process.stderr if line.startswith("Stopping"))
        assert heard == (
            "Stopping as soon as stuck.py:9 in never returns. Press Ctrl-C again to stop at once; "
            "nothing stored is lost.\n"
        )
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 130
    finally:
        process.kill()
        process.stderr.close()
        process.wait()
