"""`shoal init`: a new project that runs as it is."""

import keyword
import re
import sys
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Annotated

import typer

from shoal.cli.output.exit_codes import say
from shoal.core.url import normalise
from shoal.errors import UsageError

DEFAULT_START = "https://books.toscrape.com/"
"""A site that was made to be scraped."""

TEMPLATES = {
    "{name}.py": "scraper.py.txt",
    "test_{name}.py": "test_scraper.py.txt",
    "shoal.toml": "shoal.toml.txt",
    "README.md": "README.md.txt",
    ".gitignore": "gitignore.txt",
}
"""Name of each file of a project, and the template it is made of."""


def init(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where to put it; made if it does not exist.")],
    name: Annotated[
        str | None, typer.Option("--name", help="Name of the scraper. Default: the name of the folder.")
    ] = None,
    url: Annotated[str, typer.Option("--url", help="Where the crawl starts.")] = DEFAULT_START,
) -> None:
    """Begin a new project: a scraper, a test for it, settings and a README. Never overwrites a file.

    Example:

        shoal init books
    """
    chosen = _name(name or folder.resolve().name, given=name is not None)
    start = normalise(url)
    texts = {folder / file.format(name=chosen): _text(template, chosen, start) for file, template in TEMPLATES.items()}
    existing = [path.name for path in texts if path.exists()]
    if existing:
        raise UsageError(f"{folder} already has {', '.join(existing)}; nothing was written. Choose another folder.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in texts.items():
            with path.open("x", encoding="utf-8") as stream:
                stream.write(text)
    except OSError as error:
        raise UsageError(f"{folder} cannot be written: {error.strerror}.") from error
    for path in texts:
        say(f"  {path}")
    enter = "" if folder.resolve() == Path.cwd() else f"cd {folder} && "
    say(f"Made the scraper {chosen!r}. Next: `{enter}shoal run {chosen}.py -o {chosen}.jsonl`.")


def _name(text: str, *, given: bool) -> str:
    """A name that is both a scraper's and a Python module's: made from a folder's name, or taken as given."""
    name = text if given else re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")
    taken = keyword.iskeyword(name) or name in sys.stdlib_module_names or name in ("shoal", "pytest")
    if re.fullmatch(r"[a-z][a-z0-9_]*", name) is None or taken:
        wanted = "small letters, digits and _, a letter first, and no name that Python has a use for"
        raise UsageError(f"A scraper cannot be called {name!r}: use {wanted}; for example --name books.")
    return name


def _text(template: str, name: str, url: str) -> str:
    source = files("shoal.cli.commands.project").joinpath("templates", template).read_text(encoding="utf-8")
    return Template(source).substitute(name=name, url=url)
