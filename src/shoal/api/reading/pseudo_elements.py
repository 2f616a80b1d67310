"""The pseudo-elements `::text` and `::attr(name)` at the end of a CSS selector, as parsel and Scrapy have them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from selectolax.lexbor import LexborNode

from shoal.errors import BadScraper

_ENDING = re.compile(r"(.*?)(\s*)::(?:text|attr\(\s*([^\s()]+)\s*\))", re.DOTALL).fullmatch
_PIECE = re.compile(r"\\.|\"[^\"]*\"|'[^']*'|[^\\\"']", re.DOTALL).findall


class PseudoElement(NamedTuple):
    """What is wanted of the elements that `selector` finds ("" = of the root itself).

    `attribute`: None = their texts. `below`: of all that is in them, too (`div ::text`).
    """

    selector: str
    attribute: str | None
    below: bool

    def of(self, nodes: Iterable[LexborNode]) -> list[str]:
        """The texts, each as it stands; or the attribute of those that have it, "" if it is empty."""
        if self.attribute is not None:
            return [said for node in nodes if (said := attribute(node, self.attribute)) is not None]
        inside = (part for node in nodes for part in (node.traverse if self.below else node.iter)(include_text=True))
        texts = {part.mem_id: part for part in inside if part.is_text_node}  # nodes may be in each other
        return [part.text_content or "" for part in texts.values()]


@lru_cache(maxsize=4096)
def pseudo_element(selector: str) -> PseudoElement | None:
    """The one that a selector ends with; None = none. Raises BadScraper for alternatives that end differently."""
    ends = [_ENDING(part.strip()) for part in _alternatives(selector)]
    read = [None if end is None else (end[3], bool(end[2]) or not end[1]) for end in ends]
    if read[0] is None and not any(read):
        return None
    if any(other != read[0] for other in read) or read[0] is None:
        raise BadScraper(f"{selector!r} asks for different things of its alternatives; ask for each on its own.")
    name, below = read[0]
    bases = [end[1].strip() for end in ends if end is not None]
    if name is not None and below:
        bases = [f"{base} *" if base else "" for base in bases]
    return PseudoElement(", ".join(bases), name, below)


def attribute(node: LexborNode, name: str) -> str | None:
    """An attribute of a node; None = it has no such attribute, "" = it is empty."""
    attributes = node.attributes
    value = attributes.get(name)
    return "" if value is None and name in attributes else value


def _alternatives(selector: str) -> list[str]:
    """A selector, split at the commas that are in no bracket and in no quotes."""
    parts, depth = [""], 0
    for piece in _PIECE(selector):
        depth += (piece in "([") - (piece in ")]")
        if piece == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += piece
    return parts
