"""`shoal changes`: what is new, has changed or is gone."""

from typing import Annotated

import typer

from shoal.cli.output.exit_codes import say
from shoal.cli.output.text import moment, print_json, print_line, table
from shoal.cli.running.find_store import find_run, is_absent, with_engine
from shoal.cli.running.shared_options import ConfigOption, EngineOption, JsonOption
from shoal.config.load import load
from shoal.errors import UnknownRun, UsageError
from shoal.frontier.contract.engine import Engine
from shoal.insight.changes import Changes, changes_since

NOTHING = "Nothing has changed. Changes are recorded for scrapers with `changes=True`, `cache`, `every` or `volatile`."


def changes(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[SCRAPER|RUN]", help="One scraper's pages, or what one run saw. Default: all."),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="CURSOR", help="Only what came after an earlier answer, whose cursor this is."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1_000_000, help="Most changes to show at once.")] = 1000,
    engine: EngineOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show which pages are new, have changed or are gone, in the order in which that was seen.

    The cursor at the end leads on: the next call with it shows what came later, and nothing twice.

    Example:

        shoal changes
        shoal changes books --since eyJib29rcyI6M30 --json
    """

    async def work(store: Engine) -> Changes:
        known = sorted({run.scraper for run in await store.reader.runs()})
        if name is None or name in known:
            return await changes_since(store.reader, known if name is None else [name], since, most=limit)
        try:
            run = await find_run(store.reader, name)
        except UnknownRun:
            there = f" Scrapers: {', '.join(known)}." if known else ""
            raise UsageError(f"There is neither a scraper nor a run {name!r} here.{there}") from None
        return await changes_since(store.reader, [run.scraper], since, run.run_id, limit)

    if is_absent(load(config, {"engine": engine})):
        _show(Changes((), since or "", more=False), as_json=as_json)
    else:
        _show(with_engine(engine, config, work), as_json=as_json)


def _show(found: Changes, *, as_json: bool) -> None:
    if as_json:
        print_json(found.as_dict())
        return
    if not found.changes:
        say(NOTHING)
        return
    rows = [(moment(change.at), change.kind.value, change.scraper, change.url) for change in found.changes]
    print_line(table(("seen", "what", "scraper", "url"), rows))
    say(f"{'There may be more' if found.more else 'Later ones'}: --since {found.cursor}")
