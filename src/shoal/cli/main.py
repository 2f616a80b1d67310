"""The command line, put together."""

import sys
from typing import Annotated

import typer

from shoal import __version__
from shoal.cli.commands.politeness import exits, sites
from shoal.cli.commands.politeness.audit import audit_
from shoal.cli.commands.politeness.explain import explain_
from shoal.cli.commands.project.doctor import doctor
from shoal.cli.commands.project.init import init
from shoal.cli.commands.project.scrapers import scrapers
from shoal.cli.commands.runs import dead, items, stats, steer
from shoal.cli.commands.runs.changes import changes
from shoal.cli.commands.runs.move import move
from shoal.cli.commands.trying.fetch import fetch
from shoal.cli.commands.trying.shell import shell
from shoal.cli.commands.trying.try_handler import try_
from shoal.cli.commands.work import keys
from shoal.cli.commands.work.run import run
from shoal.cli.commands.work.serve import serve
from shoal.cli.commands.work.sitemap import sitemap
from shoal.cli.commands.work.worker import worker
from shoal.cli.output.exit_codes import framed

app = typer.Typer(
    name="shoal",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"shoal {__version__}")
        raise typer.Exit


@app.callback()
def root(
    _version_wanted: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and end.")
    ] = False,
    _debug: Annotated[
        bool, typer.Option("--debug", help="Show tracebacks, those of handlers too. May stand anywhere.")
    ] = False,
) -> None:
    """Shoal: a polite, durable web scraper. One script tonight, or a fleet, with the same code.

    Begin with `shoal init books`, then `shoal run books/books.py -o books.jsonl`.
    """


app.command()(init)
app.command()(run)
app.command()(worker)
app.command("try")(try_)
app.command()(shell)
app.command()(fetch)
app.command()(serve)
app.add_typer(keys.app, name="keys")
app.command()(stats.runs)
app.command()(stats.stats)
app.command()(steer.cancel)
app.command()(steer.pause)
app.command()(steer.resume)
app.command()(move)
app.add_typer(dead.app, name="dead")
app.command()(items.items)
app.command("export")(items.export_)
app.command()(changes)
app.command()(scrapers)
app.add_typer(sites.app, name="sites")
app.add_typer(exits.app, name="exits")
app.command("explain")(explain_)
app.command("audit")(audit_)
app.command()(sitemap)
app.command()(doctor)


def main() -> None:
    """Entry of the console script."""
    sys.exit(framed(app, sys.argv[1:]))
