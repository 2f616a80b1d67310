"""An item as a record: its keys, or those that were chosen, in the order in which they were chosen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any

import msgspec

from shoal.frontier.contract.reader import Item

URL, GROUP = "_url", "_group"
"""Columns that can be chosen besides an item's own keys: the page that it came from, and that page's group."""

_decode = msgspec.json.Decoder(dict[str, Any]).decode

Columns = Sequence[str]
"""The keys to write, in this order."""


class ColumnKind(StrEnum):
    """What all values of a column are, where it is not None. `TEXT`: also where they are of several kinds."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    NUMBER = "number"
    TEXT = "text"
    JSON = "json"
    """Lists and objects."""


def record_of(item: Item, columns: Columns | None = None) -> dict[str, Any]:
    """The item. `columns`: None = its own keys; otherwise exactly these, None where it has none."""
    record = _decode(item.body)
    if columns is None:
        return record
    return {name: record[name] if name in record else _origin(item, name) for name in columns}


def encoder_of(columns: Columns | None) -> Callable[[Item], bytes]:
    """How an item becomes one line of JSON: to the byte as it was yielded, unless columns are chosen."""
    if columns is None:
        return _line
    return lambda item: msgspec.json.encode(record_of(item, columns))


def kind_of(value: object) -> ColumnKind | None:
    """What a value is; None = nothing, which fits everywhere."""
    match value:
        case None:
            return None
        case bool():
            return ColumnKind.BOOLEAN
        case int():
            return ColumnKind.INTEGER if -(2**63) <= value < 2**63 else ColumnKind.TEXT
        case float():
            return ColumnKind.NUMBER
        case str():
            return ColumnKind.TEXT
        case _:
            return ColumnKind.JSON


def common_kind(one: ColumnKind | None, other: ColumnKind | None) -> ColumnKind | None:
    """What values of both kinds are."""
    if one is None or other is None or one is other:
        return one or other
    return ColumnKind.NUMBER if {one, other} == {ColumnKind.INTEGER, ColumnKind.NUMBER} else ColumnKind.TEXT


def cell_of(value: object) -> str:
    """A value as text: text as it is, None as nothing, all else as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _line(item: Item) -> bytes:
    body = bytes(item.body)
    return msgspec.json.format(body, indent=-1) if b"\n" in body else body


def _origin(item: Item, name: str) -> str | None:
    return {URL: item.url, GROUP: item.group}.get(name)
