"""`shoal explain`: why is this URL waiting?"""

from typing import Annotated

import typer

from shoal.cli.output.exit_codes import say
from shoal.cli.output.text import duration, moment, print_json, print_line
from shoal.cli.running.find_store import find_run, with_engine
from shoal.cli.running.shared_options import ConfigOption, EngineOption, JsonOption
from shoal.config.load import load
from shoal.core.clock import Moment, iso
from shoal.core.url import normalise, without_credentials
from shoal.frontier.contract.engine import Engine
from shoal.frontier.contract.reader import Whereabouts
from shoal.insight.explain import Explanation
from shoal.insight.look_up import look_up


def explain_(
    url: Annotated[str, typer.Argument(metavar="URL", help="The URL, as it was found or given.")],
    run: Annotated[
        str | None, typer.Option("--run", metavar="RUN", help="Only in this run. Default: in all that have seen it.")
    ] = None,
    engine: EngineOption = None,
    config: ConfigOption = None,
    as_data: JsonOption = False,
) -> None:
    """Say where a URL is, when it can be fetched at the earliest, and why not sooner.

    Example:

        shoal explain https://books.example/page/7
    """
    asked = url.strip()
    page = without_credentials(normalise(asked))
    settings = load(config, {"engine": engine})

    async def work(store: Engine) -> tuple[Moment, list[tuple[Whereabouts, Explanation]]]:
        run_id = None if run is None else (await find_run(store.reader, run)).run_id
        return await look_up(store, settings, asked, run_id)

    now, explained = with_engine(engine, config, work)
    if as_data:
        print_json([_as_json(place, said) for place, said in explained])
    elif not explained:
        say(f"No run has seen {page}. It was never found or given, or the scraper does not allow it.")
        raise typer.Exit(1)
    else:
        for place, said in explained:
            _print(place, said, now)


def _print(place: Whereabouts, said: Explanation, now: Moment) -> None:
    print_line(f"{place.run_id} ({place.scraper}, {place.run_state.value}): {said.where}")
    if said.duplicate_of is not None:
        spelling = "what differs only in spelling, or in credentials, is fetched once"
        print_line(f"  It is a duplicate of {said.duplicate_of}: {spelling}.")
    for cause in said.causes:
        print_line(f"  - {cause.text}")
    if said.earliest is not None:
        wait = max(0, said.earliest - now) / 1000
        print_line(f"  At the earliest: {'now' if not wait else f'{moment(said.earliest)} (in {duration(wait)})'}.")
    elif said.causes:
        print_line("  At the earliest: when that is changed.")


def _as_json(place: Whereabouts, said: Explanation) -> dict[str, object]:
    return {
        "run_id": place.run_id,
        "scraper": place.scraper,
        "run_state": place.run_state.value,
        "state": place.state.value,
        "duplicate_of": said.duplicate_of,
        "reason": None if place.reason is None else place.reason.text,
        "ended_at": iso(place.ended_at),
        "ahead": place.ahead,
        "where": said.where,
        "causes": [
            {"text": cause.text, "until": iso(cause.until) if cause.until else None, "open_ended": cause.until is None}
            for cause in said.causes
        ],
        "earliest": None if said.earliest is None else iso(said.earliest),
    }
