"""The one place that knows which engines there are."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

from shoal.clock import Clock
from shoal.errors import BadSettings
from shoal.frontier.protocol import Engine
from shoal.frontier.sqlite.engine import open_sqlite

KNOWN = ("sqlite:///path/to/file.db",)


async def open_engine(url: str, *, create: bool = True, clock: Clock | None = None) -> Engine:
    """Open the engine behind a URL. `create`: False = an embedded file must exist already."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        raise BadSettings(f"The engine {url!r} is not a URL. Write it like {KNOWN[0]}.")
    if scheme == "sqlite":
        return await open_sqlite(sqlite_path(url, rest), create=create, clock=clock)
    raise BadSettings(f"There is no engine {scheme!r}. Known: {', '.join(KNOWN)}.")


def sqlite_path(url: str, rest: str) -> Path:
    """The file that an SQLite URL names: three slashes = relative to here, four = absolute."""
    if not rest.startswith("/") or not rest.strip("/"):
        raise BadSettings(f"The engine {url!r} names no file. Write it like {KNOWN[0]} (four slashes: absolute).")
    return Path(unquote(rest[1:]))
