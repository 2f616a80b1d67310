"""What holds for every test, and what most crawls need."""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from operator import itemgetter
from pathlib import Path

import pytest
import structlog
from hypothesis import HealthCheck, settings

from shoal.fetch.http import HttpFetcher
from shoal.frontier.sqlite.engine import SqliteEngine
from shoal.testing.hostile_site import HostileSite
from support.command_line import forget_modules
from support.counting_site import Site
from support.working import AGENT, opened

settings.register_profile("shoal", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shoal")  # how fast examples are made depends on what else the machine does

TESTS = Path(__file__).parent
TOO_LONG = 30.0
"""Seconds that a test may take, on two quiet cores."""


LONGEST = ("proof", "engines", "gateway", "work", "docs", "cli", "runs", "fetch", "delivery", "client", "demo")
"""Folders by how long their files take."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that take long are begun first, so that at the end no process waits for another that has just begun one."""
    place = {folder: number for number, folder in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.relative_to(TESTS).parts[0], len(LONGEST)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Where the time went, by folder; and what is too long for `make test`."""
    spent: dict[str, float] = defaultdict(float)
    folders: dict[str, float] = defaultdict(float)
    tests = Counter[str]()
    for report in (each for reports in terminalreporter.stats.values() for each in reports):
        if isinstance(report, pytest.TestReport):
            spent[report.nodeid] += report.duration
    for test, seconds in spent.items():
        folder = "/".join(test.split("::")[0].split("/")[:2])
        folders[folder] += seconds
        tests[folder] += 1
    if len(folders) > 1:
        terminalreporter.section("seconds by folder")
        for folder, seconds in sorted(folders.items(), key=itemgetter(1), reverse=True):
            terminalreporter.write_line(f"{seconds:7.0f}  {tests[folder]:5}  {folder}")
    for test, seconds in sorted(spent.items(), key=itemgetter(1), reverse=True)[:20]:
        if seconds > TOO_LONG:
            terminalreporter.write_line(f"{seconds:7.0f}  takes long (see CONTRIBUTING.md): {test}")


@pytest.fixture(autouse=True)
def own_modules(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What a test imports from a folder of its own is forgotten after it."""
    before = list(sys.path)
    yield
    sys.path[:] = before
    forget_modules(tmp_path_factory.getbasetemp())


@pytest.fixture(autouse=True)
def own_logs() -> None:
    """A logger that was used before asks again how to log, and not the configuration of that time or of a command."""
    structlog.reset_defaults()
    for name, module in list(sys.modules.items()):
        if name.startswith("shoal.") and hasattr(module, "log"):
            vars(module.log).pop("bind", None)


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The test works in an empty folder, and no settings come from the environment."""
    for name in [name for name in os.environ if name.startswith("SHOAL_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def counting_site() -> Iterator[Site]:
    """A site that is there while the test's own thread is busy, or its crawl in another process."""
    with closing(Site()) as site:
        yield site


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
def own_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Temporary files, notebooks too, go to the test's own folder: those of processes that it starts, and its own."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)  # where they go was read from the environment long ago
    return tmp_path


@pytest.fixture
def notebooks(own_temporary_files: Path) -> Callable[[], int]:
    """How many notebooks there are now, in the test's own folder."""
    return lambda: len(list(own_temporary_files.glob("shoal-*/shoal-*.hand")))


@pytest.fixture
async def fetcher() -> AsyncIterator[HttpFetcher]:
    """A way to ask without a worker."""
    fetcher = HttpFetcher(AGENT)
    yield fetcher
    await fetcher.close()
