"""JSON: one object per line (`.jsonl`), or one array of objects (`.json`)."""

from __future__ import annotations

from typing import BinaryIO

from shoal.frontier.contract.reader import Item
from shoal.runs.export.records import Columns, encoder_of


class JSONLinesWriter:
    """`.jsonl`: one object per line, as the handler yielded it."""

    def __init__(self, stream: BinaryIO, columns: Columns | None) -> None:
        self._stream = stream
        self._encode = encoder_of(columns)

    def add(self, item: Item) -> None:
        self._stream.write(self._encode(item))
        self._stream.write(b"\n")

    def flush(self) -> None:
        self._stream.flush()

    def close(self) -> None: ...


class JSONArrayWriter:
    """`.json`: one array, an object per line."""

    def __init__(self, stream: BinaryIO, columns: Columns | None) -> None:
        self._stream = stream
        self._encode = encoder_of(columns)
        self._before = b"[\n"

    def add(self, item: Item) -> None:
        self._stream.write(self._before)
        self._stream.write(self._encode(item))
        self._before = b",\n"

    def flush(self) -> None: ...

    def close(self) -> None:
        self._stream.write(b"[]\n" if self._before == b"[\n" else b"\n]\n")
