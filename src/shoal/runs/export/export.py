"""Items out of a run, into an output that is either whole or as it was."""

from __future__ import annotations

from collections.abc import AsyncIterator

from shoal.frontier.contract.reader import Item, Reader
from shoal.runs.export.formats.choose import SURVEYED, Format
from shoal.runs.export.output import Output
from shoal.runs.export.places.table import UserTable
from shoal.runs.export.sink import opened_output
from shoal.runs.export.survey import ItemSource, Survey, as_chosen, survey

AT_ONCE = 1000


def items_of(reader: Reader, run_id: str) -> ItemSource:
    """The items of a run in the order they were settled, page by page."""

    async def read() -> AsyncIterator[Item]:
        cursor: int | None = 0
        while cursor is not None:
            page = await reader.items(run_id, cursor)
            for item in page.items:
                yield item
            cursor = page.cursor

    return read


async def export(source: ItemSource, output: Output, run_id: str) -> int:
    """Write all items that are there now. Answers how many. A file is complete at the end, at once."""
    found = await _surveyed(source, output)
    written, batch = 0, list[Item]()
    async with opened_output(output, run_id, found) as sink:
        async for item in source():
            if found is not None and written + len(batch) == found.count:
                break
            batch.append(item)
            if len(batch) == AT_ONCE:
                await sink.write(batch)
                written, batch = written + len(batch), []
        await sink.write(batch)
    return written + len(batch)


async def _surveyed(source: ItemSource, output: Output) -> Survey | None:
    """The columns, where they must be known before anything is written."""
    if output.format is Format.CSV and output.columns is not None:
        return as_chosen(output.columns)
    return (
        await survey(source, output.columns)
        if output.format in SURVEYED or isinstance(output.place, UserTable)
        else None
    )
