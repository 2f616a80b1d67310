"""The three encodings in which HTML forms are sent: urlencoded, multipart (with files), and text/plain."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any
from urllib.parse import quote_plus

import msgspec

URLENCODED = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
PLAIN = "text/plain"

_LINE_BREAK = re.compile(r"\r\n|\r|\n")
_QUOTED = {'"': "%22", "\r": "%0D", "\n": "%0A"}


class FormFile(msgspec.Struct, frozen=True):
    """A file to be sent with a form: `form={"photo": FormFile("cat.png", content, "image/png")}`."""

    name: str
    content: bytes
    content_type: str = "application/octet-stream"


FormEntry = tuple[str, str | FormFile]
"""One field of a form on its way, of which several may have the same name."""

FormFields = Mapping[str, Any] | Sequence[tuple[str, Any]]


def entries_of(fields: FormFields) -> list[FormEntry]:
    """Fields as entries: a value is a text, a number, a FormFile, a list of these, or None (not sent).

    Raises ValueError for all else, naming the field.
    """
    pairs = fields.items() if isinstance(fields, Mapping) else fields
    try:
        named = [(name, value) for name, value in pairs]
    except (TypeError, ValueError):
        raise ValueError(f"form takes a mapping of names to values, or pairs of these, not {fields!r}") from None
    return [(text_of(name, name), each) for name, value in named for each in values_of(name, value)]


def values_of(name: object, value: Any) -> list[str | FormFile]:
    """What is sent for one field: nothing for None, each of a list, a number as its text."""
    if value is None:
        return []
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping | FormFile):
        return [each if isinstance(each, FormFile) else text_of(name, each) for each in value]
    return [value if isinstance(value, FormFile) else text_of(name, value)]


def text_of(name: object, value: object) -> str:
    """A value as the text that is sent. Raises ValueError for what has no obvious one."""
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise ValueError(f"the field {name!r} of a form cannot be {value!r}: it takes texts, numbers, FormFiles and lists")


def encoded_form(entries: Sequence[FormEntry], enctype: str = URLENCODED, charset: str = "utf-8") -> tuple[bytes, str]:
    """The body, and its Content-Type. Characters that the charset does not have are sent as `&#…;`, as browsers do."""
    if enctype == MULTIPART:
        return _multipart(entries, charset)
    if enctype == PLAIN:
        lines = "".join(f"{_broken(name)}={_broken(_named(value))}\r\n" for name, value in entries)
        return _in(lines, charset), PLAIN
    return urlencoded(entries, charset).encode(), URLENCODED


def urlencoded(entries: Sequence[FormEntry], charset: str = "utf-8") -> str:
    """The entries as a query. Of a file only its name is sent."""
    return "&".join(f"{_escaped(name, charset)}={_escaped(_named(value), charset)}" for name, value in entries)


def _multipart(entries: Sequence[FormEntry], charset: str) -> tuple[bytes, str]:
    parts = []
    for name, value in entries:
        head = _in(f'Content-Disposition: form-data; name="{_quoted(_broken(name))}"', charset)
        if isinstance(value, FormFile):
            kind = _LINE_BREAK.sub(" ", value.content_type)
            head += _in(f'; filename="{_quoted(value.name)}"\r\nContent-Type: {kind}', charset)
        content = value.content if isinstance(value, FormFile) else _in(_broken(value), charset)
        parts.append(head + b"\r\n\r\n" + content + b"\r\n")
    whole = b"".join(parts)
    boundary = b"----shoal" + sha256(whole).hexdigest()[:32].encode()  # the same form is the same request
    while boundary in whole:
        boundary = b"----shoal" + sha256(boundary + whole).hexdigest()[:32].encode()
    body = b"".join(b"--" + boundary + b"\r\n" + part for part in parts) + b"--" + boundary + b"--\r\n"
    return body, f"{MULTIPART}; boundary={boundary.decode()}"


def _in(text: str, charset: str) -> bytes:
    return text.encode(charset, "xmlcharrefreplace")


def _escaped(text: str, charset: str) -> str:
    return quote_plus(_in(_broken(text), charset), safe="*").replace("~", "%7E")


def _broken(text: str) -> str:
    """With the line breaks of the web."""
    return _LINE_BREAK.sub("\r\n", text)


def _quoted(text: str) -> str:
    return re.sub('["\r\n]', lambda found: _QUOTED[found[0]], text)


def _named(value: str | FormFile) -> str:
    return value.name if isinstance(value, FormFile) else value
