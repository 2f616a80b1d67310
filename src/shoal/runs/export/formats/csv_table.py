"""`.csv`: one column per key that any item has, in the order the keys first appear; nested values as JSON text.

Values are written as they are: a text that begins with `=` stays so, and a spreadsheet that opens the file may take it
for a formula (import such columns as text).
"""

from __future__ import annotations

import csv
from io import TextIOWrapper
from typing import BinaryIO

from shoal.frontier.contract.reader import Item
from shoal.runs.export.records import Columns, cell_of, record_of


class CSVWriter:
    """`header`: False = the file has one already."""

    def __init__(self, stream: BinaryIO, columns: Columns, *, header: bool = True) -> None:
        self._columns = columns
        self._text = TextIOWrapper(stream, encoding="utf-8", newline="")
        self._writer = csv.writer(self._text, lineterminator="\n")
        if columns and header:
            self._writer.writerow(columns)

    def add(self, item: Item) -> None:
        record = record_of(item, self._columns)
        self._writer.writerow([cell_of(record[name]) for name in self._columns])

    def flush(self) -> None:
        self._text.flush()

    def close(self) -> None:
        self._text.flush()
        self._text.detach()


def header_of(stream: BinaryIO) -> tuple[str, ...]:
    """The columns of a CSV file that is there. Raises ValueError if it is none."""
    text = TextIOWrapper(stream, encoding="utf-8", newline="")
    try:
        return tuple(next(csv.reader(text, strict=True), ()))
    except csv.Error as error:
        raise ValueError(str(error)) from None
    finally:
        text.detach()
