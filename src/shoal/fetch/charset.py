"""From bytes to text the way a browser does it: what the page says about itself, then what its bytes look like."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from w3lib.encoding import html_body_declared_encoding, http_content_type_encoding, read_bom, to_unicode

if TYPE_CHECKING:
    from collections.abc import Mapping

_PRESCAN = 4096
"""A <meta> that names the charset stands within this many bytes."""

_NOT_OF_THE_WEB = frozenset({"idna", "punycode", "unicode_escape", "unicode-escape", "raw_unicode_escape"})
"""Codecs that Python counts as text encodings and no page is written in. One of them takes quadratic time."""

_FALLBACK = "cp1252"


def decode(body: bytes, headers: Mapping[str, str]) -> str:
    """The body as text. Never raises: what cannot be read becomes U+FFFD.

    A byte order mark decides. Without one, the first of these that all bytes agree with: the charset of Content-Type, a
    <meta> or XML declaration in the first 4 KB, and if neither is there UTF-8, Windows-1252. An unknown name counts as
    not there. `headers` is expected to find `Content-Type` in any case of letters.
    """
    mark, bom = read_bom(body)
    if mark is not None and bom is not None:
        return body[len(bom) :].decode(mark, "replace")
    said = _of_header(headers.get("Content-Type"))
    if said is not None and (text := _strictly(body, said)) is not None:
        return text
    declared = _of_markup(body) or said
    if (text := _strictly(body, declared or "utf-8")) is not None:
        return text
    return to_unicode(body, said or declared or _FALLBACK)


def _strictly(body: bytes, encoding: str) -> str | None:
    try:
        return body.decode(encoding)
    except UnicodeError:
        return None


@lru_cache(maxsize=256)
def _of_header(content_type: str | None) -> str | None:
    return _usable(http_content_type_encoding(content_type))


def _of_markup(body: bytes) -> str | None:
    head = body[:_PRESCAN].lower()
    if b"charset" not in head and b"<?xml" not in head:
        return None
    declared = _usable(html_body_declared_encoding(head))
    # Markup that could be read as ASCII is not UTF-16, whatever it says (the WHATWG rule).
    return "utf-8" if declared is not None and declared.startswith(("utf-16", "utf-32")) else declared


@lru_cache(maxsize=256)
def _usable(encoding: str | None) -> str | None:
    if encoding is None or encoding in _NOT_OF_THE_WEB:
        return None
    try:
        b"a".decode(encoding, "replace")
    except (LookupError, UnicodeError):  # a codec, but not one between bytes and text
        return None
    return encoding
