"""`shop.py`: scrapers of the counting site for tests of `shoal run`, and what such runs come to."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from support.command_line import SHOAL
from support.counting_site import PAGES

SCRAPERS = """
import time
from pydantic import BaseModel
from shoal import Page, Request, Scraper

books = Scraper("books", start=["{url}/"], delay={delay})

@books.page
def listing(page: Page):
    yield from page.follow("a", to="detail")

@books.page("detail")
def detail(page: Page):
    yield {{"n": int(page.text("h1"))}}

class Cart(BaseModel):
    pages: list[int]

cart = Scraper("cart", input=Cart, delay=0)

@cart.start
def choose(cart: Cart):
    for n in cart.pages:
        yield Request(f"{url}/{{n}}", to="detail")

@cart.page("detail")
def chosen(page: Page):
    yield {{"n": int(page.text("h1"))}}

stuck = Scraper("stuck", start=["{url}/1"], delay=0)

@stuck.page
def never(page: Page):
    while True:
        time.sleep(60)

empty = Scraper("empty", delay=0)

@empty.page
def title(page: Page):
    yield {{"n": int(page.text("h1"))}}
"""


def begin(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen([SHOAL, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def end(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def children_of(process: subprocess.Popen[str]) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]


def lives(pid: int) -> bool:
    """Whether a process is there and not only waiting to be buried."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def numbers(file: str = "out.jsonl") -> list[int]:
    return sorted(json.loads(line)["n"] for line in Path(file).read_text().splitlines())


ALL = list(range(1, PAGES + 1))
