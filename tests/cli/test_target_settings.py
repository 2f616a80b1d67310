"""Which settings hold for a target, and whether they are for its scrapers at all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.command_line import script, shoal

SCRAPER = """
from shoal import Scraper

{name} = Scraper("{name}", start=["http://127.0.0.1:9/"], delay=0.05)

@{name}.page
def read(page):
    return None
"""


@pytest.fixture(autouse=True)
def above(own_folder: Path) -> Path:
    """The folder above a project `books`, which has settings of its own."""
    project("books", "delay = 3")
    return own_folder


def project(name: str, option: str) -> None:
    Path(name).mkdir()
    Path(name, f"{name}.py").write_text(SCRAPER.format(name=name))
    Path(name, "shoal.toml").write_text(f"[scrapers.{name}]\n{option}\n")


def delay(*arguments: str) -> float:
    answer = shoal("scrapers", "--json", *arguments)
    assert answer.returncode == 0, answer.stderr
    delay: float = json.loads(answer.stdout)[0]["delay"]
    return delay


@pytest.mark.parametrize("target", ["books/books.py", "books/books.py:books", "./books/books.py"])
def test_the_settings_beside_the_target_hold_and_are_named(target: str) -> None:
    assert delay(target) == 3
    assert shoal("scrapers", target).stderr == "Settings: books/shoal.toml.\n"


def test_those_of_the_current_folder_win_and_it_is_said() -> None:
    Path("shoal.toml").write_text("[scrapers.books]\ndelay = 4\n")
    assert delay("books/books.py") == 4
    said = shoal("scrapers", "books/books.py").stderr
    assert said.startswith("Settings: shoal.toml of this folder; books/shoal.toml is not read")
    assert said.count("\n") == 1
    assert delay("books/books.py", "--config", "books/shoal.toml") == 3
    assert shoal("scrapers", "books/books.py", "--config", "books/shoal.toml").stderr == ""


def test_in_the_folder_itself_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("books")
    assert delay("books.py") == 3
    assert shoal("scrapers", "books.py").stderr == ""


def test_of_two_projects_one_has_to_be_chosen() -> None:
    project("films", "delay = 5")
    answer = shoal("scrapers", "books/books.py", "films/films.py")
    sentence = (
        "There are books/shoal.toml and films/shoal.toml; say which of them holds for this command, with --config."
    )
    assert (answer.returncode, answer.stderr) == (2, f"shoal: {sentence}\n")
    assert delay("books/books.py", "films/films.py", "--config", "films/shoal.toml") == 0.05


def test_a_command_to_paste_names_the_settings() -> None:
    answer = script("run", "books/books.py", "--mode", "distributed", "--run-id", "one", "--engine", "sqlite:///x.db")
    command = json.loads(answer.stdout)["worker_command"]
    assert command == "shoal worker books/books.py --run-id one --config books/shoal.toml --engine sqlite:///x.db"


@pytest.mark.parametrize("command", ["run", "worker", "serve", "scrapers"])
@pytest.mark.parametrize(
    "text", ["[scrapers.boooks]\ndelay = 9\n", '[[route]]\nhost = "x"\nscraper = "boks"\nttl = 9\n']
)
def test_settings_for_a_misspelt_scraper_are_an_error(command: str, text: str) -> None:
    Path("books/shoal.toml").write_text(text)
    answer = shoal(command, "books/books.py", *(["--quiet"] if command != "scrapers" else []))
    assert answer.returncode == 2
    assert "is for no scraper of this command; did you mean 'books'?\n" in answer.stderr


def test_settings_for_other_scrapers_break_no_fleet() -> None:
    Path("books/shoal.toml").write_text("[scrapers.films]\ndelay = 9\n[scrapers.sitemap]\ndelay = 9\n")
    assert shoal("scrapers", "books/books.py").stderr == "Settings: books/shoal.toml.\n"
    Path("books/shoal.toml").write_text("[scrapers.books2]\ndelay = 9\n")
    answer = shoal("scrapers", "books/books.py")
    assert (answer.returncode, "did you mean 'books'?" in answer.stderr) == (0, True)
    Path("books/shoal.toml").write_text("[scrapers.books]\ndelay = 9\n[scrapers.boooks]\ndelay = 9\n")
    assert (delay("books/books.py"), "did you mean" in shoal("scrapers", "books/books.py").stderr) == (9, True)
    Path("books/shoal.toml").write_text("[scrapers.books]\ndelay = 9\n[scrapers.books2]\ndelay = 9\n")
    assert (delay("books/books.py"), "did you mean" in shoal("scrapers", "books/books.py").stderr) == (9, False)


def test_a_scraper_of_the_same_file_that_was_not_chosen_is_known() -> None:
    more = SCRAPER.format(name="books") + SCRAPER.format(name="boooks")
    Path("books/books.py").write_text(more)
    Path("books/shoal.toml").write_text("[scrapers.boooks]\ndelay = 9\n")
    assert delay("books/books.py:books") == 0.05


def test_delays_are_shown_as_they_are() -> None:
    Path("books/shoal.toml").write_text("")
    assert " 0.05s " in shoal("scrapers", "books/books.py").stdout
