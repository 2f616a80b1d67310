"""`shoal keys`: who may use the gateway."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
import typer

from shoal.api.webhook_signature import webhook_secret
from shoal.cli.output.exit_codes import say
from shoal.cli.output.text import count, moment, print_json, print_line, table
from shoal.cli.running.find_store import opened_store
from shoal.cli.running.shared_options import ConfigOption, EngineOption, JsonOption
from shoal.config.load import load
from shoal.config.secret_key import secret_box
from shoal.core.clock import SystemClock, iso
from shoal.frontier.contract.exits import NewExit
from shoal.frontier.contract.jobs import Registry
from shoal.gateway.limits.keys import WEBHOOK, ApiKey, Scope, find_key, new_key, store_key, stored_keys
from shoal.runs.event_loop import in_loop

Result = TypeVar("Result")

app = typer.Typer(no_args_is_help=True, help="API keys of the gateway: create, list, revoke, seal anew.")


@app.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What to call it, such as who gets it.")],
    scope: Annotated[
        list[Scope] | None, typer.Option("--scope", help="What it allows. Repeatable. Default: submit and read.")
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Jobs per minute. Default: any number.")] = None,
    reads: Annotated[
        int | None,
        typer.Option("--reads", min=1, help="Looks per minute, per gateway process. Default: any number."),
    ] = None,
    scraper: Annotated[
        list[str] | None, typer.Option("--scraper", help="Only jobs for this scraper. Repeatable. Default: all.")
    ] = None,
    engine: EngineOption = None,
    config: ConfigOption = None,
    as_data: JsonOption = False,
) -> None:
    """Make an API key and print it, this once: only a hash of it is stored.

    As soon as there is a key, the gateway asks everybody for one.

    Example:

        shoal keys create website --limit 600
    """
    scopes = scope or [Scope.SUBMIT, Scope.READ]
    box = secret_box(load(config, {"engine": engine}))
    secret, key = new_key(name, scopes, limit, scraper, SystemClock().now(), reads, box=box)
    _with_registry(engine, config, lambda registry: store_key(registry, key))
    if as_data:
        print_json({"key": secret, "webhook_secret": webhook_secret(secret), **_as_json(key)})
    else:
        print_line(secret)
        say(f"This is the key {key.key_id} ({name}). It is not shown again.")
        say(f"Webhooks about its jobs are signed with {webhook_secret(secret)}.")


@app.command("list")
def list_(
    engine: EngineOption = None,
    config: ConfigOption = None,
    as_data: JsonOption = False,
) -> None:
    """List the API keys, without the keys themselves.

    Example:

        shoal keys list
    """
    found = _with_registry(engine, config, stored_keys)
    if as_data:
        print_json([_as_json(key) for key in found])
    elif not found:
        say("No API keys yet: everybody may use the gateway. Make one with `shoal keys create NAME`.")
    else:
        header = ("id", "name", "scopes", "limit", "scrapers", "created", "revoked")
        print_line(table(header, [_row(key) for key in found]))


@app.command()
def revoke(
    key: Annotated[str, typer.Argument(metavar="KEY", help="Id or name of the key.")],
    engine: EngineOption = None,
    config: ConfigOption = None,
) -> None:
    """Make an API key useless, within seconds and for good. Its jobs go on.

    Example:

        shoal keys revoke website
    """

    async def work(registry: Registry) -> ApiKey:
        found = await find_key(registry, key)
        if found.revoked_at is None:
            found = msgspec.structs.replace(found, revoked_at=SystemClock().now())
            await store_key(registry, found)
        return found

    found = _with_registry(engine, config, work)
    say(f"The key {found.key_id} ({found.name}) is revoked.")


@app.command()
def reseal(engine: EngineOption = None, config: ConfigOption = None) -> None:
    """Seal what the store keeps for good with the first key of `secret_key`: webhook secrets, passwords of exits.

    For when that key is changed: `secret_key = "new,old"` everywhere, then this, then without the old one as soon as no
    run is left that was begun with it.

    Example:

        shoal keys reseal
    """
    settings = load(config, {"engine": engine})
    box = secret_box(settings)

    async def main() -> tuple[int, int]:
        async with opened_store(settings) as store:
            keys = [key for key in await stored_keys(store.registry) if key.webhook]
            for key in keys:
                await store_key(store.registry, msgspec.structs.replace(key, webhook=box.reseal(key.webhook, WEBHOOK)))
            exits = [each for each in await store.exits.all() if "@" in each.address]
            await store.exits.put([NewExit(each.name, each.address, each.pools, each.cap) for each in exits])
            return len(keys), len(exits)

    sealed, exits = in_loop(main())
    say(f"Sealed anew: {count(sealed, 'webhook secret')}, {count(exits, 'password')} of exits.")


def _with_registry(engine: str | None, config: Path | None, work: Callable[[Registry], Awaitable[Result]]) -> Result:
    settings = load(config, {"engine": engine})

    async def main() -> Result:
        async with opened_store(settings) as store:
            return await work(store.registry)

    return in_loop(main())


def _as_json(key: ApiKey) -> dict[str, Any]:
    return {
        "id": key.key_id,
        "name": key.name,
        "scopes": [scope.value for scope in key.scopes],
        "limit": key.limit,
        "reads": key.reads,
        "scrapers": None if key.scrapers is None else list(key.scrapers),
        "created_at": iso(key.created_at),
        "revoked_at": iso(key.revoked_at),
    }


def _row(key: ApiKey) -> tuple[object, ...]:
    scopes = ",".join(scope.value for scope in key.scopes)
    limits = [] if key.limit is None else [f"{key.limit}/min"]
    if key.reads is not None:
        limits.append(f"{key.reads} reads/min")
    scrapers = "all" if key.scrapers is None else ",".join(key.scrapers)
    return (
        key.key_id,
        key.name,
        scopes,
        ", ".join(limits) or "-",
        scrapers,
        moment(key.created_at),
        moment(key.revoked_at),
    )
