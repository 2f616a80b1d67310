"""`shoal items` and `shoal export`: what a run has found."""

import sys
from collections.abc import AsyncIterator
from typing import Annotated

import typer

from shoal.cli.output.exit_codes import say
from shoal.cli.output.text import count, plain
from shoal.cli.running.find_store import find_run, with_engine
from shoal.cli.running.shared_options import ConfigOption, EngineOption, JsonOption, RunArgument
from shoal.core.url import without_credentials
from shoal.frontier.contract.engine import Engine
from shoal.frontier.contract.reader import Item
from shoal.runs.export import STDOUT, Format, ItemSource, export, items_of, output_for


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
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="A .jsonl or .csv file; - = stdout.")],
    format_: Annotated[
        Format | None, typer.Option("--format", metavar="jsonl|csv", help="Instead of what the file's suffix says.")
    ] = None,
    engine: EngineOption = None,
    config: ConfigOption = None,
) -> None:
    """Write the items of a run to a file. The file appears when it is complete, and replaces one of that name.

    Values are written as they are: a text that begins with `=` may be taken for a formula by a spreadsheet.

    Example:

        shoal export last -o books.csv
    """
    target = output_for(output, format_)

    async def work(store: Engine) -> None:
        found = await find_run(store.reader, run)
        number = await export(items_of(store.reader, found.run_id), target)
        if found.counters.remaining:
            say(f"The run {found.run_id} is not finished; {count(found.counters.remaining, 'task')} remain.")
        if output != STDOUT:
            say(f"Wrote {count(number, 'item')} to {output}.")

    with_engine(engine, config, work)


async def _first(source: ItemSource, limit: int | None) -> AsyncIterator[Item]:
    number = 0
    async for item in source():
        if number == limit:
            return
        yield item
        number += 1
