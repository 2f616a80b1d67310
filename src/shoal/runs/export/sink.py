"""An open output: items go in, batch by batch, whatever its place and form."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol

from shoal.errors import UsageError
from shoal.frontier.contract.reader import Item
from shoal.runs.export.compression import compressed, decompressed
from shoal.runs.export.formats.choose import Format, writer_for
from shoal.runs.export.formats.csv_table import header_of
from shoal.runs.export.formats.protocol import ItemWriter
from shoal.runs.export.output import Output
from shoal.runs.export.places.local_file import IfExists, has_content, writing, writing_live
from shoal.runs.export.places.object_storage import StoredObject
from shoal.runs.export.places.table import OpenTable, TableRowMaker, TableRows, UserTable
from shoal.runs.export.records import ColumnKind
from shoal.runs.export.survey import Survey


class ItemSink(Protocol):
    """Takes items. Live, they can be read when `write` has ended; else, when all have been written."""

    async def write(self, items: Sequence[Item]) -> None: ...


class _StreamSink:
    def __init__(self, writer: ItemWriter, *, live: bool) -> None:
        self._writer = writer
        self._live = live

    async def write(self, items: Sequence[Item]) -> None:
        for item in items:
            self._writer.add(item)
        if self._live:
            self._writer.flush()


class _TableSink:
    def __init__(self, rows: TableRows, maker: TableRowMaker) -> None:
        self._rows = rows
        self._maker = maker

    async def write(self, items: Sequence[Item]) -> None:
        await self._rows.insert([self._maker.row(item) for item in items])


@asynccontextmanager
async def opened_output(output: Output, run_id: str, found: Survey | None) -> AsyncIterator[ItemSink]:
    """The output, ready for items; complete when the block has ended well. Raises UsageError if it cannot be written.

    `found`: which columns there are, for tables and forms that must know.
    """
    if isinstance(output.place, UserTable):
        assert found is not None  # noqa: S101 - tables are surveyed, or their columns are chosen
        async with _opening(output.place)(output.place, found, live=output.live) as rows:
            yield _TableSink(rows, TableRowMaker(run_id, found.columns))
        return
    try:
        with _stream(output) as raw, compressed(raw, output.compression) as stream:
            writer = _writer(output, raw, stream, found)
            yield _StreamSink(writer, live=output.live)
            writer.close()
    except BrokenPipeError:
        raise
    except OSError as error:
        where = "Standard output" if output.place is None else f"The output {output.shown!r}"
        raise UsageError(f"{where} could not be written: {error.strerror or error}.") from error


def _opening(table: UserTable) -> OpenTable:
    if table.dialect == "sqlite":
        from shoal.runs.export.places.sqlite_table import open_sqlite_table  # noqa: PLC0415 - for those who have one

        return open_sqlite_table
    from shoal.runs.export.places.postgres_table import open_postgres_table  # noqa: PLC0415 - its driver is an extra

    return open_postgres_table


def _stream(output: Output) -> AbstractContextManager[BinaryIO]:
    if isinstance(output.place, StoredObject):
        return output.place.writing()
    assert not isinstance(output.place, UserTable)  # noqa: S101 - see above
    return (writing_live if output.live else writing)(output.place, output.if_exists)


def _writer(output: Output, raw: BinaryIO, stream: BinaryIO, found: Survey | None) -> ItemWriter:
    path = output.place if isinstance(output.place, Path) else None
    adding = path is not None and output.if_exists is IfExists.APPEND and has_content(path)
    if path is not None and adding:
        if output.compression is None and not _ends_a_line(path):
            raw.write(b"\n")
        if output.format is Format.CSV and found is not None:
            found = _as_there(output, path, found)
    return writer_for(output.format, stream, output.columns, found, header=not adding)


def _ends_a_line(path: Path) -> bool:
    with path.open("rb") as old:
        old.seek(-1, 2)
        return old.read() == b"\n"


def _as_there(output: Output, path: Path, found: Survey) -> Survey:
    """The columns of the file that is added to, if they can hold what is to come."""
    with _content(output, path) as content:
        try:
            there = header_of(content)
        except (ValueError, EOFError) as error:
            raise UsageError(f"The output {output.shown!r} is no CSV file that can be added to: {error}.") from None
    lacking = [name for name in found.columns if name not in there]
    if lacking:
        raise UsageError(
            f"The output {output.shown!r} has no column {', '.join(map(repr, lacking))}; choose --columns, "
            "or write it anew with --replace."
        )
    return Survey(dict.fromkeys(there, ColumnKind.TEXT), found.count)


@contextmanager
def _content(output: Output, path: Path) -> Iterator[BinaryIO]:
    with path.open("rb") as packed:
        yield decompressed(packed, output.compression)
