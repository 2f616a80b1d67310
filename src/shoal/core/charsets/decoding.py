"""From bytes to text the way a browser does it: what the page says about itself, then what its bytes look like."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from shoal.core.charsets.labels import USER_DEFINED, codec_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_PRESCAN = 4096
"""A <meta> that names the charset stands within this many bytes."""

_FALLBACK = "cp1252"
_PRIVATE = {octet: 0xF700 + octet for octet in range(0x80, 0x100)}

_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe\0\0", "utf-32-le"), (b"\0\0\xfe\xff", "utf-32-be"),
          (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))  # fmt: skip
# No two neighbours of a pattern take the same characters: then it reads them once, however a stranger repeats them.
_OF_HEADER = re.compile(r"""charset\s*=[\s"']*([^\s;,"']+)""", re.IGNORECASE)
_COMMENT = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)
_OF_XML = re.compile(rb"""\s*<\?xml\s[^>]*?encoding\s*=\s*["']([^"'\s>]+)""", re.IGNORECASE)
_META = re.compile(rb"<meta[\s/]([^>]*)", re.IGNORECASE)
_OF_META = re.compile(rb"""charset\s*=[\s"']*([^\s"'/>;]+)""", re.IGNORECASE)


def decode(body: bytes, headers: Mapping[str, str]) -> str:
    """The body as text. Never raises: what cannot be read becomes U+FFFD.

    A byte order mark decides. Without one, the first of these that all bytes agree with: the charset of Content-Type, a
    <meta> or XML declaration in the first 4 KB, and if neither is there UTF-8, Windows-1252. An unknown name counts as
    not there. `headers` is expected to find `Content-Type` in any case of letters.
    """
    return decode_as(body, headers)[0]


def decode_as(body: bytes, headers: Mapping[str, str]) -> tuple[str, str]:
    """As `decode`, and the codec that was used."""
    for mark, encoding in _MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(encoding, "replace"), encoding
    said = _of_header(headers.get("Content-Type"))
    if said is not None and (text := _strictly(body, said)) is not None:
        return text, said
    declared = _of_markup(body) or said or "utf-8"
    if (text := _strictly(body, declared)) is not None:
        return text, declared
    last = said or _of_markup(body) or _FALLBACK
    return _read(body, last, "replace"), last


def _read(body: bytes, codec: str, errors: str) -> str:
    if codec == USER_DEFINED:
        return body.decode("latin-1").translate(_PRIVATE)
    return body.decode(codec, errors)


def _strictly(body: bytes, codec: str) -> str | None:
    try:
        return _read(body, codec, "strict")
    except UnicodeError:
        return None


def _of_header(content_type: str | None) -> str | None:
    found = None if content_type is None else _OF_HEADER.search(content_type)
    return None if found is None else codec_of(found[1])


def _of_markup(body: bytes) -> str | None:
    """Of several that are named, the first that there is. Markup that could be read as ASCII is not UTF-16, whatever it
    says (the WHATWG rule)."""
    head = body[:_PRESCAN]
    if b"<?xml" not in head and b"charset" not in head.lower():
        return None
    head = _COMMENT.sub(b"", head)
    metas = (found for tag in _META.finditer(head) for found in _OF_META.finditer(tag[1]))
    named = [found[1] for found in (_OF_XML.match(head), *metas) if found]
    for label in named:
        codec = codec_of(label.decode("latin-1"))
        if codec is not None:
            return "utf-8" if codec.startswith(("utf-16", "utf-32")) else codec
    return None
