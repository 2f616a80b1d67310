"""`shoal worker`."""

from typing import Annotated

import typer

from shoal.cli.running.observing import check_warc, logging_settings, observing
from shoal.cli.running.shared_options import (
    ConfigOption,
    EngineOption,
    LogFileOption,
    QuietOption,
    TargetsArgument,
    VerboseOption,
    WarcOption,
)
from shoal.cli.running.target_settings import scrapers_for, settings_for
from shoal.core.lanes import lanes_from, page_lanes
from shoal.runs.event_loop import in_loop
from shoal.runs.staffing import check_staffed


def worker(
    targets: TargetsArgument,
    run_id: Annotated[
        str | None,
        typer.Option("--run-id", metavar="RUN", help="Work only on this run. Default: on all of the scrapers."),
    ] = None,
    lanes: Annotated[
        str | None, typer.Option("--lanes", help="Work only on these lanes: names with commas, best first.")
    ] = None,
    concurrency: Annotated[
        int | None, typer.Option("--concurrency", min=1, help="Requests in flight, over all sites.")
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option("--batch-size", min=1, help="Most tasks taken at once. Default: as many as there is room for."),
    ] = None,
    drain: Annotated[
        bool, typer.Option("--drain", help="End when nothing is left to do; no page is visited again.")
    ] = False,
    engine: EngineOption = None,
    config: ConfigOption = None,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    log_file: LogFileOption = None,
    warc: WarcOption = None,
    again: Annotated[bool, typer.Option("--again", hidden=True, help="With --drain: visit pages again.")] = False,
    until_eof: Annotated[bool, typer.Option("--until-eof", hidden=True, help="Stop when stdin ends.")] = False,
) -> None:
    """Work on runs that were enqueued, until stopped. Start as many as you like, on one engine.

    Ctrl-C or SIGTERM finishes what is in flight and gives the rest back; a second one stops at once.
    A store that is not up yet, or goes away, is waited for.

    Example:

        shoal worker books.py --drain
    """
    from shoal.cli.output.logs import configure_logs  # noqa: PLC0415 - slow to load, too
    from shoal.cli.running.worker_process import WorkerProcess  # noqa: PLC0415 - brings the whole worker: other commands start faster

    given = {"engine": engine, "concurrency": concurrency} | logging_settings(verbose=verbose, log_file=log_file)
    settings = settings_for(targets, config, given, quiet=quiet)
    configure_logs(settings)
    check_warc(warc)
    scrapers = scrapers_for(targets, settings, quiet=quiet)
    for scraper in scrapers:
        check_staffed(scraper)
    chosen = lanes_from(lanes, page_lanes(lane for scraper in scrapers for lane in scraper.lanes))
    with observing(verbose=verbose, warc=warc) as around:
        process = WorkerProcess(
            settings, scrapers, chosen, run_id, batch, drain, quiet, until_eof, again or not drain, around
        )
        raise typer.Exit(in_loop(process.run()))
