"""Empty stores for a benchmark, and the room that they take: all that has to be known about each kind of engine."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parts.shared.report import BenchmarkError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

SQLITE = "sqlite:///"
KEYS_AT_ONCE = 10_000


def kind_of(engine: str) -> str:
    """sqlite, postgresql or redis."""
    scheme = engine.partition(":")[0]
    kind = {"postgres": "postgresql", "rediss": "redis"}.get(scheme, scheme)
    if kind not in ("sqlite", "postgresql", "redis"):
        raise BenchmarkError(f"benchmarks/stores.py does not know how to make an empty {scheme} store; teach it there.")
    return kind


async def empty_store(engine: str, purpose: str) -> str:
    """The URL of a store with nothing in it, beside the one that `engine` names and apart from it."""
    place = engine.partition("?")[0]
    match kind_of(engine):
        case "postgresql":
            store = f"{place}?schema=benchmark_{purpose.replace('-', '_')}"
        case "redis":
            store = f"{place}?prefix=benchmark-{purpose}"
        case _:
            path = Path(engine.removeprefix(SQLITE))
            path.parent.mkdir(parents=True, exist_ok=True)
            store = f"{SQLITE}{path.with_name(f'{path.stem}-{purpose}{path.suffix}')}"
    await delete_store(store)
    return store


async def delete_store(store: str) -> None:
    """Remove a store that `empty_store` named. Nothing, if it is gone."""
    place, _, name = store.partition("=")
    match kind_of(store):
        case "postgresql":
            async with _postgres(place) as connection:
                await connection.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE")
        case "redis":
            async with _redis(place) as client:
                cursor = None
                while cursor != 0:
                    cursor, keys = await client.scan(cursor or 0, match=f"{{{name}:*", count=KEYS_AT_ONCE)
                    if keys:
                        await client.delete(*keys)  # not UNLINK: what is measured next must not see it go
        case _:
            for file in _files(store):
                file.unlink()


async def bytes_taken(store: str) -> int:
    """What a store takes that nobody has open: on disk; for Redis, what the whole server has in memory."""
    place, _, name = store.partition("=")
    match kind_of(store):
        case "postgresql":
            async with _postgres(place) as connection:
                return int(
                    await connection.fetchval(
                        "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class AS c "
                        "WHERE c.relnamespace = $1::regnamespace AND c.relkind IN ('r', 'S')",
                        name,
                    )
                )
        case "redis":
            async with _redis(place) as client:
                return int((await client.info("memory"))["used_memory"])
        case _:
            return sum(file.stat().st_size for file in _files(store))


def sync_milliseconds(folder: Path) -> float:
    """What the disk under a folder takes to make 4 KB durable (median)."""
    times = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(50):
            file.write(bytes(4096))
            file.flush()
            begin = time.perf_counter()
            os.fsync(file.fileno())
            times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1000


@asynccontextmanager
async def _postgres(place: str) -> AsyncIterator[Any]:
    import asyncpg  # noqa: PLC0415 - an extra

    connection = await asyncpg.connect(place.partition("?")[0])
    try:
        yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def _redis(place: str) -> AsyncIterator[Any]:
    from redis.asyncio import Redis  # noqa: PLC0415 - an extra

    client = Redis.from_url(place.partition("?")[0], protocol=2)
    try:
        yield client
    finally:
        await client.aclose()


def _files(store: str) -> list[Path]:
    path = Path(store.removeprefix(SQLITE))
    return [
        file for file in (path, *(path.with_name(f"{path.name}-{part}") for part in ("wal", "shm"))) if file.exists()
    ]
