"""`shoal run`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from shoal.cli.running.observing import check_warc, logging_settings, observing
from shoal.cli.running.shared_options import (
    FORMATS,
    AppendOption,
    ColumnsOption,
    ConfigOption,
    EngineOption,
    FormatOption,
    LogFileOption,
    QuietOption,
    ReplaceOption,
    TargetArgument,
    VerboseOption,
    WarcOption,
    output_options,
)
from shoal.cli.running.target_settings import scrapers_for, settings_for
from shoal.config.target import load_scraper
from shoal.errors import UsageError
from shoal.intake.url_lists import URLList, check_file
from shoal.runs.arguments import input_with
from shoal.runs.command_line import command_line
from shoal.runs.event_loop import in_loop
from shoal.runs.export.output import outputs_for
from shoal.runs.export.places.local_file import STDOUT


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
    argument: Annotated[
        list[str] | None,
        typer.Option("--argument", "-a", metavar="NAME=VALUE", help="One field of the input. Repeatable."),
    ] = None,
    output: Annotated[
        list[str] | None,
        typer.Option(
            "--output",
            "-o",
            metavar="OUTPUT",
            help=f"Write the items: {FORMATS}; - = stdout; s3://…; sqlite:///x.db#table. Repeatable.",
        ),
    ] = None,
    format_: FormatOption = None,
    columns: ColumnsOption = None,
    replace: ReplaceOption = False,
    append: AppendOption = False,
    follow: Annotated[
        bool, typer.Option("--follow", help="Write items while the run works (.jsonl, .csv, stdout, tables).")
    ] = False,
    warc: WarcOption = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the newest unfinished run of this scraper, or with --run-id.")
    ] = False,
    resume_or_start: Annotated[
        bool, typer.Option("--resume-or-start", help="The same if there is one to go on with; else start one.")
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
    verbose: VerboseOption = False,
    log_file: LogFileOption = None,
    as_data: Annotated[bool, typer.Option("--json", help="Print the final counts as JSON on stdout.")] = False,
) -> None:
    """Run a scraper until nothing is left to do (mode single), or enqueue it for workers (mode distributed).

    A scraper that visits its pages again (`every`) goes on until Ctrl-C, unless --once.

    Ctrl-C finishes what is in flight, writes the items that are there (`-o`) and stops; `--resume` goes on, and with
    nothing left to fetch only writes the items. A second Ctrl-C stops at once; nothing is lost.
    Exit code 0: done, also if nothing was found. 1: done, but some tasks became dead letters. 2: not possible as
    asked. 130: interrupted.

    Example:

        shoal run books.py -o books.jsonl
        shoal run books.py --urls-file urls.txt --workers 4
        shoal run cart.py --input '{"items": ["milk"], "zipcode": "10001"}'
        shoal run cart.py -a items=milk -a items=bread -a zipcode=10001
        shoal run books.py -o books.csv --columns title,price -o sqlite:///library.db#books
    """
    from shoal.cli.output.logs import configure_logs  # noqa: PLC0415 - slow to load, too
    from shoal.cli.running.run_at_terminal import RunAtTerminal  # noqa: PLC0415 - brings the whole worker: other commands start faster
    from shoal.runs.run_request import RunRequest  # noqa: PLC0415 - as above

    given = {"engine": engine, "concurrency": concurrency} | logging_settings(verbose=verbose, log_file=log_file)
    settings = settings_for([target], config, given, quiet=quiet)
    configure_logs(settings)
    if output and STDOUT in output and as_data:
        raise UsageError("Items (-o -) and counts (--json) cannot both go to standard output; choose one.")
    if follow and not output:
        raise UsageError("--follow says how items are written; say where with -o.")
    outputs = outputs_for(output or (), output_options(format_, columns, replace=replace, append=append, live=follow))
    check_warc(warc)
    if urls_file is not None:
        check_file(urls_file)
    scraper = load_scraper(target)
    scrapers_for([target], settings, quiet=quiet)
    flags = (
        ("--append", append), ("--follow", follow), ("--verbose", verbose),
        ("--once", once), ("--wait", wait), ("--json", as_data),
    )  # fmt: skip
    request = RunRequest(
        scraper,
        target,
        urls=URLList(url or (), urls_file) if url or urls_file else None,
        input=input_with(_read_input(input_), argument or (), scraper.input),
        mode=mode,
        run_id=run_id,
        resume=resume or resume_or_start,
        or_start=resume_or_start,
        once=once,
        wait=wait,
        outputs=outputs,
        line=command_line(settings, engine),
        options=(
            *_said("--mode", mode),
            *_said("--format", format_),
            *_said("--columns", columns),
            *_said("--warc", warc),
            *_said("--log-file", log_file),
            *(("--workers", str(workers)) if workers > 1 else ()),
            *_said("--concurrency", concurrency),
            *(word for word, wanted in flags if wanted),
        ),
        seeds=(
            *(word for each in url or () for word in ("--url", each)),
            *_said("--urls-file", urls_file),
            *_said("--input", input_),
            *(word for each in argument or () for word in ("-a", each)),
        ),
    )
    if once and request.distributed:
        raise UsageError("--once is for runs that are worked on here; for this one, start workers with --drain.")
    if warc is not None and request.distributed:
        raise UsageError("--warc is for whoever makes the requests; for this run, give it to the workers.")
    terminal = RunAtTerminal(request, settings, processes=workers, quiet=quiet, as_data=as_data)
    with observing(verbose=verbose, warc=warc) as terminal.around:
        raise typer.Exit(in_loop(terminal.run()))


def _said(option: str, value: object) -> tuple[str, ...]:
    """An option as it was given; nothing, if it was not."""
    return () if value is None else (option, str(value))


def _read_input(text: str | None) -> bytes | None:
    """What `--input` gives: JSON, or the content of `@file.json`. Raises UsageError if the file cannot be read."""
    if text is None or not text.startswith("@"):
        return None if text is None else text.encode()
    try:
        return Path(text[1:]).read_bytes()
    except OSError as error:
        raise UsageError(f"The input file {text[1:]!r} cannot be read: {error.strerror}.") from None
