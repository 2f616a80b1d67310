"""`shoal fetch`: one page, and all that can be told of how it was fetched."""

import sys
from typing import Annotated

import typer

from shoal.api.request import Request
from shoal.cli.output.exit_codes import FAILURES, OK, complain
from shoal.cli.output.text import print_json, print_line
from shoal.cli.running.shared_options import ConfigOption, JsonOption, UsedTargetOption
from shoal.cli.running.target_settings import used_scraper
from shoal.errors import UsageError
from shoal.runs.event_loop import in_loop


def fetch(
    url: Annotated[str, typer.Argument(metavar="URL", help="The page.")],
    target: UsedTargetOption = None,
    header: Annotated[
        list[str] | None, typer.Option("--header", "-H", metavar="NAME: VALUE", help="Send this, too. Repeatable.")
    ] = None,
    body: Annotated[bool, typer.Option("--body", help="Print the body of the answer, and nothing else.")] = False,
    config: ConfigOption = None,
    as_data: JsonOption = False,
) -> None:
    """Fetch one page and show each request: hops, headers, robots.txt, phases, what caches may do with it.

    It is asked for as a run would, robots.txt and delay included; nothing is stored. Cookies, passwords and keys are
    masked. Exit code 1: there is no page (an error, a status that is none, robots.txt).

    Example:

        shoal fetch https://books.example/
        shoal fetch https://books.example/ --target books.py --json
    """
    from shoal.cli.running.trying.fetch_report import lines, report  # noqa: PLC0415 - brings the whole worker
    from shoal.cli.running.trying.trial import opened_trial  # noqa: PLC0415 - as above

    settings, scraper = used_scraper(target, config)
    with opened_trial(settings, scraper) as trial:
        tried = in_loop(trial.fetch(Request(url, headers=_headers(header or ()))))
    if body:
        sys.stdout.buffer.write(b"" if tried.answer is None else tried.answer.body)
    else:
        told = report(tried, settings.agent, obeyed=scraper.obey_robots)
        if as_data:
            print_json(told)
        else:
            print_line("\n".join(lines(told)))
    if tried.page is None:
        complain(f"There is no page: {tried.reason}.")
    raise typer.Exit(OK if tried.page is not None else FAILURES)


def _headers(given: list[str] | tuple[str, ...]) -> dict[str, str] | None:
    """What `-H` gives. Raises UsageError for what is no header; its value is not repeated, for it may be a secret."""
    headers = {}
    for each in given:
        name, colon, value = each.partition(":")
        if not colon or not name.strip():
            raise UsageError(f"-H {name[:40]!r}… is no header; write it as -H 'Name: value'.")
        headers[name.strip()] = value.strip()
    return headers or None
