"""`shoal items` and `shoal export`: what a run has found."""

import sys
from collections.abc import AsyncIterator, Sequence
from typing import Annotated

import typer

from shoal.cli.output.exit_codes import say
from shoal.cli.output.text import count, plain
from shoal.cli.running.find_store import find_run, with_engine
from shoal.cli.running.shared_options import (
    FORMATS,
    AppendOption,
    ColumnsOption,
    ConfigOption,
    EngineOption,
    FormatOption,
    JsonOption,
    ReplaceOption,
    RunArgument,
    output_options,
)
from shoal.core.clock import SystemClock
from shoal.core.url import without_credentials
from shoal.frontier.contract.engine import Engine
from shoal.frontier.contract.frontier import Run
from shoal.frontier.contract.reader import Item
from shoal.runs.export.export import export, items_of
from shoal.runs.export.live import written_meanwhile
from shoal.runs.export.output import Output, outputs_for
from shoal.runs.export.survey import ItemSource
from shoal.runs.follow import followed_to_end


def items(
    run: RunArgument,
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=1, help="Show at most this many.")] = None,
    engine: EngineOption = None,
    config: ConfigOption = None,
    as_data: JsonOption = False,
) -> None:
    """Print the items of a run, one JSON object per line, with the page each came from before it.

    With --json, or when the output is not a terminal, only the objects.

    Example:

        shoal items last -n 5
    """
    bare = as_data or not sys.stdout.isatty()

    async def work(store: Engine) -> None:
        found = await find_run(store.reader, run)
        shown = 0
        async for item in _first(items_of(store.reader, found.run_id), limit):
            body = bytes(item.body).decode()
            sys.stdout.write(f"{body}\n" if bare else f"{plain(without_credentials(item.url))}\n  {plain(body)}\n")
            shown += 1
        if not shown:
            left = f"; {found.counters.remaining:,} tasks remain to be done" if found.counters.remaining else ""
            say(f"The run {found.run_id} has no items{left}.")

    with_engine(engine, config, work)


def export_(
    run: RunArgument,
    output: Annotated[
        list[str],
        typer.Option(
            "--output", "-o", metavar="OUTPUT", help=f"{FORMATS}; - = stdout; s3://…; sqlite:///x.db#table. Repeatable."
        ),
    ],
    format_: FormatOption = None,
    columns: ColumnsOption = None,
    replace: ReplaceOption = False,
    append: AppendOption = False,
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on with it until the run ends (.jsonl, .csv, stdout, tables).")
    ] = False,
    engine: EngineOption = None,
    config: ConfigOption = None,
) -> None:
    """Write the items of a run: to files, to object storage, to tables of your own database.

    A file appears when it is complete. One that exists already is replaced or added to if you say so, and otherwise
    refused. Into a table each item goes once, however often it is exported. Values are written as they are: a text that
    begins with `=` may be taken for a formula by a spreadsheet.

    Example:

        shoal export last -o books.csv --columns title,price
        shoal export last -o postgresql://me@localhost/library#books
        shoal export last -o - --follow
    """
    targets = outputs_for(output, output_options(format_, columns, replace=replace, append=append, live=follow))

    async def work(store: Engine) -> None:
        found = await find_run(store.reader, run)
        if follow:
            await _follow(store, found, targets)
            return
        for target in targets:
            number = await export(items_of(store.reader, found.run_id), target, found.run_id)
            if target.place is not None:
                say(f"Wrote {count(number, 'item')} to {target.shown}.")
        if found.counters.remaining:
            say(f"The run {found.run_id} is not finished; {count(found.counters.remaining, 'task')} remain.")

    with_engine(engine, config, work)


async def _follow(store: Engine, run: Run, targets: Sequence[Output]) -> None:
    """Write what comes until the run ends, or the user has seen enough: what was read is written in any case."""
    clock = SystemClock()
    async with written_meanwhile(store.reader, run.run_id, targets, clock) as live:
        await followed_to_end(store.reader, run.run_id, clock)
    places = " and ".join(target.shown for target in targets if target.place is not None)
    if live is not None and places:
        say(f"Wrote {count(live.written, 'item')} to {places}.")


async def _first(source: ItemSource, limit: int | None) -> AsyncIterator[Item]:
    number = 0
    async for item in source():
        if number == limit:
            return
        yield item
        number += 1
