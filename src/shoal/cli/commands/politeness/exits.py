"""`shoal exits list|add|remove|check|ban|release`: ways out, and how well each does."""

from collections.abc import Collection
from typing import Annotated

import typer

from shoal.cli.output.exit_codes import say
from shoal.cli.output.text import count, duration, moment, print_json, print_line, table
from shoal.cli.running.find_store import is_absent, with_engine
from shoal.cli.running.shared_options import ConfigOption, EngineOption, JsonOption, positive_duration
from shoal.config.load import load
from shoal.config.pools import pools_from, speaks_of_tor
from shoal.config.settings import Settings
from shoal.core.clock import Moment, iso, millis
from shoal.core.exit_address import TOR, parse_exit
from shoal.core.task import DEFAULT_POOL, DIRECT
from shoal.core.url import normalise
from shoal.errors import BadSettings, UsageError
from shoal.frontier.contract.engine import Engine
from shoal.frontier.contract.exits import ExitRecord, NewExit
from shoal.runs.event_loop import in_loop
from shoal.runs.open_store import opened

app = typer.Typer(help="Exits: ways out, and how well each does.", no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="An exit's name, from `shoal exits list`.")]
UNKNOWN = "No exit of that name is known here or in the store. `shoal exits list` shows those that are."

SiteOption = Annotated[str | None, typer.Option("--site", metavar="SITE", help="Only for this site.")]


@app.command("list")
def list_(engine: EngineOption = None, config: ConfigOption = None, as_data: JsonOption = False) -> None:
    """List the exits of the settings and of the store with their health.

    Example:

        shoal exits list
    """
    from shoal.cli.output.logs import configure_logs  # noqa: PLC0415 - slow to load

    settings = load(config, {"engine": engine})
    configure_logs(settings)
    now, records = _known(settings)
    if as_data:
        print_json([_as_json(record, now) for record in records])
        return
    rows = [
        (
            record.name,
            parse_exit(record.address).shown if record.address else "(not known here)",
            ", ".join(record.pools) or "-",
            _health(record, now),
            f"{record.live} of {record.cap}" if record.cap else "-",
            len(record.bans),
        )
        for record in records
    ]
    print_line(table(("name", "address", "pools", "health", "in use", "bans"), rows))


@app.command()
def add(
    addresses: Annotated[
        list[str], typer.Argument(metavar="ADDRESS…", help="`http://user:password@host:port` and so on.")
    ],
    pools: Annotated[
        list[str] | None,
        typer.Option("--pool", metavar="POOL", help=f"For this pool; may be repeated ({DEFAULT_POOL})."),
    ] = None,
    cap: Annotated[int, typer.Option("--cap", min=0, help="Most requests at once, over all sites; 0 = no limit.")] = 0,
    engine: EngineOption = None,
    config: ConfigOption = None,
) -> None:
    """Add exits while the fleet runs; workers use them within seconds. Given again, an exit is changed.

    Example:

        shoal exits add socks5://10.0.0.5:1080 --pool shops --cap 20
    """
    if any(parse_exit(address).scheme == TOR for address in addresses):
        raise UsageError('Tor cannot be added while workers run: give a pool `ways = ["tor"]` in shoal.toml.')
    exits = [
        NewExit(parse_exit(address).name, address.strip(), tuple(pools or [DEFAULT_POOL]), cap) for address in addresses
    ]
    settings = load(config, {"engine": engine})

    async def work() -> None:
        async with opened(settings, create=True) as store:
            await store.exits.put(exits)

    in_loop(work())
    say(f"Added {', '.join(exit_.name for exit_ in exits)}.")


@app.command()
def remove(
    names: Annotated[list[str], typer.Argument(metavar="NAME…", help="Names, from `shoal exits list`.")],
    engine: EngineOption = None,
    config: ConfigOption = None,
) -> None:
    """Take exits out of the store with what is known of their health. Those of the settings stay in the settings.

    Example:

        shoal exits remove 10.0.0.5:1080
    """

    async def work(store: Engine) -> int:
        return await store.exits.remove(names)

    removed = with_engine(engine, config, work)
    if not removed:
        raise UsageError(f"The store has no exit {' or '.join(names)}. `shoal exits list` shows those there are.")
    say(f"Removed {count(removed, 'exit')}.")


@app.command()
def ban(
    name: NameArgument,
    seconds: Annotated[
        float, typer.Option("--for", metavar="DURATION", parser=positive_duration, help="How long.")
    ] = 3600.0,
    site: SiteOption = None,
    engine: EngineOption = None,
    config: ConfigOption = None,
) -> None:
    """Leave by an exit no more for a while: to one site, or to any.

    Example:

        shoal exits ban 10.0.0.5:1080 --site shop.example --for 1h
    """

    _one_exit(name)

    async def work(store: Engine) -> bool:
        known = await _is_known(name, store, load(config, {"engine": engine}))
        await store.exits.ban(name, millis(seconds), site)
        return known

    known = with_engine(engine, config, work)
    say(f"{name} is not used {f'for {site}' if site else 'at all'} for {duration(seconds)}.")
    if not known:
        say(UNKNOWN)


@app.command()
def release(
    name: NameArgument, site: SiteOption = None, engine: EngineOption = None, config: ConfigOption = None
) -> None:
    """End bans and quarantine of an exit: for one site, or for all.

    Example:

        shoal exits release 10.0.0.5:1080
    """

    _one_exit(name)

    async def work(store: Engine) -> bool:
        known = await _is_known(name, store, load(config, {"engine": engine}))
        await store.exits.release(name, site)
        return known

    known = with_engine(engine, config, work)
    say(f"{name} may be used again{f' for {site}' if site else ''}.")
    if not known:
        say(UNKNOWN)


@app.command()
def check(
    url: Annotated[str, typer.Option("--url", metavar="URL", help="A page that answers; one request by each exit.")],
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME…]", help="Only these. Default: all.")] = None,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="DURATION", parser=positive_duration, help="Most time for each.")
    ] = 15.0,
    engine: EngineOption = None,
    config: ConfigOption = None,
    as_data: JsonOption = False,
) -> None:
    """Try each exit with one request, and say how it went. Exit code 1 if one does not work.

    Example:

        shoal exits check --url https://example.org/
    """
    from shoal.cli.output.logs import configure_logs  # noqa: PLC0415 - slow to load, too
    from shoal.cli.running.exit_check import ExitCheck  # noqa: PLC0415 - brings aiohttp

    normalise(url)
    settings = load(config, {"engine": engine})
    configure_logs(settings)
    _, records = _known(settings, names or ())
    chosen = [
        record
        for record in records
        if record.address and not _of_a_worker(record) and (not names or record.name in names)
    ]
    unknown = set(names or ()) - {record.name for record in chosen}
    if any(_of_a_worker(record) for record in records if record.name in unknown):
        raise UsageError("A worker's own Tor exit cannot be tried from here; `shoal exits check tor` starts another.")
    if unknown:
        raise UsageError(f"There is no exit {', '.join(sorted(unknown))} with an address here.")
    results = in_loop(ExitCheck(settings, url, timeout).run(chosen))
    if as_data:
        print_json([{"name": name, "ok": ok, "said": said} for name, ok, said in results])
    else:
        print_line(
            table(("name", "works", "answer"), [(name, "yes" if ok else "NO", said) for name, ok, said in results])
        )
    if not all(ok for _, ok, _ in results):
        raise typer.Exit(1)


def _known(settings: Settings, asked_for: Collection[str] = ()) -> tuple[Moment, list[ExitRecord]]:
    """The exits of the settings and of the store, by name, each with what the store knows of it.

    Tor is always there to be used; it is spoken of where the settings do, or where it was asked for.
    """
    own = pools_from(settings)
    if not speaks_of_tor(settings) and TOR not in asked_for:
        own.pop(TOR, None)
    now, stored = (0, []) if is_absent(settings) else in_loop(_stored(settings))
    records = {name: ExitRecord(name, e.address, e.pools, e.cap) for name, e in own.items()}
    for record in stored:
        address = record.address or (own[record.name].address if record.name in own else "")
        pools = record.pools or (own[record.name].pools if record.name in own else ())
        records[record.name] = ExitRecord(
            record.name, address, pools, record.cap, record.failures, record.quarantined_until, record.live, record.bans
        )
    return now, sorted(records.values(), key=lambda record: (record.name != DIRECT, record.name))


async def _stored(settings: Settings) -> tuple[Moment, list[ExitRecord]]:
    async with opened(settings, create=False) as store:
        return await store.reader.now(), list(await store.exits.all())


async def _is_known(name: str, store: Engine, settings: Settings) -> bool:
    return name in pools_from(settings) or name in {record.name for record in await store.exits.all()}


def _one_exit(name: str) -> None:
    if name == TOR:
        raise UsageError("Each worker has a Tor exit of its own. Name one; `shoal exits list` shows those there are.")


def _of_a_worker(record: ExitRecord) -> bool:
    return record.address == TOR and record.name != TOR


def _health(record: ExitRecord, now: Moment) -> str:
    if record.name == TOR:
        return "started by each worker"
    if record.quarantined_until > now:
        return f"quarantined until {moment(record.quarantined_until)}"
    if record.failures:
        return f"{count(record.failures, 'failure')} in a row"
    return "good"


def _as_json(record: ExitRecord, now: Moment) -> dict[str, object]:
    try:
        shown = parse_exit(record.address).shown if record.address else None
    except BadSettings:
        shown = None
    return {
        "name": record.name,
        "address": shown,
        "pools": record.pools,
        "cap": record.cap,
        "in_use": record.live,
        "failures": record.failures,
        "quarantined_until": iso(record.quarantined_until) if record.quarantined_until > now else None,
        "bans": [{"site": site, "until": iso(until)} for site, until in record.bans],
    }
