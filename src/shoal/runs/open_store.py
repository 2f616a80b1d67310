"""From settings to an open store, whose calls are recorded where the settings say so."""

from __future__ import annotations

from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.config.secret_key import secret_box
from shoal.errors import BadSettings
from shoal.frontier.open import open_engine
from shoal.frontier.sealing import SealedEngine

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from shoal.config.settings import Settings
    from shoal.frontier.contract.engine import Engine


async def open_store(settings: Settings, *, create: bool = True) -> Engine:
    """The engine of these settings, secrets sealed. `create`: False = its store must exist already."""
    return SealedEngine(await _recorded(settings, create=create), secret_box(settings))


async def _recorded(settings: Settings, *, create: bool) -> Engine:
    engine = await open_engine(settings.engine, create=create)
    if settings.events is None:
        return engine
    from shoal.frontier.recording import RecordedEngine, Recorder  # noqa: PLC0415 - costs nothing where it is not asked for

    try:
        return RecordedEngine(engine, Recorder(Path(settings.events)))
    except BadSettings:
        await engine.close()
        raise


@asynccontextmanager
async def opened(settings: Settings, *, create: bool) -> AsyncIterator[Engine]:
    """The same, closed at the end."""
    engine = await open_store(settings, create=create)
    try:
        yield engine
    finally:
        await engine.close()
