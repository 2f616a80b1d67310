"""A new project by `shoal init`, its scrapers as the settings make them, and a doctor who is content."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from shoal.cli.commands.project.init import DEFAULT_START
from shoal.testing.hostile_site import HostileSite
from support.command_line import Answer, script, shoal

pytestmark = pytest.mark.usefixtures("own_folder")


def test_a_new_project_has_a_scraper_that_loads_and_tests_that_pass(own_folder: Path) -> None:
    made = shoal("init", "my-books")
    assert made.returncode == 0
    assert "cd my-books && shoal run my_books.py -o my_books.jsonl" in made.stderr
    scrapers = json.loads(shoal("scrapers", "my-books/my_books.py", "--json").stdout)
    assert [(each["name"], each["handlers"]) for each in scrapers] == [("my_books", ["", "detail"])]
    tests = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=own_folder / "my-books", capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert tests.returncode == 0, tests.stdout
    settings = shoal("doctor", "--config", "my-books/shoal.toml")
    assert settings.returncode == 0


BOOKS_TO_SCRAPE = {
    "/": """<article class="product_pod"><h3><a href="catalogue/attic_1000/index.html" title="Attic">Attic</a></h3>
        <div class="product_price"><p class="price_color">£51.77</p></div></article>
        <ul class="pager"><li class="next"><a href="page-2.html">next</a></li></ul>""",
    "/page-2.html": """<article class="product_pod"><h3><a href="catalogue/velvet_999/index.html">Velvet</a></h3>
        <div class="product_price"><p class="price_color">£53.74</p></div></article>""",
    "/catalogue/attic_1000/index.html": """<article class="product_page"><div class="product_main"><h1>Attic</h1>
        <p class="price_color">£51.77</p><p class="instock availability">In stock</p></div></article>""",
    "/catalogue/velvet_999/index.html": """<article class="product_page"><div class="product_main"><h1>Velvet</h1>
        <p class="price_color">£53.74</p></div></article>""",
}
"""The markup of the site that `shoal init` begins with, as far as its template looks at it."""


def test_a_new_project_finds_the_titles_and_prices_of_its_own_site(own_folder: Path) -> None:
    assert shoal("init", "mine").returncode == 0
    project = Path("mine/mine.py")
    assert DEFAULT_START in project.read_text()

    def begin_at(url: str) -> None:
        project.write_text(project.read_text().replace(DEFAULT_START, url).replace("delay=1.0", "delay=0"))

    async def crawl() -> Answer:
        async with HostileSite() as site:
            site.pages.update(BOOKS_TO_SCRAPE)
            begin_at(site.url("/"))
            return await asyncio.to_thread(script, "run", "mine/mine.py", "-q", "-o", "-")

    answer = asyncio.run(crawl())
    found = [json.loads(line) for line in answer.stdout.splitlines()]
    assert sorted((item["title"], item["price"]) for item in found) == [("Attic", "£51.77"), ("Velvet", "£53.74")]


def test_init_never_overwrites(own_folder: Path) -> None:
    (own_folder / "books").mkdir()
    (own_folder / "books" / "books.py").write_text("mine")
    refused = shoal("init", "books")
    assert refused.returncode == 2
    assert "already has books.py; nothing was written" in refused.stderr
    assert [path.name for path in (own_folder / "books").iterdir()] == ["books.py"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["init", "json"], "A scraper cannot be called 'json'"),
        (["init", "x", "--name", "My Books"], "A scraper cannot be called 'My Books'"),
        (["init", "x", "--url", "htp://x"], "The URL 'htp://x' was refused"),
        (["init", "file/below"], "file/below cannot be written"),
    ],
)
def test_init_refuses_with_one_sentence(own_folder: Path, arguments: list[str], words: str) -> None:
    (own_folder / "file").write_text("")
    answer = shoal(*arguments)
    assert answer.returncode == 2
    assert words in answer.stderr
    assert not (own_folder / "x").exists()


def test_scrapers_shows_them_as_the_settings_make_them() -> None:
    shoal("init", "books")
    Path("shoal.toml").write_text('[scrapers.books]\ndelay = "3s"\nmode = "distributed"\nlane = "priority"\n')
    scraper = json.loads(shoal("scrapers", "books/books.py", "--json").stdout)[0]
    assert (scraper["delay"], scraper["mode"], scraper["lane"]) == (3.0, "distributed", "priority")
    assert scraper["attempts"] == 3, "what is not set stays"
    assert shoal("scrapers", "books/books.py").stdout.splitlines()[1].split()[:2] == ["books", "distributed"]
    Path("shoal.toml").write_text('[scrapers.books]\nlane = "fast"\n')
    assert "scrapers.books.lane = 'fast' cannot be used: the lanes are" in shoal("scrapers", "books/books.py").stderr
    Path("shoal.toml").write_text('[scrapers.books]\nlane = "fast"\n[lanes.fast]\nttl = "30m"\n')
    assert shoal("scrapers", "books/books.py").returncode == 0


def test_doctor_is_content_with_this_machine() -> None:
    answer = shoal("doctor", "--json")
    findings = {finding["check"]: finding for finding in json.loads(answer.stdout)}
    assert answer.returncode == 0
    assert findings["engine"]["verdict"] == "ok"
    assert findings["contact"]["verdict"] == "warn"
    assert "contact = " in findings["contact"]["advice"]
    assert not Path("shoal.db").exists(), "a doctor changes nothing"
