"""`shoal serve`."""

from typing import Annotated

import typer

from shoal.cli.running.shared_options import ConfigOption, EngineOption, QuietOption, TargetsArgument
from shoal.cli.running.target_settings import scrapers_for, settings_for
from shoal.errors import UsageError
from shoal.runs.command_line import command_line
from shoal.runs.event_loop import in_loop
from shoal.runs.staffing import check_staffed


def serve(
    targets: TargetsArgument,
    host: Annotated[
        str | None, typer.Option("--host", help="Address to listen at. Default: setting `serve.host`.")
    ] = None,
    port: Annotated[
        int | None, typer.Option("--port", min=0, max=65535, help="Port to listen at; 0 = any that is free.")
    ] = None,
    without_keys: Annotated[
        bool, typer.Option("--without-keys", help="Let anybody submit who can reach the address, without an API key.")
    ] = False,
    processes: Annotated[
        int | None, typer.Option("--processes", min=1, max=256, help="Gateway processes that share the port.")
    ] = None,
    static: Annotated[
        str | None, typer.Option("--static", help="Folder with files for browsers. Default: setting `serve.static`.")
    ] = None,
    with_workers: Annotated[
        bool, typer.Option("--with-workers", help="Also work on the jobs: one command is a whole service.")
    ] = False,
    engine: EngineOption = None,
    config: ConfigOption = None,
    quiet: QuietOption = False,
    share_port: Annotated[
        bool, typer.Option("--share-port", hidden=True, help="Others listen at the same port.")
    ] = False,
    until_eof: Annotated[bool, typer.Option("--until-eof", hidden=True, help="Stop when stdin ends.")] = False,
) -> None:
    """Take jobs for these scrapers over HTTP, and hand out their results. The documentation is at /docs.

    Ctrl-C or SIGTERM answers everybody who waits and ends; a second one ends at once. No accepted job is lost.

    Example:

        shoal serve cart.py --with-workers
        shoal serve cart.py --with-workers --static page
        shoal keys create website; shoal serve cart.py books.py --host 0.0.0.0 --processes 4
    """
    from shoal.cli.output.logs import configure_logs  # noqa: PLC0415 - slow to load

    try:
        from shoal.cli.running.serve_at_terminal import ServeAtTerminal  # noqa: PLC0415 - brings the web server, which is an extra
    except ModuleNotFoundError as error:
        raise UsageError(f"`shoal serve` needs {error.name!r}. Install it with: pip install 'shoal[serve]'.") from None

    given: dict[str, object] = {"host": host, "port": port, "processes": processes, "static": static}
    given["without_keys"] = without_keys or None
    given = {name: value for name, value in given.items() if value is not None}
    settings = settings_for(targets, config, {"engine": engine, "serve": given or None}, quiet=quiet)
    configure_logs(settings)
    scrapers = scrapers_for(targets, settings, quiet=quiet)
    for scraper in scrapers:
        check_staffed(scraper)
    service = ServeAtTerminal(
        settings,
        scrapers,
        targets,
        command_line(settings, engine),
        with_workers=with_workers,
        share_port=share_port,
        until_eof=until_eof,
        quiet=quiet,
    )
    raise typer.Exit(in_loop(service.run()))
