"""From the options of a command to an open engine, and from what was typed to a run."""

from __future__ import annotations

from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from shoal.config.load import load
from shoal.config.secret_key import secret_box
from shoal.config.settings import Settings, mask_url
from shoal.errors import UnknownRun, UsageError
from shoal.frontier.open import open_engine, sqlite_path
from shoal.frontier.sealing import SealedStore
from shoal.runs.command_line import CommandLine
from shoal.runs.event_loop import in_loop
from shoal.runs.open_store import opened

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from shoal.frontier.contract.engine import Engine
    from shoal.frontier.contract.frontier import Run
    from shoal.frontier.contract.jobs import Store
    from shoal.frontier.contract.reader import Reader

Result = TypeVar("Result")
NO_RUNS = "No runs yet. Start one with `shoal run file.py`."


def sqlite_file(engine: str) -> Path | None:
    """The file of a SQLite engine; None for other engines. Raises BadSettings if the URL names no file."""
    scheme, _, rest = engine.partition("://")
    return sqlite_path(engine, rest) if scheme == "sqlite" else None


def is_absent(settings: Settings) -> bool:
    """Whether the engine is a file that does not exist yet, so that there can be nothing in it."""
    file = sqlite_file(settings.engine)
    return file is not None and not file.exists()


def same_store(engine: str | None, config: Path | None) -> CommandLine:
    """How another command finds the store that these options lead to."""
    return CommandLine(None if engine is None else mask_url(engine), None if config is None else str(config))


@asynccontextmanager
async def opened_store(settings: Settings) -> AsyncIterator[Store]:
    """The store of these settings with jobs and records, for the gateway, secrets sealed, closed at the end.

    What it submits is not written down by the setting `events`.
    """
    store = SealedStore(await open_engine(settings.engine), secret_box(settings))
    try:
        yield store
    finally:
        await store.close()


def with_engine(engine: str | None, config: Path | None, work: Callable[[Engine], Awaitable[Result]]) -> Result:
    """Do `work` on the engine that the options name. For commands about runs that exist: never creates a store."""
    settings = load(config, {"engine": engine})
    if is_absent(settings):
        raise UsageError(f"{NO_RUNS} (There is no {mask_url(settings.engine)} here.)")

    async def main() -> Result:
        async with opened(settings, create=False) as store:
            return await work(store)

    return in_loop(main())


async def find_run(reader: Reader, text: str) -> Run:
    """The run that `text` means: an id, the beginning of exactly one, or `last` for the newest."""
    try:
        return await reader.run(text)
    except UnknownRun:
        runs = await reader.runs()
    if not runs:
        raise UsageError(NO_RUNS)
    if text == "last":
        return runs[0]
    matching = [run for run in runs if text and run.run_id.startswith(text)]
    if len(matching) > 1:
        names = ", ".join(run.run_id for run in matching[:5])
        more = ", …" if len(matching) > 5 else ""
        raise UsageError(f"{text!r} is the beginning of {len(matching)} runs ({names}{more}); write more of the id.")
    if not matching:
        raise UnknownRun(text)
    return matching[0]
