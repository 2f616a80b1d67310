"""Which forms there are, by the suffix of a file: the one place that knows."""

from __future__ import annotations

from enum import StrEnum
from importlib.util import find_spec
from typing import BinaryIO

from shoal.errors import UsageError
from shoal.runs.export.formats.csv_table import CSVWriter
from shoal.runs.export.formats.json_text import JSONArrayWriter, JSONLinesWriter
from shoal.runs.export.formats.protocol import ItemWriter
from shoal.runs.export.records import Columns
from shoal.runs.export.survey import Survey


class Format(StrEnum):
    """How items are written. The value is also the suffix of such a file, without its dot."""

    JSONL = "jsonl"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"
    XML = "xml"


SURVEYED = frozenset({Format.CSV, Format.PARQUET})
"""They begin with their columns, so that these must be known."""

APPENDED = frozenset({Format.JSONL, Format.CSV})
"""More can be written behind what is there; so they can be written live, too."""

NEEDS = {Format.PARQUET: ("pyarrow", "export")}
"""Library and extra."""


def writer_for(
    format_: Format, stream: BinaryIO, columns: Columns | None, found: Survey | None, *, header: bool = True
) -> ItemWriter:
    """The writer of a form. `found`: for those that are SURVEYED. `header`: False = the file has its columns."""
    match format_:
        case Format.JSONL:
            return JSONLinesWriter(stream, columns)
        case Format.JSON:
            return JSONArrayWriter(stream, columns)
        case Format.XML:
            from shoal.runs.export.formats.xml_document import XMLWriter  # noqa: PLC0415 - seldom asked for

            return XMLWriter(stream, columns)
        case Format.CSV:
            assert found is not None  # noqa: S101 - SURVEYED says so
            return CSVWriter(stream, found.columns, header=header)
        case Format.PARQUET:
            assert found is not None  # noqa: S101 - SURVEYED says so
            from shoal.runs.export.formats.parquet_file import ParquetWriter  # noqa: PLC0415 - its library is an extra

            return ParquetWriter(stream, found.kinds)


def need(what: str, library: str, extra: str) -> None:
    """Raises UsageError, one sentence with the extra to install, if the library is not there."""
    if find_spec(library) is None:
        raise UsageError(f"{what} needs the library {library!r}. Install it with: pip install 'shoal[{extra}]'.")
