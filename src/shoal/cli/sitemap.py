"""`shoal sitemap`."""

from pathlib import Path
from typing import Annotated

import typer

from shoal.cli.options import ConfigOption
from shoal.clock import SystemClock
from shoal.errors import UsageError
from shoal.export import STDOUT, Format, output_for
from shoal.loop import in_loop
from shoal.settings_file import load
from shoal.sitemap import Sitemap, sitemap_request
from shoal.url import join, normalise


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
    from shoal.cli.listing import Listing  # noqa: PLC0415 - brings the whole worker: other commands start faster
    from shoal.cli.logs import configure_logs  # noqa: PLC0415 - slow to load, too

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
    where: Path | None = output_for(output, Format.JSONL).path
    raise typer.Exit(in_loop(Listing(settings, asked, where, limit=limit, as_data=as_data).print()))
