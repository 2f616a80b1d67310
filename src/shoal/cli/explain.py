"""`shoal explain`: why is this URL waiting?"""

from typing import Annotated

import typer

from shoal.cli.frame import say
from shoal.cli.opening import find_run, with_engine
from shoal.cli.options import ConfigOption, EngineOption, JsonOption
from shoal.cli.text import duration, moment, print_json, print_line
from shoal.clock import Moment, iso
from shoal.exits import TOR
from shoal.explain import Explanation, Surroundings, duplicate_of, explain
from shoal.fetch.robots import RobotsBook, origin_of
from shoal.frontier.engine import Engine
from shoal.frontier.moving import MoveState
from shoal.frontier.reading import Whereabouts
from shoal.pools import exits_in, pools_from
from shoal.settings import Settings
from shoal.settings_file import load
from shoal.task import DEFAULT_POOL
from shoal.url import dedup_key, normalise, site_of, without_credentials
from shoal.workers import lives, works_lane


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


async def look_up(
    store: Engine, settings: Settings, url: str, run_id: str | None = None
) -> tuple[Moment, list[tuple[Whereabouts, Explanation]]]:
    """Where a URL is, in each run that has seen it or in one, and why; and when that was looked up. Raises BadURL."""
    address = without_credentials(normalise(url))
    own = pools_from(settings)
    reader = store.reader
    site = site_of(address)
    found = await reader.whereabouts(site, address, dedup_key(address), run_id)
    now = await reader.now()
    record, slots, workers = await reader.site(site), await reader.slots(site), await reader.workers()
    health = await store.exits.all()
    rules = await RobotsBook(store.cache, settings.agent).known(origin_of(address))
    disallowed = rules is not None and not rules.unavailable and not rules.allowed(address)
    explained = []
    for place in found:
        pool = place.pool or DEFAULT_POOL
        run = await reader.run(place.run_id)
        around = Surroundings(
            now,
            record,
            slots,
            exits_in(pool, own, health, now, all_of_them=True),
            health,
            staffed=any(lives(worker) and works_lane(worker, run, place.lane or "") for worker in workers),
            by_tor=TOR in own and pool in own[TOR].pools,
            disallowed=disallowed,
            moved_to=run.move.other if run.move is not None and run.move.state is MoveState.LEFT else None,
        )
        said = explain(place, around)
        said.duplicate_of = duplicate_of(url, place.url or address)
        explained.append((place, said))
    return now, explained


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
