"""`shoal sites`, `shoal sites release`: the clocks that politeness goes by, and how a site is let go."""

from typing import Annotated

import typer

from shoal.cli.output.exit_codes import say
from shoal.cli.output.text import duration, moment, print_json, print_line, table
from shoal.cli.running.find_store import is_absent, with_engine
from shoal.cli.running.shared_options import ConfigOption, EngineOption, JsonOption
from shoal.config.load import load
from shoal.core.clock import iso
from shoal.frontier.contract.engine import Engine
from shoal.frontier.contract.reader import SiteRecord

app = typer.Typer(help="Sites: their clocks, and what holds them back.", invoke_without_command=True)


@app.callback()
def sites(
    context: typer.Context,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Show at most this many.")] = 100,
    engine: EngineOption = None,
    config: ConfigOption = None,
    as_data: JsonOption = False,
) -> None:
    """List the sites that have work waiting: how much, how often they may be visited, and when next.

    Example:

        shoal sites --limit 20
    """
    if context.invoked_subcommand is not None:
        return

    async def work(store: Engine) -> list[SiteRecord]:
        return list(await store.reader.sites(limit))

    found = [] if is_absent(load(config, {"engine": engine})) else with_engine(engine, config, work)
    if as_data:
        print_json([_as_json(site) for site in found])
    elif not found:
        say("No site has work waiting. Start a run with `shoal run file.py`.")
    else:
        rows = [
            (site.site, site.waiting, site.leased, duration(site.delay / 1000), moment(site.next_at), site.penalty)
            for site in found
        ]
        print_line(table(("site", "waiting", "in work", "delay", "next", "rate limits"), rows))


@app.command()
def release(
    site: Annotated[str, typer.Argument(metavar="SITE", help="A site, from `shoal sites`.")],
    engine: EngineOption = None,
    config: ConfigOption = None,
) -> None:
    """Let a site go that is held back: rate limits and bans of all its exits, and that it was found to be down.

    Its pace stays as it is. Its pages that were set back wait no longer.

    Example:

        shoal sites release shop.example
    """
    from shoal.runs.release_site import release_site  # noqa: PLC0415 - brings aiohttp

    with_engine(engine, config, lambda store: release_site(store, site))
    say(f"{site} is no longer held back.")


def _as_json(site: SiteRecord) -> dict[str, object]:
    return {
        "site": site.site,
        "waiting": site.waiting,
        "leased": site.leased,
        "delay": site.delay / 1000,
        "next_at": iso(site.next_at),
        "penalty": site.penalty,
    }
