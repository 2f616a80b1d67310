"""Files of SQLite for tests that hurt them: with a run and some tasks, and what an error says about them."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from shoal.core.task import Policy
from shoal.frontier.contract.engine import Engine
from shoal.frontier.contract.frontier import NewRun
from shoal.frontier.sqlite.engine import SqliteEngine, open_sqlite
from shoal.testing.contract.scene import page


@contextlib.asynccontextmanager
async def opened(path: Path, **options: Any) -> AsyncIterator[SqliteEngine]:
    engine = await open_sqlite(path, **options)
    try:
        yield engine
    finally:
        await engine.close()


async def make(path: Path, tasks: int = 3) -> None:
    """A file with one run and some tasks."""
    async with opened(path) as engine:
        await engine.frontier.create_run(NewRun("run", "shop", Policy()))
        await put(engine, 0, tasks)


async def put(engine: Engine, start: int, number: int) -> None:
    await engine.frontier.enqueue("run", [page(f"{n}.example/{n}" + "x" * 100) for n in range(start, start + number)])


async def accepted(path: Path) -> int:
    async with opened(path, create=False) as engine:
        return (await engine.reader.run("run")).counters.accepted


def is_one_sentence(error: BaseException, path: Path) -> bool:
    """It names the file, ends like a sentence, and speaks neither Python nor SQLite."""
    text = str(error)
    return str(path) in text and text.endswith(".") and "sqlite3." not in text and "\n" not in text
