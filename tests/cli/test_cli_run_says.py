"""What `shoal run` refuses before it begins, and what it says of what it left out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.command_line import shoal
from support.counting_site import Site
from support.shop_file import ALL, SCRAPERS, numbers


@pytest.fixture(autouse=True)
def site(counting_site: Site, own_folder: Path) -> Site:
    """The site of the scrapers in `shop.py`, which is in the folder of the test."""
    (own_folder / "shop.py").write_text(SCRAPERS.format(url=counting_site.url, delay=0))
    return counting_site


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["shop.py"], "shop.py has several scrapers (books, cart, stuck, empty); choose one"),
        (["shop.py:empty"], "There is nothing to fetch: 'empty' begins nowhere"),
        (["shop.py:cart"], "Scraper 'cart' needs an input with pages."),
        (["shop.py:cart", "--input", '{"pages": "x"}'], "The input of 'cart' is wrong: the field 'pages'"),
        (["shop.py:cart", "--input", "{"], "The input of 'cart' is wrong"),
        (["shop.py:cart", "--input", "@none.json"], "The input file 'none.json' cannot be read: No such file"),
        (["shop.py:books", "--input", "{}"], "Scraper 'books' takes no input."),
        (["shop.py:books", "--urls-file", "none.txt"], "There is no file 'none.txt'."),
        (["shop.py:books", "-o", "none/x.csv"], "does not exist; create it first."),
        (["shop.py:books", "--resume"], "There is no unfinished run of 'books' to resume."),
        (["shop.py:books", "--resume", "--run-id", "x"], "There is no run 'x' in this engine."),
        (["shop.py:books", "--engine", "sqlite:///none/x.db"], "Check that its folder exists"),
        (["shop.py:books", "--workers", "0"], "Invalid value for '--workers'"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(site: Site, arguments: list[str], words: str) -> None:
    answer = shoal("run", *arguments)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr.startswith("shoal: ")
    assert answer.stderr.count("\n") == 1
    assert words in answer.stderr
    assert site.seen == []


def test_an_id_is_used_once_and_by_one_scraper() -> None:
    assert shoal("run", "shop.py:books", "--run-id", "mine").returncode == 0
    assert "add --resume to go on with it" in shoal("run", "shop.py:books", "--run-id", "mine").stderr
    other = shoal("run", "shop.py:empty", "--run-id", "mine", "--resume")
    assert "is one of the scraper 'books', not of 'empty'" in other.stderr
    assert shoal("run", "shop.py:books", "--run-id", "mine", "--resume", "-o", "out.jsonl").returncode == 0
    assert numbers() == ALL, "a finished run can be resumed: there is nothing left to do but to write the items"


@pytest.mark.parametrize("run_id", ["", "last", "bad id!", "-x", "a/b", "x" * 129])
def test_what_a_run_cannot_be_called(site: Site, run_id: str) -> None:
    answer = shoal("run", "shop.py:books", f"--run-id={run_id}")
    assert (answer.returncode, answer.stderr.count("\n")) == (2, 1)
    assert answer.stderr.startswith(f"shoal: A run cannot be called {run_id!r}: ")
    assert site.seen == []


def test_a_start_page_that_gives_nothing_is_named(site: Site) -> None:
    Path("none.py").write_text(
        f"from shoal import Scraper\nnone = Scraper('none', start=['{site.url}/'], delay=0)\n"
        "@none.page\ndef read(page):\n    yield from page.follow('article a')\n"
    )
    answer = shoal("run", "none.py", "--quiet")
    assert answer.returncode == 0
    assert answer.stderr.startswith(f"shoal: The start page {site.url}/ (HTTP 200, ")
    assert "gave neither an item nor a link." in answer.stderr
    assert "neither an item" not in shoal("run", "shop.py:books", "--quiet").stderr


def test_downloads_do_not_keep_a_run_from_its_end(site: Site) -> None:
    Path("files.py").write_text(
        f"from shoal import Scraper\nfiles = Scraper('files', start=['{site.url}/'], delay=0)\n"
        "@files.page\ndef read(page):\n    yield {'n': 0}\n    yield from page.download('a')\n"
    )
    answer = shoal("run", "files.py")
    assert answer.returncode == 0
    assert answer.stderr.count("lane.unstaffed") == 1
    assert "refused   40  (downloads: file workers are not part of this version yet)" in answer.stderr
    assert json.loads(shoal("runs", "--json").stdout)[0]["state"] == "finished"


@pytest.mark.parametrize("command", ["run", "worker", "serve"])
def test_a_scraper_for_browsers_is_refused_at_the_start(command: str) -> None:
    Path("seen.py").write_text(
        "from shoal import Scraper\nseen = Scraper('seen', start=['http://127.0.0.1:9/'], browser=True)\n"
        "@seen.page\ndef read(page):\n    return None\n"
    )
    answer = shoal(command, "seen.py")
    sentence = (
        "The scraper 'seen' has its pages in the lane 'browser': browser workers are not part of this version yet."
    )
    assert (answer.returncode, answer.stderr) == (2, f"shoal: {sentence}\n")


def test_refused_and_dropped_say_why(site: Site) -> None:
    Path("why.py").write_text(
        "from shoal import Drop, Scraper\n"
        f"why = Scraper('why', start=['{site.url}/'], delay=0, max_depth=1, allow=['127.0.0.1'])\n"
        "@why.page\ndef read(page):\n"
        "    yield from page.follow_url(['/1', '/2', 'https://elsewhere.example/'])\n"
        "    if page.depth:\n        yield from page.follow_url(['/3'])\n"
        "    if page.url.endswith('2'):\n        raise Drop('not wanted')\n"
    )
    said = shoal("run", "why.py").stderr
    assert "dropped   1  (by the handler)" in said
    assert "deeper than max_depth" in said
    assert "outside of allow" in said
