"""The documentation is run: its python and console blocks, its settings, its links, and the names it mentions.

Blocks of `python` are executed; those of a page share their names. Behind `<!-- file: NAME -->` a block is also a file
for the console blocks of its page.

In blocks of `console`, lines that begin with `$ ` are run in a folder of their own while the demo shop is open. They
end with exit code 0, unless `# exit code N` says otherwise. What is shown below must come in that order, word for word;
words with digits (times, sizes, ids) may differ in lines of more than two words, and `…` stands for any lines. A run
that a command stops after some seconds (`timeout`) is stopped here as soon as it has done some pages, however long that
takes: on one machine three seconds are half of a crawl, on another nothing.

Blocks of `toml` are accepted as shoal.toml. Blocks of `sh` are not run.
"""

from __future__ import annotations

import importlib
import os
import re
import runpy
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from shoal import Scraper
from shoal.config.load import load
from support.crawling import pages_done
from support.waiting import WITHIN, wait_until

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *(ROOT / folder / "README.md" for folder in ("examples", "examples/cart", "benchmarks")),
]
BLOCK = re.compile(r"^(?:<!-- file: (\S+) -->\n)?( *)```(\w*)\n(.*?)^\2```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)")
SHOP = "127.0.0.1:8808"
STOPPED = re.compile(r"timeout --signal (\w+) 3 (?=shoal run )")
SOME = 6
TIMED_OUT = 124
"""The exit code of `timeout`, where what it started did not end by the signal alone."""


def blocks(page: Path, language: str) -> list[tuple[str, str]]:
    """File name (or nothing) and text of each block of that language."""
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [(file, _undented(text, len(indent))) for file, indent, kind, text in found if kind == language]


def _undented(text: str, indent: int) -> str:
    return "".join(line[indent:] if line.strip() else line for line in text.splitlines(keepends=True))


def _having(language: str) -> list[Any]:
    return [pytest.param(page, id=str(page.relative_to(ROOT))) for page in PAGES if blocks(page, language)]


@pytest.fixture
def folder(own_folder: Path) -> Path:
    return own_folder


@contextmanager
def open_shop() -> Iterator[str]:
    """The demo shop as users open it. Gives its host and port."""
    shop = subprocess.Popen([sys.executable, "-m", "shoal.demo", "--port", "0"], stdout=subprocess.PIPE, text=True)
    try:
        assert shop.stdout is not None
        yield shop.stdout.readline().split("//")[1].strip().rstrip("/")
    finally:
        shop.terminate()
        shop.communicate()


@pytest.mark.parametrize("page", _having("python"))
@pytest.mark.usefixtures("folder")
def test_python_blocks_run(page: Path) -> None:
    names: dict[str, Any] = {"__name__": "documentation"}
    for _, text in blocks(page, "python"):
        exec(compile(text, page.name, "exec"), names)  # noqa: S102 - that is what this test is for


@pytest.mark.parametrize("page", _having("toml"))
def test_settings_are_accepted(page: Path, folder: Path) -> None:
    for _, text in blocks(page, "toml"):
        file = folder / "shoal.toml"
        file.write_text(text, encoding="utf-8")
        load(file, {})


@pytest.mark.parametrize("page", _having("console"))
def test_console_blocks_say_what_really_happens(page: Path, folder: Path) -> None:
    with open_shop() as shop:
        for name, text in blocks(page, "python"):
            if name:
                (folder / name).write_text(text.replace(SHOP, shop), encoding="utf-8")
        for _, text in blocks(page, "console"):
            for command, shown in _commands(text):
                _check(command.replace(SHOP, shop), shown.replace(SHOP, shop))


def test_the_scraper_of_the_readme_crawls_the_shop(folder: Path) -> None:
    [(_, text), *_] = blocks(ROOT / "README.md", "python")
    with open_shop() as shop:
        (folder / "books.py").write_text(text.replace(SHOP, shop).replace("delay=1.0", "delay=0"), encoding="utf-8")
        _check("shoal run books.py -o books.jsonl", "  items     60\n")
    assert len((folder / "books.jsonl").read_text().splitlines()) == 60


def test_the_example_is_a_scraper() -> None:
    names = runpy.run_path(str(ROOT / "examples" / "books.py"))
    assert isinstance(names["books"], Scraper)


def _commands(text: str) -> Iterator[tuple[str, str]]:
    """Each command with what is shown below it."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown


def _check(command: str, shown: str) -> None:
    expected = re.search(r"# exit code (\d+)", command)
    code, said = _stopped(command, stop) if (stop := STOPPED.match(command)) else _run(command)
    assert code == (int(expected[1]) if expected else 0), f"{command}\n{said}"
    lines = iter([_skeleton(line) for line in said.splitlines()])
    for line in shown.splitlines():
        if line.strip() != "…":
            assert _skeleton(line) in lines, f"{command}\ndid not say: {line}\nbut:\n{said}"


def _run(command: str) -> tuple[int, str]:
    with _started(command) as process:
        said, _ = process.communicate(timeout=WITHIN)
    return _exit_code(process), said


def _stopped(command: str, stop: re.Match[str]) -> tuple[int, str]:
    """The same for a run that is stopped in the middle: as `timeout` would, when some more of its pages are done."""
    engine = re.search(r"--engine sqlite:///(\S+)", command)
    store = Path(engine[1] if engine else "shoal.db")
    before = pages_done(store)
    with _started(command.removeprefix(stop[0])) as process:
        wait_until(lambda: process.poll() is not None or pages_done(store) >= before + SOME, "some pages are done")
        assert process.poll() is None, "the run had ended before it could be stopped"
        process.send_signal(signal.Signals[f"SIG{stop[1]}"])
        said, _ = process.communicate(timeout=WITHIN)
    return (_exit_code(process) if stop[1] == "KILL" else TIMED_OUT), said


def _started(command: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    words = ["bash", "-c", f"exec {command}" if command.startswith("shoal run") else command]
    return subprocess.Popen(
        words,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _exit_code(process: subprocess.Popen[str]) -> int:
    return process.returncode if process.returncode >= 0 else 128 - process.returncode


def _skeleton(line: str) -> str:
    """A line without what differs from run to run: words with digits (`pages 63` is kept), the space between words."""
    words = line.split()
    return " ".join("#" if len(words) > 2 and re.search(r"\d", word) else word for word in words)


# Links and names


@pytest.mark.parametrize("page", [pytest.param(page, id=str(page.relative_to(ROOT))) for page in PAGES])
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for link in LINK.findall(text):
        path, _, heading = link.partition("#")
        if "://" in link:
            continue
        target = page.parent / path if path else page
        assert target.exists(), f"{page.name}: {link} leads nowhere"
        if heading:
            assert heading in _headings(target), f"{page.name}: {link}: there is no such heading"


def _headings(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_page_can_be_reached_by_links() -> None:
    reached: set[Path] = set()
    ahead = [ROOT / "README.md", ROOT / "docs" / "index.md"]
    while ahead:
        page = ahead.pop()
        if page not in reached:
            reached.add(page)
            links = [(page.parent / link.partition("#")[0]).resolve() for link in LINK.findall(page.read_text())]
            ahead += [link for link in links if link.suffix == ".md"]
    assert set(PAGES) <= reached


@pytest.mark.parametrize("page", [pytest.param(page, id=str(page.relative_to(ROOT))) for page in PAGES])
def test_what_is_named_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for name in re.findall(r"`(test_\w+)`", text):
        assert f"def {name}(" in _tests(), f"there is no test {name}"
    for path in re.findall(r"`((?:src|tests|docs|examples|benchmarks|scripts)/[\w./-]+)`", text):
        assert (ROOT / path).exists(), path
    for name in re.findall(r"`(shoal(?:\.\w+)+)`", text):
        if name not in ("shoal.toml", "shoal.db"):
            _find(name)


@cache
def _tests() -> str:
    return "".join(file.read_text() for file in [*ROOT.glob("tests/**/*.py"), *ROOT.glob("src/shoal/testing/**/*.py")])


def _find(name: str) -> None:
    """Import a module, or look up what it holds. Raises if there is no such thing."""
    module, _, rest = name.partition(".")
    found: Any = importlib.import_module(module)
    for part in rest.split("."):
        module = f"{module}.{part}"
        found = getattr(found, part, None) or importlib.import_module(module)


def test_the_python_reference_is_up_to_date() -> None:
    page = runpy.run_path(str(ROOT / "scripts" / "python_reference.py"))["python_page"]()
    committed = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    assert committed == page, "run `make docs` and commit what it writes"


def test_the_index_finds_every_page() -> None:
    """Each once: a page that only another page leads to is not found."""
    folder = ROOT / "docs"
    links = LINK.findall((folder / "index.md").read_text(encoding="utf-8"))
    pages = {str(page.relative_to(folder)) for page in folder.rglob("*.md")} - {"index.md"}
    assert sorted(link for link in links if not link.startswith("../")) == sorted(pages)
