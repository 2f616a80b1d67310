"""Opening a store: is the server fit to hold it, and is the store one that this version can read?"""

from __future__ import annotations

from typing import Any

import structlog
from redis.asyncio import RedisCluster
from redis.exceptions import ResponseError

from shoal.core import log_events
from shoal.core.clock import Clock
from shoal.errors import EngineBroken, EngineRefused, NoStore
from shoal.frontier.contract.schema import Schema
from shoal.frontier.redis.errors import clear_errors
from shoal.frontier.redis.store.address import EXAMPLES, RedisAddress, Shape
from shoal.frontier.redis.store.client import RedisClient, RedisStore
from shoal.frontier.shared.versions import steps

log = structlog.get_logger("shoal")

SCHEMA_VERSION = 8
STEPS = frozenset({"migrate_2", "migrate_3", "migrate_4", "migrate_5", "migrate_6", "migrate_7", "migrate_8"})
"""What leads from one version to the next. A step without a script of that name only changes what records may hold."""
OLDEST_REDIS = (6, 2)


async def open_store(
    client: RedisClient, address: RedisAddress, *, create: bool, migrate: bool, clock: Clock | None
) -> tuple[RedisStore, Schema, tuple[str, ...]]:
    """Check the server, and find or make the store. Answers also what can be lost, in whole sentences; whoever may
    make a store, and so brings work, is told that at once. If it cannot be had, the client is closed."""
    try:
        with clear_errors(address.shown):
            servers = await _servers(client)
            losses = {sentence: None for info, settings in servers for sentence in _check(address, info, settings)}
        wanted = address.partitions or address.usual_partitions
        store = RedisStore(client, address, wanted, clock)
        found = await store.call("open_store", 0, {"create": create, "version": SCHEMA_VERSION, "partitions": wanted})
        schema, store.partitions = _check_store(address, found, migrate=migrate)
        if schema.found not in (None, SCHEMA_VERSION):
            await store.call("migrate_store", 0, {"version": SCHEMA_VERSION})
    except BaseException:
        await client.aclose()
        raise
    for sentence in losses if create else ():
        log.warning(log_events.STORE_MAY_LOSE, reason=sentence)
    return store, schema, tuple(losses)


async def _servers(client: RedisClient) -> list[tuple[dict[str, Any], dict[str, str]]]:
    """What each server that can be written to says about itself, and its settings where it tells them."""
    if not isinstance(client, RedisCluster):
        return [await _server(client)]
    await client.initialize()
    return [await _server(client, target_nodes=node) for node in client.get_primaries()]


async def _server(client: RedisClient, **where: Any) -> tuple[dict[str, Any], dict[str, str]]:
    info = await client.execute_command("INFO", **where)
    try:
        found = await client.execute_command("CONFIG GET", "appendfsync", **where)
    except ResponseError:  # hosted servers often keep CONFIG to themselves
        found = {}
    return info, {_text(name): _text(value) for name, value in found.items()}


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _check(address: RedisAddress, info: dict[str, Any], settings: dict[str, str]) -> list[str]:
    """Refuse a server that cannot keep what it is given. Answers what can be lost on one that can."""
    where = address.shown
    version = str(info.get("redis_version", "0"))
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if numbers < OLDEST_REDIS:
        raise EngineRefused(f"Redis {version} at {where} is too old; Shoal needs 6.2 or newer.")
    if (info.get("redis_mode") == "cluster") != (address.shape is Shape.CLUSTER):
        wanted = "redis+cluster" if info.get("redis_mode") == "cluster" else "redis"
        raise EngineRefused(f"Redis at {where} is set up in another way: write {EXAMPLES[wanted]} instead.")
    policy = str(info.get("maxmemory_policy", "noeviction"))
    if policy != "noeviction":
        raise EngineRefused(
            f"Redis at {where} throws data away when its memory is full (maxmemory-policy {policy}). "
            "Set maxmemory-policy noeviction, or choose another server."
        )
    if not info.get("aof_enabled"):
        return [
            f"Redis at {where} keeps no log of changes (appendonly no): if it crashes, everything since its last "
            "snapshot is lost, tasks and results alike. Set appendonly yes."
        ]
    match settings.get("appendfsync"):
        case "always":
            return []
        case "no":
            return [
                f"Redis at {where} leaves it to the system when its log reaches the disk (appendfsync no): a crash of "
                "the machine can lose half a minute or more of what was acknowledged."
            ]
        case "everysec":
            return [
                f"Redis at {where} writes its log to disk once a second (appendfsync everysec): a crash of the machine "
                "can lose up to one second of what was acknowledged. Set appendfsync always to lose nothing."
            ]
        case _:
            return [
                f"Redis at {where} does not say how often its log reaches the disk (appendfsync): with `everysec`, a "
                "crash of the machine can lose up to one second of what was acknowledged."
            ]


def _check_store(address: RedisAddress, found: Any, *, migrate: bool) -> tuple[Schema, int]:
    if not found:
        raise NoStore(
            f"There is nothing of Shoal in Redis at {address.shown} yet (prefix {address.prefix!r}, database "
            f"{address.db}). Start a run, or name another engine with --engine."
        )
    version, partitions, made = found
    steps(f"The store in Redis at {address.shown}", version, SCHEMA_VERSION, STEPS, migrate=migrate)
    if address.partitions not in (None, partitions):
        raise EngineBroken(
            f"The store in Redis at {address.shown} has {partitions} partitions and not {address.partitions}. That is "
            "settled when a store is made: leave `partitions` out of the URL, or choose another prefix."
        )
    return Schema(SCHEMA_VERSION, None if made else version), int(partitions)
