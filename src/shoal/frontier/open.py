"""The one place that knows which engines there are. Drivers that are extras are imported when they are asked for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote

import structlog

from shoal.core import log_events
from shoal.core.clock import Clock
from shoal.errors import BadSettings
from shoal.frontier.contract.jobs import Store
from shoal.frontier.contract.timeouts import StoreTimeouts
from shoal.frontier.shared.private_files import is_open_to_all
from shoal.frontier.sqlite.engine import open_sqlite

KNOWN = (
    "sqlite:///path/to/file.db",
    "postgresql://user:password@host/database",
    "redis://host:6379/0",
)

log = structlog.get_logger("shoal")

Opening = Callable[..., Awaitable[Store]]


async def open_engine(
    url: str,
    *,
    create: bool = True,
    migrate: bool = False,
    clock: Clock | None = None,
    timeouts: StoreTimeouts | None = None,
) -> Store:
    """Open the engine behind a URL.

    `create`: False = its store must exist already. `migrate`: one of an older version is brought up to this one.
    `clock`: for tests. `timeouts`: how long its store is waited for; None = as is usual for the engine.
    """
    scheme, separator, rest = url.partition("://")
    if not separator:
        raise BadSettings(f"The engine {url!r} is not a URL. Write it like {KNOWN[0]}.")
    match scheme:
        case "sqlite":
            path = sqlite_path(url, rest)
            if is_open_to_all(path.parent):
                log.warning(log_events.STORE_EXPOSED, folder=str(path.parent))
            opening: Opening = open_sqlite
            place: str | Path = path
        case "postgresql" | "postgres":
            opening, place = _open_postgres(), url
        case "redis" | "rediss" | "redis+sentinel" | "redis+cluster" | "rediss+cluster":
            opening, place = _open_redis(), url
        case _:
            raise BadSettings(f"There is no engine {scheme!r}. Known: {', '.join(KNOWN)}.")
    return await opening(place, create=create, migrate=migrate, clock=clock, timeouts=timeouts)


def sqlite_path(url: str, rest: str) -> Path:
    """The file that an SQLite URL names: three slashes = relative to here, four = absolute."""
    if not rest.startswith("/") or not rest.strip("/"):
        raise BadSettings(f"The engine {url!r} names no file. Write it like {KNOWN[0]} (four slashes: absolute).")
    return Path(unquote(rest[1:]))


def _open_postgres() -> Opening:
    _need("asyncpg", "postgres")
    from shoal.frontier.postgres.engine import open_postgres  # noqa: PLC0415 - its driver is an extra

    return open_postgres


def _open_redis() -> Opening:
    _need("redis", "redis")
    from shoal.frontier.redis.engine import open_redis  # noqa: PLC0415 - its driver is an extra

    return open_redis


def _need(driver: str, extra: str) -> None:
    try:
        import_module(driver)
    except ImportError:
        raise BadSettings(
            f"This engine needs the driver {driver!r}. Install it with: pip install 'shoal[{extra}]'."
        ) from None
