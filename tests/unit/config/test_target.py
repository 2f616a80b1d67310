"""Targets: from `file.py:name` to a scraper, or to one sentence that says why not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from shoal.config.target import load_scraper, load_scrapers
from shoal.errors import BadTarget

TWO = """
from shoal import Scraper
first = Scraper("books")
second = Scraper("films")
"""


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(name: str, text: str) -> None:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def complaint(*targets: str) -> str:
    with pytest.raises(BadTarget) as caught:
        load_scrapers(targets)
    return str(caught.value)


def test_the_only_scraper_of_a_file_needs_no_name() -> None:
    write("one.py", 'from shoal import Scraper\nalias = books = Scraper("books")\n')
    assert load_scraper("one.py").name == "books"


@pytest.mark.parametrize("target", ["two.py:second", "two.py:films", "two:second", "two:films"])
def test_a_scraper_is_found_by_variable_or_by_its_own_name(target: str) -> None:
    write("two.py", TWO)
    assert load_scraper(target).name == "films"


def test_a_module_inside_a_package() -> None:
    write("shops/__init__.py", "")
    write("shops/all.py", TWO)
    assert load_scraper("shops.all:books").name == "books"
    assert [scraper.name for scraper in load_scrapers(["shops.all"])] == ["books", "films"]


def test_the_folder_of_the_file_comes_first() -> None:
    write("deep/words.py", 'NAME = "books"\n')
    write("deep/one.py", "from shoal import Scraper\nimport words\nbooks = Scraper(words.NAME)\n")
    assert load_scraper("deep/one.py").name == "books"
    assert sys.path[0] == str(Path("deep").resolve())


def test_a_file_named_like_a_module_that_is_loaded_hides_nothing() -> None:
    import json  # noqa: PLC0415

    write("json.py", TWO)
    assert load_scraper("json.py:books").name == "books"
    assert sys.modules["json"] is json


def test_the_same_file_twice_is_the_same_scraper() -> None:
    write("two.py", TWO)
    assert len(load_scrapers(["two.py", "./two.py:films"])) == 2


def test_dataclasses_and_models_in_the_file_work() -> None:
    write(
        "typed.py",
        "from __future__ import annotations\n"
        "from dataclasses import dataclass\n"
        "from shoal import Scraper\n"
        "from pydantic import BaseModel\n"
        "class Cart(BaseModel):\n    items: list[Part]\n"
        "@dataclass\nclass Part:\n    name: str\n"
        'cart = Scraper("cart", input=Cart)\n',
    )
    assert load_scraper("typed.py").name == "cart"


def test_several_and_none_chosen() -> None:
    write("two.py", TWO)
    with pytest.raises(BadTarget) as caught:
        load_scraper("two.py")
    assert str(caught.value) == "two.py has several scrapers (books, films); choose one, as in `two.py:books`."


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1\n", ["bad.py has no scraper", "Scraper("]),
        ("x = 1\ndef f(:\n", ["bad.py, line 2: this is not Python"]),
        ("\nimport nowhere.at_all\n", ["bad.py, line 2: no module named 'nowhere'"]),
        ("x = 1\nx / 0\n", ["bad.py, line 2: loading it failed with ZeroDivisionError: division by zero."]),
        ("import sys\nsys.exit(3)\n", ["bad.py, line 2", "__main__"]),
        ('from shoal import Scraper\nx = Scraper("No Name")\n', ["bad.py, line 2: A scraper cannot be named"]),
        ("from shoal import Scrapper\n", ["bad.py, line 1", "Scrapper"]),
        ("raise ValueError('two\\nlines')\n", ["ValueError: two lines."]),
    ],
)
def test_a_file_that_cannot_be_used_gives_one_sentence(text: str, words: list[str]) -> None:
    write("bad.py", text)
    said = complaint("bad.py")
    assert "\n" not in said
    for word in words:
        assert word in said


def test_an_error_below_the_file_names_the_file_below() -> None:
    write("below.py", "\n\n1 / 0\n")
    write("above.py", "import below\n")
    assert complaint("above.py").startswith("below.py, line 3: ")


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("missing.py", "There is no file 'missing.py'."),
        ("folder/", "folder/ is a folder; name a file in it, such as folder/books.py."),
        (".", ". is a folder; name a file in it, such as ./books.py."),
        ("missing.module:x", "There is no module 'missing'; for a file write `file.py` or `file.py:name`."),
        ("two.py:third", "two.py has no scraper 'third'; it has books, films."),
        ("two.py:", "The target 'two.py:' is not complete; write"),
        (":x", "The target ':x' is not complete"),
    ],
)
def test_a_target_that_leads_nowhere(target: str, sentence: str) -> None:
    write("two.py", TWO)
    Path("folder").mkdir()
    assert complaint(target).startswith(sentence)


def test_two_scrapers_of_one_name() -> None:
    write("two.py", TWO)
    write("other.py", 'from shoal import Scraper\nx = Scraper("films")\n')
    assert complaint("two.py", "other.py") == "Two scrapers are called 'films', in two.py and in other.py; rename one."
