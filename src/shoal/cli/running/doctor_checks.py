"""What `shoal doctor` looks at. Each check answers one finding or several and never raises a ShoalError."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sqlite3
import subprocess
import sys
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, requires, version
from typing import TYPE_CHECKING

from shoal.cli.output.text import count, size
from shoal.cli.running.find_store import sqlite_file
from shoal.config.load import stray_variables
from shoal.config.pools import pools_from, speaks_of_tor
from shoal.config.settings import mask_url
from shoal.core.exit_address import SOURCE, parse_exit
from shoal.core.notes import Entry
from shoal.errors import NoStore, ShoalError, TorFailed
from shoal.fetch.own_network import has_address
from shoal.fetch.tor.daemon import find_tor
from shoal.frontier.open import open_engine
from shoal.frontier.shared.private_files import is_open_to_all
from shoal.frontier.sqlite.store.connection import NETWORK_FILE_SYSTEMS, OLDEST_SQLITE, file_system_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from shoal.config.settings import Settings

OLDEST_PYTHON = (3, 11)
SPACE_TO_WARN, SPACE_TO_FAIL = 1_000_000_000, 100_000_000
MEMORY_FILE_SYSTEMS = frozenset({"tmpfs", "ramfs"})


class CheckResult(StrEnum):
    """`warn`: it works, but not as well as it could. `fail`: it does not work."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report. `advice`: what to do, where there is something to do."""

    name: str
    verdict: CheckResult
    text: str
    advice: str | None = None


def check_python() -> Finding:
    """The interpreter."""
    if sys.version_info[:2] < OLDEST_PYTHON:
        return Finding("python", CheckResult.FAIL, platform.python_version(), "Shoal needs Python 3.11 or newer.")
    return Finding("python", CheckResult.OK, platform.python_version())


def check_sqlite() -> Finding:
    """The library behind the embedded engine."""
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        oldest = ".".join(map(str, OLDEST_SQLITE))
        return Finding(
            "sqlite", CheckResult.FAIL, sqlite3.sqlite_version, f"The embedded engine needs {oldest} or newer."
        )
    return Finding("sqlite", CheckResult.OK, sqlite3.sqlite_version)


async def check_engine(settings: Settings) -> list[Finding]:
    """Whether the engine can be opened, read and written, and what it can lose. Does not make a store."""
    shown = mask_url(settings.engine)
    try:
        file = sqlite_file(settings.engine)
        if file is not None and not file.exists():
            return [_new_file(file)]
        engine = await open_engine(settings.engine, create=False)
        try:
            runs = await engine.reader.runs()
            await engine.cache.put([Entry("shoal doctor", b"", 1)])
        finally:
            await engine.close()
    except NoStore:
        return [Finding("engine", CheckResult.OK, f"{shown}, can be reached; the store will be made by the first run")]
    except ShoalError as error:
        return [Finding("engine", CheckResult.FAIL, shown, str(error))]
    state = f"readable and writable, {count(len(runs), 'run')}, schema {engine.schema.version}"
    losses = [Finding("durability", CheckResult.WARN, "a crash can lose something", loss) for loss in engine.losses]
    return [Finding("engine", CheckResult.OK, f"{shown}, {state}"), *losses]


async def migrate(settings: Settings) -> Finding:
    """Make the store, or bring it up to this version. Raises a ShoalError if that cannot be."""
    engine = await open_engine(settings.engine, create=True, migrate=True)
    await engine.close()
    version, found = engine.schema
    done = "made" if found is None else "as it should be" if found == version else f"migrated from {found}"
    return Finding("schema", CheckResult.OK, f"{version}, {done}")


def check_disk(settings: Settings) -> Iterator[Finding]:
    """Where a file of the engine lies, if it is one."""
    try:
        file = sqlite_file(settings.engine)
    except ShoalError:
        return  # said by check_engine
    if file is None:
        return
    folder = file.resolve().parent
    if not folder.is_dir():
        return
    kind = file_system_of(file) or "unknown"
    if kind in NETWORK_FILE_SYSTEMS:
        yield Finding(
            "file system", CheckResult.FAIL, kind, "SQLite's locks do not hold on a network; choose a local disk."
        )
    elif kind in MEMORY_FILE_SYSTEMS:
        yield Finding(
            "file system", CheckResult.WARN, kind, "It is gone after a restart; choose a disk for what must last."
        )
    else:
        yield Finding("file system", CheckResult.OK, kind)
    yield _privacy(file, folder)
    free = shutil.disk_usage(folder).free
    if free < SPACE_TO_WARN:
        verdict = CheckResult.FAIL if free < SPACE_TO_FAIL else CheckResult.WARN
        yield Finding("free space", verdict, f"{size(free)} in {folder}", "Free some, or name another engine.")
    else:
        yield Finding("free space", CheckResult.OK, f"{size(free)} in {folder}")


def _privacy(file: Path, folder: Path) -> Finding:
    """Who can read what is stored, and who could put something else in its place."""
    if is_open_to_all(folder):
        advice = f"Anybody on this machine may replace the file: `chmod o-w {folder}`, or choose a folder of your own."
        return Finding("privacy", CheckResult.WARN, f"all may write to {folder}", advice)
    if file.exists() and file.stat().st_mode & 0o077:
        advice = f"It was made before this was looked after, or on purpose. `chmod 600 {file}*` keeps it to you."
        return Finding("privacy", CheckResult.WARN, f"others may read {file}", advice)
    return Finding("privacy", CheckResult.OK, "the file is this user's alone")


def check_contact(settings: Settings) -> Finding:
    """Whether a site's owner can tell who crawls."""
    if settings.contact is None:
        advice = 'Set contact = "you@example.org" in shoal.toml, so that a site\'s owner can reach you.'
        return Finding("contact", CheckResult.WARN, f"not set; sites see {settings.agent!r}", advice)
    return Finding("contact", CheckResult.OK, f"sites see {settings.agent!r}")


def check_descriptors(settings: Settings) -> Finding:
    """Whether there are descriptors for the connections that the settings allow: two for each, and some for us."""
    try:
        import resource  # noqa: PLC0415 - not there on every platform
    except ImportError:
        return Finding("descriptors", CheckResult.OK, "no limit known here")
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = settings.concurrency * 2 + 64
    if limit != resource.RLIM_INFINITY and limit < needed:
        advice = f"Raise the limit (`ulimit -n {needed}`) or lower `concurrency`."
        return Finding(
            "descriptors", CheckResult.WARN, f"{limit}; concurrency {settings.concurrency} needs {needed}", advice
        )
    return Finding("descriptors", CheckResult.OK, "unlimited" if limit == resource.RLIM_INFINITY else str(limit))


def check_sources(settings: Settings) -> Iterator[Finding]:
    """The addresses of this machine that exits are to leave by. One finding for each that it does not have."""
    try:
        exits = pools_from(settings)
    except ShoalError as error:
        yield Finding("exits", CheckResult.FAIL, str(error))
        return
    sources = {name: parse_exit(each.address) for name, each in exits.items()}
    sources = {name: address for name, address in sources.items() if address.scheme == SOURCE}
    missing = [name for name, address in sources.items() if not has_address(address.host)]
    for name in missing:
        where = f"source://{sources[name].host} (pool {', '.join(exits[name].pools)})"
        advice = "Give the address to a network interface, or take the exit out of [exits]."
        yield Finding("exits", CheckResult.FAIL, f"{where}: this machine does not have the address", advice)
    if sources and not missing:
        yield Finding("exits", CheckResult.OK, f"{count(len(sources), 'source address', 'source addresses')}, all here")


def check_tor(settings: Settings) -> Finding:
    """The program that workers start for scrapers that leave by Tor."""
    try:
        program = find_tor(settings.tor.path)
    except TorFailed as error:
        if speaks_of_tor(settings):
            return Finding("tor", CheckResult.FAIL, "not installed", str(error))
        return Finding("tor", CheckResult.OK, "not installed; if you need it: apt-get install tor (Debian)")
    try:
        asked = subprocess.run([program, "--version"], capture_output=True, text=True, check=True, timeout=10)  # noqa: S603
        said = asked.stdout.strip().splitlines()
    except (OSError, subprocess.SubprocessError):
        said = []
    if not said or not said[0].startswith("Tor "):
        return Finding("tor", CheckResult.FAIL, program, "This is not Tor, or it does not run; set `path` of [tor].")
    return Finding("tor", CheckResult.OK, f"{said[0].removeprefix('Tor version ').rstrip('.')}, {program}")


def check_extras() -> Iterator[Finding]:
    """Which optional parts are installed, read off the package itself."""
    wanted: dict[str, list[str]] = {}
    for requirement in requires("shoal") or ():
        extra = re.search(r"extra\s*==\s*['\"]([\w-]+)['\"]", requirement)
        named = re.match(r"[\w.-]+", requirement)
        if extra and named and extra[1] != "all" and named[0] != "shoal":
            wanted.setdefault(extra[1], []).append(named[0])
    for name, packages in sorted(wanted.items()):
        there = all(_installed(package) for package in packages)
        text = "installed" if there else f"not installed; if you need it: pip install 'shoal[{name}]'"
        yield Finding(f"extra {name}", CheckResult.OK, text)
    if sys.platform != "win32" and not _installed("uvloop"):
        yield Finding("uvloop", CheckResult.WARN, "not installed", "Crawls are slower without it: pip install uvloop.")


def check_environment() -> Iterator[Finding]:
    """Variables that look like settings and are none."""
    for name in stray_variables():
        yield Finding("environment", CheckResult.WARN, f"{name} sets nothing", "Remove it, if it was meant for Shoal.")


def _new_file(file: Path) -> Finding:
    folder = file.resolve().parent
    if not folder.is_dir():
        return Finding("engine", CheckResult.FAIL, f"the folder {folder} does not exist", "Create it.")
    if not os.access(folder, os.W_OK | os.X_OK):
        return Finding("engine", CheckResult.FAIL, f"the folder {folder} is not writable", "Change its permissions.")
    return Finding("engine", CheckResult.OK, f"{file} will be made by the first run")


def _installed(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True
