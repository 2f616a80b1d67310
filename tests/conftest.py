"""What holds for every test, and what most crawls need."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from command_line import forget_modules
from shoal import politeness
from shoal.fetch.http import HttpFetcher
from shoal.frontier.sqlite.engine import SqliteEngine
from shoal.testing.hostile_site import HostileSite
from working import AGENT, opened


@pytest.fixture(autouse=True)
def own_modules(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What a test imports from a folder of its own is forgotten after it."""
    before = list(sys.path)
    yield
    sys.path[:] = before
    forget_modules(tmp_path_factory.getbasetemp())


@pytest.fixture(autouse=True)
def own_logs() -> None:
    """A logger that was used before asks again how to log, and not the configuration of that time."""
    for name, module in list(sys.modules.items()):
        if name.startswith("shoal.") and hasattr(module, "log"):
            vars(module.log).pop("bind", None)


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[SqliteEngine]:
    """A store in the test's own folder."""
    async with opened(tmp_path) as engine:
        yield engine


@pytest.fixture
async def site() -> AsyncIterator[HostileSite]:
    """A site under every address of this machine that is its alone."""
    async with HostileSite(host="0.0.0.0") as site:  # noqa: S104 - all of 127.0.0.0/8, and it hangs up on others
        yield site


@pytest.fixture
def notebooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Notebooks are written into the test's own folder. Answers how many there are now."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return lambda: len(list(tmp_path.glob("shoal-*.hand")))


@pytest.fixture
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries come after a few milliseconds."""
    monkeypatch.setattr(politeness, "RETRY_FIRST", 5)


@pytest.fixture
async def fetcher() -> AsyncIterator[HttpFetcher]:
    """A way to ask without a worker."""
    fetcher = HttpFetcher(AGENT)
    yield fetcher
    await fetcher.close()
