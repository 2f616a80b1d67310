"""The site that is crawled: N pages of about 24 KB, each with 40 links and 20 products. Same N, same site."""

from __future__ import annotations

import random
import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

PRODUCTS = 20
LINKS = 40
START = "/00/p0.html"

PAGE = """<!doctype html>
<html><head><title>Page {number}</title></head><body><h1>Page {number}</h1>
<ul class="nav">{links}</ul>
<ol class="row">{products}</ol>
</body></html>
"""
PRODUCT = (
    '<li><article class="product"><h3><a title="{title}">{title}</a></h3>'
    '<p class="price">£{price:.2f}</p><p class="desc">{words}</p></article></li>'
)


def path_of(number: int) -> str:
    """Where page `number` is, below the site's root: a hundred folders, so that none grows large."""
    return f"/{number % 100:02d}/p{number}.html"


def make_site(root: Path, pages: int) -> None:
    """Write the site to `root`, unless it is there already. A half-written one is written anew."""
    if root.exists():
        return
    unfinished = root.with_name(f"{root.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    dice = random.Random(pages)  # noqa: S311 - the site must be the same each time
    words = ["".join(dice.choices("abcdefghijklmnopqrstuvwxyz", k=dice.randint(3, 10))) for _ in range(2000)]
    for folder in range(min(pages, 100)):
        (unfinished / f"{folder:02d}").mkdir(parents=True)
    for number in range(pages):
        (unfinished / path_of(number)[1:]).write_text(_page(number, pages, words, dice))
    unfinished.rename(root)


def _page(number: int, pages: int, words: list[str], dice: random.Random) -> str:
    # Three links lead on to pages of higher number, so that all pages are reached from page 0; the rest lead anywhere.
    targets = [(number * 3 + step) % pages for step in (1, 2, 3)]
    targets += [dice.randrange(pages) for _ in range(LINKS - len(targets))]
    links = "".join(f'<li><a href="{path_of(target)}">link {target}</a></li>' for target in targets)
    products = "".join(
        PRODUCT.format(
            title=" ".join(dice.choices(words, k=6)),
            price=dice.uniform(0, 50),
            words=" ".join(dice.choices(words, k=110)),
        )
        for _ in range(PRODUCTS)
    )
    return PAGE.format(number=number, links=links, products=products)
