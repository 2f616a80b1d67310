"""Content hashes for change detection: what a page says, without what changes at every look. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from shoal.core.html.bounds import parse_html
from shoal.errors import PageTooComplex

INVISIBLE = ("script", "style", "noscript", "template")
"""Elements that nobody reads."""

_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_SPACE = re.compile(r"\s+")
_SPACE_AT_TAGS = re.compile(r" ?([<>]) ?")


def check_selector(selector: str) -> None:
    """Raises ValueError for what is no CSS selector."""
    try:
        LexborHTMLParser("").css(selector)
    except (SelectolaxError, TypeError, UnicodeEncodeError):
        raise ValueError(f"{selector!r} is not a valid CSS selector") from None


def rules_of(volatile: Sequence[str]) -> str:
    """A short name for how hashes are made: those made in different ways say nothing about each other."""
    return sha256("\n".join(("1", *INVISIBLE, *volatile)).encode()).hexdigest()[:8]


def content_hash(body: bytes, headers: Mapping[str, str], volatile: Sequence[str] = ()) -> str:
    """The hash of what a page says: HTML without scripts, styles, comments, needless space and what `volatile` selects;
    what is not HTML, or too complex to be parsed, as it is.
    """
    if "html" not in headers.get("Content-Type", "html").lower():
        return sha256(body).hexdigest()
    from shoal.core.charsets.decoding import decode  # noqa: PLC0415 - slow to load, and most scrapers never ask

    try:
        tree = parse_html(decode(body, headers))
    except PageTooComplex:
        return sha256(body).hexdigest()
    for selector in (", ".join(INVISIBLE), *volatile):
        for node in _outermost(tree.css(selector)):
            with suppress(SelectolaxError):  # the root cannot be taken away
                node.decompose()
    said = _without_comments(tree.html or "")
    words = _SPACE_AT_TAGS.sub(r"\1", _SPACE.sub(" ", said))
    return sha256(words.encode("utf-8", "replace")).hexdigest()


def _without_comments(text: str) -> str:
    """Nothing is looked for beyond the last end of a comment: there are beginnings that have none (<plaintext>)."""
    end = text.rfind("-->") + len("-->")
    return text if end < len("-->") else _COMMENT.sub("", text[:end]) + text[end:]


def _outermost(nodes: Sequence[LexborNode]) -> list[LexborNode]:
    """Those that are in none of the others: what is inside goes with them, and must not be touched afterwards."""
    inside = dict.fromkeys((node.mem_id for node in nodes), True)
    chosen = []
    for node in nodes:
        way: list[int] = []
        above = node.parent
        while above is not None and above.mem_id not in inside:
            way.append(above.mem_id)
            above = above.parent
        within = above is not None and inside[above.mem_id]
        inside.update(dict.fromkeys(way, within))
        if not within:
            chosen.append(node)
    return chosen
