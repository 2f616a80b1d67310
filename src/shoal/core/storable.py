"""Input validation at the door: what every store can hold, and how much of it. Pure; the same on all engines.

A store that meets what it cannot hold refuses the whole transaction, and with it what others had in it. So each way in
asks here first: submissions, links, start functions, items, lists of URLs. The limits are far above what pages need and
far below what any store takes; docs/reference/limits.md lists them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from shoal.errors import UsageError

MAX_URL = 8192
"""Characters. Longer URLs are refused: they are traps or mistakes, and no server needs to accept them."""

MAX_HOST = 253
MAX_HOST_LABEL = 63
"""Characters of a host, and between two of its dots: what the name service has room for (RFC 1035)."""

MAX_NAME = 512
"""Characters of a group, a label, a site: what tasks are told apart by. Stores keep them in indexes."""

MAX_DATA = 1024 * 1024
MAX_HEADERS = 64 * 1024
MAX_BODY = 8 * 1024 * 1024
MAX_ITEM = 8 * 1024 * 1024
MAX_ITEMS = 64 * 1024 * 1024
"""Bytes, of one request or item as JSON; and of all items of one page."""

MAX_DEPTH = 100
"""How deep lists and objects may be nested in data and items."""

MAX_TEXT = 1000
"""Characters of a reason; what is longer is cut."""

LAST = "last"
"""Where a run is named, this means the newest one."""

NUL = "it contains a NUL character"
HALF = "it contains half a character (a lone surrogate)"

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPED_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def text_problem(text: str, most: int = MAX_NAME) -> str | None:
    """Why a store should not hold this text, as the end of a sentence; None = it may."""
    if len(text) > most:
        return f"it is {len(text):,} characters long and {most:,} is the limit"
    if "\0" in text:
        return NUL
    return None if is_storable(text) else HALF


def is_storable(text: str) -> bool:
    """Whether a store could hold this text under any name; what it cannot hold, it need not look for."""
    return "\0" not in text and (text.isascii() or not _SURROGATE.search(text))


def findable(text: str) -> str:
    """A text to look for in a store: itself; or, where no store can hold it, the empty one, which nothing is called."""
    return text if is_storable(text) else ""


def check_run_id(text: str) -> None:
    """Raises UsageError for what a new run cannot be called."""
    if text == LAST:
        raise UsageError("A run cannot be called 'last': that means the newest run. Choose another id.")
    if _RUN_ID.fullmatch(text) is None:
        raise UsageError(
            f"A run cannot be called {cleaned(text, 200)!r}: an id is 1 to 128 letters, digits, '-', '_', '.' and ':', "
            "a letter or digit first."
        )


def json_problem(encoded: bytes, most: int) -> str | None:
    """Why a store should not hold this JSON; None = it may.

    It cannot be nested deeper than it has brackets: so most is never looked through.
    """
    if len(encoded) > most:
        return f"it has {len(encoded):,} bytes as JSON and {most:,} is the limit"
    if encoded.count(b"[") + encoded.count(b"{") > MAX_DEPTH and _depth(encoded) > MAX_DEPTH:
        return f"it is nested deeper than {MAX_DEPTH} levels"
    return None


def has_nul(encoded: bytes) -> bool:
    """Whether a text in this JSON contains a NUL character."""
    return b"\\u0000" in encoded and _ESCAPED_NUL.search(encoded) is not None


def headers_problem(headers: Mapping[str, str]) -> str | None:
    """Why a request cannot have these headers; None = it can."""
    size = 0
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name):
            return f"{name[:40]!r} is no name of a header"
        if _CONTROL.search(value) or _SURROGATE.search(value):
            return f"the header {name} contains a control character or half a character"
        size += len(name) + len(value)
    return f"its headers have {size:,} characters and {MAX_HEADERS:,} is the limit" if size > MAX_HEADERS else None


def is_method(text: str) -> bool:
    """Whether this can be the method of a request."""
    return _TOKEN.fullmatch(text) is not None


def host_problem(host: str) -> str | None:
    """Why the name service has no room for this host; None = it has."""
    if len(host) <= MAX_HOST_LABEL:
        return None
    if len(host.removesuffix(".")) > MAX_HOST:
        return f"its host is {len(host):,} characters long and {MAX_HOST} is the limit"
    if max(map(len, host.split("."))) > MAX_HOST_LABEL:
        return f"a part of its host is longer than {MAX_HOST_LABEL} characters"
    return None


def cleaned(text: object, most: int = MAX_TEXT) -> str:
    """Anything as a text that every store can hold: of reasonable length and of whole characters. For what is told, and
    cannot be refused: reasons, tracebacks, what a client is told."""
    try:
        words = str(text)
    except Exception:  # noqa: BLE001 - a report must not fail because a user's __str__ does
        words = f"<{type(text).__name__} that cannot be shown>"
    if len(words) > most:
        words = f"{words[:most]}…"
    if "\0" in words:
        words = words.replace("\0", "\ufffd")
    return words if words.isascii() else words.encode("utf-8", "replace").decode()


def _depth(encoded: bytes) -> int:
    """How deep JSON is nested; brackets in texts do not count."""
    depth = deepest = 0
    in_text = escaped = False
    for byte in encoded:
        if escaped:
            escaped = False
        elif in_text:
            escaped, in_text = byte == 0x5C, byte != 0x22
        elif byte == 0x22:
            in_text = True
        elif byte in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif byte in b"]}":
            depth -= 1
    return deepest
