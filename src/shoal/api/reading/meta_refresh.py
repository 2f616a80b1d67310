"""`<meta http-equiv="refresh">`: where a page sends its visitors on to by itself."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from selectolax.lexbor import LexborNode

from shoal.api.reading.pseudo_elements import attribute

if TYPE_CHECKING:
    from shoal.api.page import Page

MOST_SECONDS = 10
"""A page that waits longer is one to be read."""

LOOKED_AT = 65_536
"""Bytes from the beginning of a page in which it says so."""

_CONTENT = re.compile(
    r"""(\d{1,9})[\d.]*(?:\s*[;,]\s*|\s+)(?:url\s*=\s*)?+(?:"([^"]*)(?:".*)?|'([^']*)(?:'.*)?|([^"'].*|))""",
    re.IGNORECASE | re.DOTALL,
)
_INSIDE = frozenset({"noscript", "template"})


def refresh_url(page: Page) -> str | None:
    """The URL that a page leads to, in its normal form; None = it stays, reloads itself, or waits for long."""
    if b"refresh" not in page.body[:LOOKED_AT].lower():
        return None
    for meta in page.css('meta[http-equiv="refresh" i]'):
        said = _CONTENT.fullmatch((attribute(meta, "content") or "")[:10_000].strip())
        if said is not None and int(said[1]) <= MOST_SECONDS and not _is_inside(meta):
            url = page.url_for(said[2] or said[3] or said[4] or page.url)
            return None if url == page.url else url
    return None


def _is_inside(meta: LexborNode) -> bool:
    above = meta.parent
    return above is not None and above.tag in _INSIDE
