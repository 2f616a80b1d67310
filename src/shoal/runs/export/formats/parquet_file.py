"""`.parquet`: a typed column for each key, by pyarrow; lists and objects as JSON text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, BinaryIO

import pyarrow as pa  # type: ignore[import-untyped]
from pyarrow import parquet

from shoal.frontier.contract.reader import Item
from shoal.runs.export.records import ColumnKind, cell_of, record_of

ROWS_AT_ONCE = 10_000
"""The rows of one group: so many are held in memory."""

_TYPES = {
    ColumnKind.BOOLEAN: pa.bool_(),
    ColumnKind.INTEGER: pa.int64(),
    ColumnKind.NUMBER: pa.float64(),
    ColumnKind.TEXT: pa.string(),
    ColumnKind.JSON: pa.string(),
}


class ParquetWriter:
    """`kinds`: the columns, and what is in each."""

    def __init__(self, stream: BinaryIO, kinds: Mapping[str, ColumnKind]) -> None:
        self._kinds = kinds
        self._schema = pa.schema([(name, _TYPES[kind]) for name, kind in kinds.items()])
        self._file = parquet.ParquetWriter(stream, self._schema, compression="zstd")
        self._rows: list[dict[str, Any]] = []

    def add(self, item: Item) -> None:
        self._rows.append(record_of(item, tuple(self._kinds)))
        if len(self._rows) >= ROWS_AT_ONCE:
            self._write()

    def flush(self) -> None: ...

    def close(self) -> None:
        if self._rows:
            self._write()
        self._file.close()

    def _write(self) -> None:
        columns = [
            pa.array([_value(row[name], kind) for row in self._rows], _TYPES[kind])
            for name, kind in self._kinds.items()
        ]
        self._file.write_table(pa.Table.from_arrays(columns, schema=self._schema))
        self._rows.clear()


def _value(value: object, kind: ColumnKind) -> object:
    if value is None:
        return None
    if kind in (ColumnKind.TEXT, ColumnKind.JSON):
        return cell_of(value)
    return float(value) if kind is ColumnKind.NUMBER else value  # type: ignore[arg-type]  # the survey saw numbers only
