"""`shoal sitemap`."""

from typing import Annotated

import typer

from shoal.api.sitemap import Sitemap, sitemap_request
from shoal.cli.running.shared_options import ConfigOption, ReplaceOption
from shoal.config.load import load
from shoal.core.clock import SystemClock
from shoal.core.url import join, normalise
from shoal.errors import UsageError
from shoal.runs.event_loop import in_loop
from shoal.runs.export.places.local_file import STDOUT, IfExists, file_for


def sitemap(
    url: Annotated[
        str, typer.Argument(metavar="URL", help="A sitemap, an index, a feed, a robots.txt, or the root of a site.")
    ],
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="DATE", help="Only what is not known to be older: 2026-05-01, or 36h, or 7d."),
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=1, help="Stop after this many.")] = None,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Write to this file; - = stdout.")
    ] = STDOUT,
    replace: ReplaceOption = False,
    config: ConfigOption = None,
    as_data: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
) -> None:
    """Print the URLs that a sitemap lists, as they are read, each with its date behind a tab where it has one.

    Indexes and robots.txt are followed, at one request per second and site, and no run is made. Settings for it are
    those of a scraper named `sitemap`. Exit code 1: some of it could not be read.

    Example:

        shoal sitemap https://news.example/robots.txt --since 7d
        shoal sitemap https://shop.example/sitemap.xml | cut -f1 | shoal run shop.py --urls-file -
    """
    from shoal.cli.output.logs import configure_logs  # noqa: PLC0415 - slow to load, too
    from shoal.cli.running.sitemap_printer import SitemapPrinter  # noqa: PLC0415 - brings the whole worker: other commands start faster

    settings = load(config)
    configure_logs(settings)
    address = normalise(url)
    asked = Sitemap(
        join(address, "/robots.txt") if address.count("/") == 3 and address[-1] == "/" else address, since=since
    )
    try:
        sitemap_request(asked, SystemClock().now())
    except ValueError as error:
        raise UsageError(f"--since must be {error}.") from None
    where = file_for(output, IfExists.REPLACE if replace else IfExists.REFUSE)
    raise typer.Exit(in_loop(SitemapPrinter(settings, asked, where, limit=limit, as_data=as_data).print()))
