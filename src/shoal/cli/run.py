"""`shoal run`."""

from typing import Annotated, Literal

import typer

from shoal.cli.options import ConfigOption, EngineOption, QuietOption, TargetArgument
from shoal.errors import UsageError
from shoal.export import STDOUT, Format, output_for
from shoal.intake.given import GivenURLs, check_file
from shoal.loop import in_loop
from shoal.overrides import configure
from shoal.settings_file import load
from shoal.target import load_scraper


def run(
    target: TargetArgument,
    url: Annotated[
        list[str] | None, typer.Option("--url", metavar="URL", help="Fetch this instead of the start URLs. Repeatable.")
    ] = None,
    urls_file: Annotated[
        str | None,
        typer.Option("--urls-file", metavar="FILE", help="Fetch the URLs in this file, one per line; - = stdin."),
    ] = None,
    input_: Annotated[
        str | None, typer.Option("--input", metavar="JSON", help="Input for `@x.start`: JSON, or @file.json.")
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Write the items: .jsonl, .csv; - = stdout.")
    ] = None,
    format_: Annotated[
        Format | None,
        typer.Option("--format", metavar="jsonl|csv", help="Form of the output, instead of what its suffix says."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the newest unfinished run of this scraper, or with --run-id.")
    ] = False,
    run_id: Annotated[str | None, typer.Option("--run-id", metavar="ID", help="Id of the run.")] = None,
    mode: Annotated[
        Literal["single", "distributed"] | None,
        typer.Option("--mode", metavar="single|distributed", help="Instead of the scraper's own mode."),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="In distributed mode: follow the run until it ends.")] = False,
    once: Annotated[
        bool, typer.Option("--once", help="Visit each page once, also where the scraper would come back (`every`).")
    ] = False,
    workers: Annotated[int, typer.Option("--workers", min=1, max=1000, help="Processes to work with.")] = 1,
    concurrency: Annotated[
        int | None, typer.Option("--concurrency", min=1, help="Requests in flight per process, over all sites.")
    ] = None,
    engine: EngineOption = None,
    config: ConfigOption = None,
    quiet: QuietOption = False,
    as_data: Annotated[bool, typer.Option("--json", help="Print the final counts as JSON on stdout.")] = False,
) -> None:
    """Run a scraper until nothing is left to do (mode single), or enqueue it for workers (mode distributed).

    A scraper that visits its pages again (`every`) goes on until Ctrl-C, unless --once.

    Ctrl-C finishes what is in flight and stops; `--resume` goes on. A second Ctrl-C stops at once; nothing is lost.
    Exit code 0: done. 1: done, but some tasks became dead letters. 2: not possible as asked. 130: interrupted.

    Example:

        shoal run books.py -o books.jsonl
        shoal run books.py --urls-file urls.txt --workers 4
        shoal run cart.py --input '{"items": ["milk"], "zipcode": "10001"}'
    """
    from shoal.cli.job import Job, read_input  # noqa: PLC0415 - brings the whole worker: other commands start faster
    from shoal.cli.logs import configure_logs  # noqa: PLC0415 - slow to load, too
    from shoal.order import Order  # noqa: PLC0415 - as above

    settings = load(config, {"engine": engine, "concurrency": concurrency})
    configure_logs(settings)
    if output == STDOUT and as_data:
        raise UsageError("Items (-o -) and counts (--json) cannot both go to standard output; choose one.")
    where = None if output is None else output_for(output, format_)
    if urls_file is not None:
        check_file(urls_file)
    scraper = load_scraper(target)
    configure(scraper, settings)
    urls = GivenURLs(url or (), urls_file) if url or urls_file else None
    order = Order(scraper, urls, read_input(input_), mode, run_id, resume)
    if once and order.distributed:
        raise UsageError("--once is for runs that are worked on here; for this one, start workers with --drain.")
    job = Job(
        target=target,
        order=order,
        urls=urls,
        settings=settings,
        engine_given=engine is not None,
        output=where,
        workers=workers,
        wait=wait,
        once=once,
        quiet=quiet,
        as_data=as_data,
    )
    raise typer.Exit(in_loop(job.run()))
