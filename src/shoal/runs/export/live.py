"""Items out of a run while it works: written as they are settled, for readers that follow."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from shoal.core.clock import Clock
from shoal.delivery.waiting import news_or_time
from shoal.frontier.contract.reader import Item, Reader
from shoal.runs.export.output import Output
from shoal.runs.export.sink import ItemSink, opened_output
from shoal.runs.export.survey import as_chosen

LOOK_EVERY = 1.0
"""Seconds between two looks for new items."""


class LiveExport:
    """Writes the items of a run to some outputs, each once, from the first one on. `written`: how many so far."""

    def __init__(self, reader: Reader, run_id: str, sinks: Sequence[ItemSink]) -> None:
        self._reader = reader
        self._run_id = run_id
        self._sinks = sinks
        self._cursor = 0
        self._taken = 0
        self.written = 0

    async def catch_up(self) -> None:
        """Write all that is there now and was not written yet."""
        more = True
        while more:
            items, more = await self._next()
            for sink in self._sinks:
                await sink.write(items)
            self.written += len(items)

    async def keep_writing(self, enough: asyncio.Event, clock: Clock) -> None:
        """The same again and again, and once more when it is enough: nothing that was read is left unwritten."""
        over = False
        while not over:
            await self.catch_up()
            over = await news_or_time(enough, LOOK_EVERY, clock)
        await self.catch_up()

    async def _next(self) -> tuple[Sequence[Item], bool]:
        """Some items, and whether there may be more now.

        `_taken`: items behind the cursor that were written already, as a last page has no cursor that leads on.
        """
        page = await self._reader.items(self._run_id, self._cursor)
        items = page.items[self._taken :]
        if page.cursor is None:
            self._taken = len(page.items)
            return items, False
        self._cursor, self._taken = page.cursor, 0
        return items, True


@asynccontextmanager
async def opened_live(reader: Reader, run_id: str, outputs: Sequence[Output]) -> AsyncIterator[LiveExport]:
    """A live export to these outputs, which are complete, as far as was caught up, when the block has ended."""
    async with AsyncExitStack() as stack:
        sinks = []
        for output in outputs:
            found = None if output.columns is None else as_chosen(output.columns)
            sinks.append(await stack.enter_async_context(opened_output(output, run_id, found)))
        yield LiveExport(reader, run_id, sinks)


@asynccontextmanager
async def written_meanwhile(
    reader: Reader, run_id: str, outputs: Sequence[Output], clock: Clock
) -> AsyncIterator[LiveExport | None]:
    """Those of the outputs that are live are written while the block goes on, and caught up when it has ended.

    What goes wrong with writing is raised then. None = none of them is live.
    """
    live = [output for output in outputs if output.live]
    if not live:
        yield None
        return
    async with opened_live(reader, run_id, live) as export:
        enough = asyncio.Event()
        writing = asyncio.create_task(export.keep_writing(enough, clock))
        try:
            yield export
        finally:
            enough.set()
            await writing
