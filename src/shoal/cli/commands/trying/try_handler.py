"""`shoal try`: what a handler yields for one URL."""

import json
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from shoal.api.request import Request
from shoal.api.saved_page import description_of, save_page
from shoal.cli.output.exit_codes import FAILURES, OK, complain, say
from shoal.cli.output.text import count, plain, print_json, print_line
from shoal.cli.running.shared_options import ConfigOption, JsonOption, ReplaceOption, TargetArgument
from shoal.cli.running.target_settings import used_scraper
from shoal.errors import UsageError
from shoal.runs.event_loop import in_loop
from shoal.runs.export.places.local_file import IfExists, file_for


def try_(
    target: TargetArgument,
    url: Annotated[str, typer.Argument(metavar="URL", help="The page that it is to read.")],
    to: Annotated[
        str | None, typer.Option("--to", metavar="LABEL", help="The handler to try. Default: the default one.")
    ] = None,
    data: Annotated[str | None, typer.Option("--data", metavar="JSON", help="What it finds as page.data.")] = None,
    save: Annotated[
        str | None,
        typer.Option("--save-page", metavar="FILE", help="Save the page for tests: FILE, and FILE.json beside it."),
    ] = None,
    replace: ReplaceOption = False,
    config: ConfigOption = None,
    as_data: JsonOption = False,
) -> None:
    """Fetch one page and show what a handler yields for it. Nothing is stored, and no link is followed.

    The page is asked for as a run would, robots.txt and delay included. Exit code 1: there is no page, or the handler
    failed; then its traceback is shown.

    Example:

        shoal try books.py https://books.example/b/1 --to detail
        shoal try books.py https://books.example/b/1 --to detail --save-page tests/pages/book.html
    """
    from shoal.cli.running.trying.handler_trial import HandlerTrial  # noqa: PLC0415 - brings the whole worker
    from shoal.cli.running.trying.trial import opened_trial  # noqa: PLC0415 - as above

    settings, scraper = used_scraper(target, config)
    handler = scraper.handler(to)
    path = _to_save(save, replace=replace)
    trial = HandlerTrial(scraper, handler)
    with opened_trial(settings, scraper) as fetching:
        tried = in_loop(fetching.fetch(Request(url, to=to, data=_data(data)), trial.read))
    if tried.page is None:
        complain(f"There is no page for {handler.title!r}: {tried.reason}.")
        raise typer.Exit(FAILURES)
    if path is not None:
        save_page(tried.page, path)
        say(f"Saved the page as {path}, and what else it was as {description_of(path)}.")
    if as_data:
        print_json({"url": tried.page.url, "status": tried.page.status, "handler": to, **trial.as_dict()})
    else:
        _show(trial.items, trial.requests)
    if trial.failure is not None:
        if trial.traceback and not as_data:
            say(trial.traceback.rstrip())
        complain(f"The handler {handler.title!r} failed: {trial.failure}.")
    raise typer.Exit(OK if trial.failure is None else FAILURES)


def _show(items: list[Any], requests: list[dict[str, Any]]) -> None:
    for item in items:
        print_line(plain(json.dumps(item, ensure_ascii=False)))
    for request in requests:
        to = f"  to {request['to']}" if request["to"] else ""
        refused = f"  (refused: {request['refused']})" if request["refused"] else ""
        print_line(f"-> {request['method']} {plain(request['url'])}{to}{refused}")
    say(f"{count(len(items), 'item')}, {count(len(requests), 'request')}.")


def _data(text: str | None) -> Any:
    try:
        return None if text is None else msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise UsageError(f"--data must be JSON: {error}.") from None


def _to_save(name: str | None, *, replace: bool) -> Path | None:
    if name is None:
        return None
    if_exists = IfExists.REPLACE if replace else IfExists.REFUSE
    path = file_for(name, if_exists)
    if path is None:
        raise UsageError("--save-page wants the name of a file.")
    file_for(str(description_of(path)), if_exists)
    return path
