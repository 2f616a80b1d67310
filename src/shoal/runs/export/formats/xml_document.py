"""`.xml`: `<items><item>…</item></items>`, an element for each key, `<value>` for each entry of a list.

A key that cannot be the name of an element is `<field name="…">`; a character that XML cannot hold is U+FFFD.
"""

from __future__ import annotations

import re
from html import escape
from typing import Any, BinaryIO

from shoal.frontier.contract.reader import Item
from shoal.runs.export.records import Columns, cell_of, record_of

_NAME = re.compile(r"(?!xml)[A-Za-z_][\w.-]*", re.ASCII | re.IGNORECASE)
_UNUSABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class XMLWriter:
    """One document; None is an empty element with `null="true"`."""

    def __init__(self, stream: BinaryIO, columns: Columns | None) -> None:
        self._stream = stream
        self._columns = columns
        stream.write(b'<?xml version="1.0" encoding="utf-8"?>\n<items>\n')

    def add(self, item: Item) -> None:
        fields = "".join(_element(name, value) for name, value in record_of(item, self._columns).items())
        self._stream.write(f"<item>{fields}</item>\n".encode())

    def flush(self) -> None: ...

    def close(self) -> None:
        self._stream.write(b"</items>\n")


def _element(name: str, value: Any) -> str:
    tag, attributes = (name, "") if _NAME.fullmatch(name) else ("field", f' name="{escape(_usable(name))}"')
    match value:
        case None:
            return f'<{tag}{attributes} null="true"/>'
        case dict():
            inner = "".join(_element(key, part) for key, part in value.items())
        case list():
            inner = "".join(_element("value", part) for part in value)
        case _:
            inner = escape(_usable(cell_of(value)), quote=False).replace("\r", "&#13;")
    return f"<{tag}{attributes}>{inner}</{tag}>"


def _usable(text: str) -> str:
    return _UNUSABLE.sub("\ufffd", text)
