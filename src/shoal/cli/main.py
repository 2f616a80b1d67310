"""The command line, put together."""

import sys
from typing import Annotated

import typer

from shoal import __version__
from shoal.cli import dead, exits, items, keys, runs, sites
from shoal.cli.audit import audit_
from shoal.cli.changes import changes
from shoal.cli.doctor import doctor
from shoal.cli.explain import explain_
from shoal.cli.frame import framed
from shoal.cli.init import init
from shoal.cli.move import move
from shoal.cli.run import run
from shoal.cli.scrapers import scrapers
from shoal.cli.serve import serve
from shoal.cli.sitemap import sitemap
from shoal.cli.worker import worker

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
    _debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks. May stand anywhere.")] = False,
) -> None:
    """Shoal: a polite, durable web scraper. One script tonight, or a fleet, with the same code.

    Begin with `shoal init books`, then `shoal run books/books.py -o books.jsonl`.
    """


app.command()(init)
app.command()(run)
app.command()(worker)
app.command()(serve)
app.add_typer(keys.app, name="keys")
app.command()(runs.runs)
app.command()(runs.stats)
app.command()(runs.cancel)
app.command()(runs.pause)
app.command()(runs.resume)
app.command()(move)
app.add_typer(dead.app, name="dead")
app.command()(items.items)
app.command("export")(items.export_)
app.command()(changes)
app.command()(scrapers)
app.command()(sites.sites)
app.add_typer(exits.app, name="exits")
app.command("explain")(explain_)
app.command("audit")(audit_)
app.command()(sitemap)
app.command()(doctor)


def main() -> None:
    """Entry of the console script."""
    sys.exit(framed(app, sys.argv[1:]))
